"""The embedded pair: the draft model changes nothing but the speed, and guesses well; what does not fit is refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.engine import EngineCore
from batchspec.errors import UsageError
from batchspec.files import Columns, RowDefaults
from batchspec.files.rows import parse_row
from batchspec.launch import build_engine
from batchspec.model.cache import KVCache
from batchspec.model.device.buckets import Buckets
from batchspec.model.drafting.model import PagedDraftModel
from batchspec.model.load import LoadedModel, load_model
from batchspec.model.locate import EMBEDDED_DRAFT, EMBEDDED_TARGET
from batchspec.model.runner import ModelRunner
from batchspec.settings import EngineSettings

from .device_engine import Rerun
from .generating import CPU
from .saved import edit_config, save

QUICKSTART = Path(__file__).parents[2] / "datasets" / "quickstart.jsonl"
CHAT = {"max_tokens": 40, "messages": [{"role": "user", "content": "Tell a story about a painter named Wiodrna."}]}
SPECIAL: dict[str, dict[str, Any]] = {
    "samples": CHAT | {"n": 3, "temperature": 0.8},
    "stop text": CHAT | {"stop": [" the", "."], "temperature": 0.0},
    "grammar": CHAT | {"structured_outputs": {"regex": "[a-z ]{5,30}\\\\."}, "temperature": 0.8},
    "choice": CHAT | {"structured_outputs": {"choice": ["yes, of course", "no, not now"]}},
    "penalties": CHAT | {"frequency_penalty": 0.8, "repetition_penalty": 1.2, "logprobs": True, "temperature": 0.0},
    "truncation": CHAT | {"top_k": 9, "top_p": 0.9, "temperature": 1.0},
    "early stop": CHAT | {"max_tokens": 2, "temperature": 0.0},
    "one token": CHAT | {"max_tokens": 1},
}


@pytest.fixture(scope="module")
def target() -> LoadedModel:
    return load_model(device="cpu", dtype="float32")


def bodies_at(temperature: float) -> list[dict[str, Any]]:
    """One request of each kind in the quickstart file, and what else may happen to a sequence."""
    lines = [json.loads(line) for line in QUICKSTART.read_text().splitlines()]
    kinds = {line["category"]: line["body"] for line in lines}
    changes = {"max_tokens": 40, "temperature": temperature}
    return [body | changes | {"seed": number} for number, body in enumerate(kinds.values())]


def engine_of(target: LoadedModel, method: str = "draft_model", **settings: Any) -> EngineCore:
    keys = {"method": method} | settings.pop("keys", {})
    settings = {"max_num_seqs": 16, "level": Level.NONE if method == "none" else Level.DETAILED} | settings
    return build_engine(target, EngineSettings(speculative=SpeculativeConfig.from_mapping(keys), **settings))


def serve(core: EngineCore, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the bodies of the answers."""
    rows = (
        parse_row(body, index=index, line=index + 1, columns=Columns(), defaults=RowDefaults())
        for index, body in enumerate(bodies)
    )
    records = list(core.run(rows))
    assert all(record["error"] is None for record in records)
    return [record["response"]["body"] for record in records]


def choices_of(answers: list[dict[str, Any]]) -> list[Any]:
    return [answer["choices"] for answer in answers]


def steps_of(answers: list[dict[str, Any]]) -> list[tuple[list[int], list[int]]]:
    specs = [answer["metrics"]["speculative_decoding"] for answer in answers]
    return [(spec["per_step_drafted"], spec["per_step_accepted"]) for spec in specs]


def draft_model_of(core: EngineCore) -> PagedDraftModel:
    assert isinstance(core.drafter, DraftModelDrafter)
    assert isinstance(core.drafter.draft_model, PagedDraftModel)
    return core.drafter.draft_model


@pytest.mark.parametrize(("temperature", "least"), [(0.0, 0.5), (0.8, 0.3)])
def test_same_texts_and_drafts_that_do_not_depend_on_the_batch(
    target: LoadedModel, temperature: float, least: float
) -> None:
    bodies = bodies_at(temperature)
    plain = choices_of(serve(engine_of(target, "none"), bodies))
    expected = None
    ways: list[dict[str, Any]] = [
        {"max_num_seqs": 1},
        {"max_num_seqs": 3, "prefix_caching": False},
        {"max_num_seqs": 16, "max_num_batched_tokens": 150},
    ]
    for settings in ways:
        core = engine_of(target, **settings)
        answers = serve(core, bodies)
        assert choices_of(answers) == plain
        expected = expected or steps_of(answers)
        assert steps_of(answers) == expected
        assert core.progress.num_accepted_draft_tokens > least * core.progress.num_draft_tokens
        assert draft_model_of(core).pages.shadows == []


@pytest.mark.parametrize("settings", [{}, {"kv_cache_memory": 3 * 2**20}], ids=["room", "preemptions"])
def test_whatever_happens_to_a_sequence(target: LoadedModel, settings: dict[str, Any]) -> None:
    bodies = [*SPECIAL.values(), *bodies_at(0.8)]
    plain = choices_of(serve(engine_of(target, "none"), bodies))
    core = engine_of(target, max_model_len=256, **settings)
    assert choices_of(serve(core, bodies)) == plain
    assert bool(core.scheduler.num_preemptions) == bool(settings)
    assert draft_model_of(core).pages.shadows == []


