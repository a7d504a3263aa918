"""Whether texts are those of the CPU, and whether recording and drafting leave them as they are."""

from dataclasses import replace

from batchspec.drafting import SpeculativeConfig
from batchspec.engine import EngineCore
from batchspec.launch import build_engine
from batchspec.model.load import load_model
from batchspec.settings import EngineSettings
from tests.model.device_engine import steps_of

from .answers import Answer, Comparison, answers_of, compare, gap_behind
from .finding import Finding
from .stage import Stage

__all__ = ["SETTINGS", "WITHOUT", "check_against_cpu", "check_recordings", "check_speculation"]

SETTINGS = EngineSettings(
    max_num_seqs=16,
    max_num_batched_tokens=512,
    max_model_len=512,
    prefix_caching=False,
    speculative=SpeculativeConfig.from_mapping({"method": "ngram", "num_speculative_tokens": 3}),
)
WITHOUT = replace(SETTINGS, speculative=SpeculativeConfig.from_mapping({"method": "none"}))
_TEMPERATURES = {"greedy": 0.0, "seeded": 0.9}
_TIE = 1e-3  # logits so close are ordered by rounding


def check_against_cpu(stage: Stage) -> Finding:
    """In float32 the device answers as the CPU does; where a greedy answer differs, its two best logits are a tie."""
    on_cpu = build_engine(load_model(device="cpu", dtype="float32"), SETTINGS)
    on_device = stage.engine(stage.load("float32"), SETTINGS)
    found = {
        name: compare(_answers(on_cpu, stage, temperature), _answers(on_device, stage, temperature))
        for name, temperature in _TEMPERATURES.items()
    }
    lines = [f"{name}, float32: {comparison} to the CPU's" for name, comparison in found.items()]
    first, gap = found["greedy"].first, 0.0
    if first is not None:
        gap = gap_behind(on_cpu, first)
        lines.append(f"greedy: the first difference stands behind {len(first)} tokens")
        lines.append(f"the two largest logits there are {gap:.1e} apart; the device decides otherwise")
    return _finding(found, lines, is_right=gap < _TIE, greedy_gap=gap)


def check_recordings(stage: Stage) -> Finding:
    """Steps done again from recordings give the answers of steps that are computed."""
    lines, found, num_replays = [], {}, {}
    notes: list[str] = []
    for dtype in ("float32", "bfloat16"):
        loaded = stage.load(dtype)
        recorded = stage.engine(loaded, SETTINGS, note=notes.append)
        computed = stage.engine(loaded, SETTINGS, is_recorded=False)
        found[dtype] = compare(_answers(computed, stage, 0.0), _answers(recorded, stage, 0.0))
        graphs = steps_of(recorded).graphs
        num_replays[dtype] = graphs.num_replays if graphs is not None and graphs.is_on else 0
        lines.append(
            f"{dtype}: {found[dtype]} with and without recordings, {num_replays[dtype]} of "
            f"{recorded.progress.num_steps} steps done again from one"
        )
    is_right = found["float32"].is_equal and all(num_replays.values())
    return _finding(found, lines + notes, is_right=is_right, num_replays=num_replays, notes=notes)


def check_speculation(stage: Stage) -> Finding:
    """Drafts leave the answers as they are: in float32 all, in bfloat16 as far as rounding lets them."""
    lines, found = [], {}
    for dtype in ("float32", "bfloat16"):
        loaded = stage.load(dtype)
        drafting, plain = stage.engine(loaded, SETTINGS), stage.engine(loaded, WITHOUT)
        for name, temperature in _TEMPERATURES.items():
            comparison = compare(_answers(plain, stage, temperature), _answers(drafting, stage, temperature))
            found[f"{name}, {dtype}"] = comparison
            lines.append(f"{name}, {dtype}: {comparison} with and without drafts")
        lines.append(f"{dtype}: {drafting.progress.num_accepted_draft_tokens} draft tokens were accepted")
    is_right = found["greedy, float32"].is_equal and found["seeded, float32"].is_equal
    return _finding(found, lines, is_right=is_right)


def _answers(core: EngineCore, stage: Stage, temperature: float) -> list[Answer]:
    return answers_of(core, stage.requests(temperature=temperature))


def _finding(found: dict[str, Comparison], lines: list[str], *, is_right: bool, **values: object) -> Finding:
    counts = {name: {"equal": each.num_equal, "of": each.num_answers} for name, each in found.items()}
    return Finding(is_right=is_right, lines=tuple(lines), values={"answers": counts, **values})
