"""The embedded model by the way of a device, walked on the CPU: the same texts, recorded or not."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from batchspec.drafting import SpeculativeConfig
from batchspec.launch import build_engine
from batchspec.model.cache import KVCache
from batchspec.model.device import opening
from batchspec.model.device.opening import page_size, record_steps
from batchspec.model.device.steps import DeviceSteps
from batchspec.model.gate import admit
from batchspec.model.load import LoadedModel, load_model
from batchspec.model.modules import ModuleNetwork
from batchspec.settings import EngineSettings

from .by_hand import Pages
from .device_engine import Rerun, engine_on_device, steps_of, texts_of
from .generating import CPU, engine_for, generate_alone, generate_paged, prompts_of
from .tiny import build

QUICKSTART = Path(__file__).parents[2] / "datasets" / "quickstart.jsonl"
SETTINGS = EngineSettings(
    max_num_seqs=5,
    max_num_batched_tokens=96,
    max_model_len=512,
    speculative=SpeculativeConfig.from_mapping({"method": "ngram", "num_speculative_tokens": 3}),
)
WITHOUT = replace(SETTINGS, speculative=SpeculativeConfig.from_mapping({"method": "none"}))


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return load_model(device="cpu", dtype="float32", impl="transformers")


@pytest.fixture(scope="module")
def bodies() -> list[dict[str, Any]]:
    """Greedy and seeded rows of the quickstart, with short answers."""
    lines = [json.loads(line)["body"] for line in QUICKSTART.read_text().splitlines()[:14]]
    prompts = [{key: line[key] for key in ("messages", "prompt") if key in line} for line in lines]
    return [
        prompt | {"max_tokens": 24, "seed": index, "temperature": 0.0 if index % 2 else 0.9}
        for index, prompt in enumerate(prompts)
    ]


@pytest.fixture(scope="module")
def expected(loaded: LoadedModel, bodies: list[dict[str, Any]]) -> list[str]:
    """The texts by the CPU's own way."""
    return texts_of(build_engine(loaded, SETTINGS), bodies)


@pytest.mark.parametrize("settings", [SETTINGS, WITHOUT], ids=["drafts", "none"])
def test_the_same_texts_as_on_the_cpu(
    loaded: LoadedModel, bodies: list[dict[str, Any]], expected: list[str], settings: EngineSettings
) -> None:
    assert texts_of(engine_on_device(loaded, settings), bodies) == expected


@pytest.mark.parametrize("settings", [SETTINGS, WITHOUT], ids=["drafts", "none"])
@pytest.mark.parametrize("has_full_tables", [False, True])
def test_the_same_texts_from_recordings(
    loaded: LoadedModel,
    bodies: list[dict[str, Any]],
    expected: list[str],
    settings: EngineSettings,
    has_full_tables: bool,
) -> None:
    capture = Rerun()
    core = engine_on_device(loaded, settings, capture=capture, has_full_tables=has_full_tables)
    assert capture.num_recorded == 1  # the largest, before there is anything to do
    assert texts_of(core, bodies) == expected
    graphs = steps_of(core).graphs
    assert graphs is not None
    assert graphs.num_replays > core.progress.num_steps / 2
    assert capture.num_recorded <= 8


def test_log_probabilities_and_prompt_rows(loaded: LoadedModel) -> None:
    bodies = [{"prompt": "Once upon a time", "max_tokens": 6, "temperature": 0, "logprobs": 2, "echo": True}]
    core = engine_on_device(loaded, SETTINGS, capture=Rerun())
    assert texts_of(core, bodies) == texts_of(build_engine(loaded, SETTINGS), bodies)


@pytest.mark.parametrize("failing", [range(1), range(1, 2)], ids=["at the start", "later"])
def test_what_cannot_be_recorded_is_computed_and_told(
    loaded: LoadedModel, bodies: list[dict[str, Any]], expected: list[str], failing: range
) -> None:
    notes: list[str] = []
    capture = Rerun(failing=failing)
    core = engine_on_device(loaded, SETTINGS, capture=capture, note=notes.append)
    assert texts_of(core, bodies) == expected
    assert notes == [
        "steps are not recorded as CUDA graphs, so small ones take longer: "
        "RuntimeError: operation not permitted when stream is capturing"
    ]
    assert capture.num_recorded == failing.stop  # and nothing is tried behind that


def test_an_engine_on_a_device_begins_with_a_recording(loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = Rerun()
    monkeypatch.setattr(opening, "CudaCapture", lambda device: capture)
    notes: list[str] = []
    steps = steps_of(engine_on_device(loaded, SETTINGS))
    record_steps(
        steps, max_num_seqs=5, max_num_batched_tokens=96, max_model_len=256, num_spec_tokens=3, note=notes.append
    )
    assert capture.num_recorded == 1
    assert notes == [
        "attention gathers keys and values before it reads them, because "
        "the kernel that reads them in their pages takes 16-bit floats only"
    ]


def test_a_model_that_cannot_run_at_all_is_told_at_the_start(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_memory(*args: Any, **kwargs: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError("out of memory")

    steps = steps_of(engine_on_device(loaded, SETTINGS))
    monkeypatch.setattr(loaded.network, "forward", without_memory)
    notes: list[str] = []
    record_steps(
        steps, max_num_seqs=5, max_num_batched_tokens=96, max_model_len=256, num_spec_tokens=3, note=notes.append
    )
    assert [note.rpartition(": ")[2] for note in notes] == ["out of memory"]


def test_pages_on_the_cpu_have_their_usual_size() -> None:
    assert page_size(CPU, torch.bfloat16) == page_size(CPU, torch.float32) == 16


@pytest.mark.parametrize("model_type", ["llama", "gemma2", "gpt_oss", "qwen3", "gpt2"])
def test_logits_are_those_of_the_cpu(model_type: str) -> None:
    """Prefill, drafts and decodes of three sequences, twice."""
    module = build(model_type)
    admit(module, device=CPU)
    network = ModuleNetwork(module)
    ways = [Pages(network, in_strips=in_strips) for in_strips in (True, False)]
    tokens = prompts_of(40, 17, 9)
    sequences = [[pages.sequence(each) for each in tokens] for pages in ways]
    for spans in ([(0, 33, 1), (0, 9, 0), (0, 5, 2)], [(33, 34, 1), (9, 17, 1), (5, 9, 4)], [(34, 35, 1)]):
        found = [
            torch.cat(pages.forward(*[(sequence, *span) for sequence, span in zip(own, spans, strict=False)]))
            for pages, own in zip(ways, sequences, strict=True)
        ]
        assert torch.allclose(found[0], found[1], atol=1e-4)


@pytest.mark.parametrize("model_type", ["gemma2", "gpt_oss"])
def test_families_whose_attention_is_more(model_type: str) -> None:
    prompts = prompts_of(9, 23, 2, 14)
    module = build(model_type)
    alone = generate_alone(module, prompts, max_tokens=10)
    answers = {tuple(prompt): answer for prompt, answer in zip(prompts, alone, strict=True)}
    admit(module, device=CPU)
    assert generate_paged(engine_for(module, answers, in_strips=False), prompts, max_tokens=10) == alone


def test_nothing_waits_for_the_device() -> None:
    """A device without data cannot be asked: what needs a number from it fails there."""
    module = build("llama")
    admit(module, device=CPU)
    meta = torch.device("meta")
    steps = DeviceSteps(
        network=ModuleNetwork(module.to(meta)),
        cache=KVCache(num_blocks=8, block_size=4, dtype=torch.float32, device=meta, in_strips=False),
    )
    assert steps.gathers()