def test_drafts_end_with_the_draft_models_context(target: LoadedModel, tmp_path: Path) -> None:
    short = shutil.copytree(EMBEDDED_DRAFT, tmp_path / "short")
    edit_config(short, max_position_embeddings=64)
    bodies = bodies_at(0.0)
    plain = choices_of(serve(engine_of(target, "none"), bodies))
    answers = serve(engine_of(target, keys={"model": str(short)}), bodies)
    assert choices_of(answers) == plain
    ends = [answer["usage"]["prompt_tokens"] for answer in answers]
    assert min(ends) < 60 < 66 < max(ends), "some prompts fit, some do not"
    for answer, num_prompt_tokens in zip(answers, ends, strict=True):
        spec = answer["metrics"]["speculative_decoding"] | answer["metrics"]["batchspec"]
        steps = zip(spec["per_step_position"], spec["per_step_drafted"], strict=True)
        assert all(num_prompt_tokens + position + drafted <= 65 for position, drafted in steps)
        assert bool(spec["num_draft_tokens"]) == (num_prompt_tokens + 1 <= 64)


def test_the_ensemble_with_a_draft_model(target: LoadedModel) -> None:
    bodies = bodies_at(0.8)
    plain = choices_of(serve(engine_of(target, "none"), bodies))
    keys = {"model": str(EMBEDDED_DRAFT), "adaptive": False}
    assert choices_of(serve(engine_of(target, "auto", keys=keys), bodies)) == plain


def test_the_memory_for_keys_and_values_is_shared_with_the_draft_model(target: LoadedModel) -> None:
    alone = engine_of(target, "none", kv_cache_memory=64 * 2**20, max_num_seqs=1000)
    core = engine_of(target, kv_cache_memory=64 * 2**20, max_num_seqs=1000)
    per_token = target.bytes_per_token
    draft_per_token = load_model(EMBEDDED_DRAFT, device="cpu", dtype="float32").bytes_per_token
    ratio = core.scheduler.pool.num_blocks / alone.scheduler.pool.num_blocks
    assert ratio == pytest.approx(per_token / (per_token + draft_per_token), rel=0.01)
    assert draft_model_of(core).pages.pool.num_blocks >= core.scheduler.pool.num_blocks


def test_drafts_by_steps_that_are_recorded_on_a_device(target: LoadedModel) -> None:
    bodies = bodies_at(0.0)
    expected = steps_of(serve(engine_of(target), bodies))
    core = engine_of(target)
    draft_model = draft_model_of(core)
    pool = draft_model.pages.pool
    draft = load_model(EMBEDDED_DRAFT, device="cpu", dtype="float32", impl="transformers")
    cache = KVCache(
        num_blocks=pool.num_blocks, block_size=pool.block_size, dtype=torch.float32, device=CPU, in_strips=False
    )
    draft_model.runner = runner = ModelRunner(network=draft.network, cache=cache, device=CPU)
    assert runner.on_device is not None
    buckets = Buckets(most_sequences=16, most_drafted=0, most_tokens=2048, most_blocks=128, has_full_tables=False)
    runner.on_device.record(buckets, capture=Rerun(), note=print)
    assert steps_of(serve(core, bodies)) == expected
    assert runner.on_device.graphs is not None
    assert runner.on_device.graphs.num_replays > 10


def renamed(directory: Path) -> Path:
    """The embedded draft model with two tokens' places changed."""
    path = shutil.copytree(EMBEDDED_DRAFT, directory / "renamed") / "tokenizer.json"
    document = json.loads(path.read_text())
    vocabulary = document["model"]["vocab"]
    one, other = list(vocabulary)[-2:]
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]
    path.write_text(json.dumps(document))
    return path.parent


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda directory: save(directory / "small"), "its vocabulary has 258 tokens, that of the target 1280; give a"),
        (renamed, "have 1280 tokens each, but token "),
        (lambda directory: directory / "nowhere", "nowhere: there is no such directory"),
    ],
    ids=["size", "content", "path"],
)
def test_what_does_not_fit_is_refused(
    target: LoadedModel, tmp_path: Path, make: Callable[[Path], Path], message: str
) -> None:
    with pytest.raises(UsageError, match=r"\.$") as caught:
        engine_of(target, keys={"model": str(make(tmp_path))})
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"--draft-model {tmp_path}/")
    assert "--model" not in str(caught.value)


def test_the_embedded_draft_model_is_for_the_embedded_target_or_a_copy(tmp_path: Path) -> None:
    copy = shutil.copytree(EMBEDDED_TARGET, tmp_path / "copy")
    assert engine_of(load_model(copy, device="cpu", dtype="float32")).drafter.num_spec_tokens == 3
    with pytest.raises(UsageError, match=r"must be named: --draft-model PATH"):
        engine_of(load_model(save(tmp_path / "other"), device="cpu"))
