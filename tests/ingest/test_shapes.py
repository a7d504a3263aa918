"""What is read out of each engine's shape: values, where they are from, and what is not told."""

from pathlib import Path
from typing import Any

import pytest

from batchspec.ingest import LogRecord, Origin, SkippedRow, SkipReason, read_logs

from .logs import FOREIGN, SUMMARY, body, read_rows

FIELDS = (
    "num_spec_steps",
    "num_accepted_draft_tokens",
    "num_draft_tokens",
    "num_spec_tokens",
    "acceptance_histogram",
    "per_step_accepted",
    "per_step_drafted",
    "num_drafted_per_position",
)
HISTOGRAM = [39, 1, 0, 3]
SGLANG_HISTOGRAM = [3, 5, 1, 12]


def exact(**values: Any) -> dict[str, tuple[Any, Origin]]:
    return {name: (value, Origin.EXACT) for name, value in values.items()}


def derived(**values: Any) -> dict[str, tuple[Any, Origin]]:
    return {name: (value, Origin.DERIVED) for name, value in values.items()}


def estimated(**values: Any) -> dict[str, tuple[Any, Origin]]:
    return {name: (value, Origin.ESTIMATED) for name, value in values.items()}


DOCUMENTED = exact(
    num_spec_steps=43,
    num_accepted_draft_tokens=10,
    num_draft_tokens=129,
    num_spec_tokens=3,
    acceptance_histogram=HISTOGRAM,
)
SGLANG = exact(num_spec_steps=21, num_accepted_draft_tokens=43) | derived(num_draft_tokens=63, num_spec_tokens=3)
SGLANG_FULL = SGLANG | exact(acceptance_histogram=SGLANG_HISTOGRAM)
TENSORRT = exact(
    num_spec_steps=20, num_accepted_draft_tokens=30, num_draft_tokens=60, acceptance_histogram=[8, 0, 6, 6]
)
WITH_K = exact(num_spec_tokens=3)
LM_STUDIO = exact(num_accepted_draft_tokens=176, num_draft_tokens=492)
ACCEPTED_31 = exact(num_accepted_draft_tokens=31)

# file: for each record the engine, the tokens of its output, and what it states; None where it states nothing
EXPECTED: dict[str, list[tuple[str, int | None, dict[str, tuple[Any, Origin]] | None]]] = {
    "vllm": [("vllm", 54, DOCUMENTED)],
    "vllm_detailed": [
        (
            "vllm",
            28,
            exact(
                num_spec_steps=8,
                num_accepted_draft_tokens=18,
                num_draft_tokens=32,
                num_spec_tokens=4,
                acceptance_histogram=[1, 1, 2, 3, 1],
                per_step_accepted=[2, 3, 1, 4, 2, 0, 3, 3],
                per_step_drafted=[4] * 8,
            ),
        ),
        (
            "vllm",
            1,
            exact(
                num_spec_steps=0,
                num_accepted_draft_tokens=0,
                num_draft_tokens=0,
                num_spec_tokens=4,
                acceptance_histogram=[0] * 5,
            ),
        ),
    ],
    "vllm_by_length": [
        (
            "vllm",
            20,
            exact(
                num_spec_steps=8,
                num_accepted_draft_tokens=8,
                num_draft_tokens=17,
                num_spec_tokens=3,
                acceptance_histogram=[3, 3, 1, 1],
                num_drafted_per_position=[8, 5, 4],
            ),
        )
    ],
    "vllm_null": [("unknown", 40, None)],
    "vllm_draft_era": [("vllm", 54, DOCUMENTED)],
    "vllm_offline": [("vllm", 54, DOCUMENTED | derived(num_spec_steps=43, num_accepted_draft_tokens=10))],
    "llama_swap": [("vllm", 60, ACCEPTED_31 | exact(num_draft_tokens=90))],
    "sglang": [("sglang", 64, SGLANG_FULL)],
    "sglang_stream": [("sglang", 64, SGLANG_FULL)],
    "sglang_choice": [("sglang", 64, SGLANG_FULL)],
    "sglang_native": [
        ("sglang", 64, SGLANG_FULL),
        ("sglang", 64, SGLANG_FULL),
        ("sglang", 64, SGLANG),
        ("sglang", 64, exact(num_spec_steps=21)),
    ],
    "sglang_zeros": [
        ("sglang", 64, exact(num_spec_steps=21)),
        (
            "sglang",
            3,
            exact(num_spec_steps=2, num_accepted_draft_tokens=1, acceptance_histogram=[1, 1])
            | derived(num_draft_tokens=6, num_spec_tokens=3),
        ),
    ],
    "sglang_several": [("sglang", 64, SGLANG_FULL), ("sglang", 30, exact(num_spec_steps=10))],
    "tokenspeed": [
        (
            "tokenspeed",
            40,
            exact(num_spec_steps=19) | estimated(num_accepted_draft_tokens=20, num_draft_tokens=76),
        )
    ],
    "tensorrt": [
        ("tensorrt-llm", 51, TENSORRT | WITH_K),
        ("tensorrt-llm", None, TENSORRT | WITH_K),
        ("tensorrt-llm", None, TENSORRT),
        ("tensorrt-llm", 9, {}),
    ],
    "tensorrt_perf_metrics": [
        ("tensorrt-llm", None, exact(num_accepted_draft_tokens=30, num_draft_tokens=60)),
        ("unknown", 9, None),
    ],
    "llama_cpp": [
        (
            "llama.cpp",
            256,
            exact(num_accepted_draft_tokens=167, num_draft_tokens=259) | estimated(num_spec_steps=88),
        ),
        ("unknown", 30, None),
    ],
    "mlx_vlm": [("mlx-vlm", 2, exact(num_spec_steps=1, num_accepted_draft_tokens=6, num_draft_tokens=7))],
    "lm_studio_stats": [("lm-studio", 300, LM_STUDIO)],
    "lm_studio_usage": [("lm-studio", 300, LM_STUDIO)],
    "lm_studio_sdk": [("lm-studio", 300, LM_STUDIO | derived(num_draft_tokens=492))],
    "tabbyapi": [("tabbyapi", None, ACCEPTED_31 | derived(num_draft_tokens=90))],
    "exllama": [("exllama", 80, ACCEPTED_31 | derived(num_draft_tokens=90))],
    "predictions": [
        ("prediction-tokens", 80, estimated(num_accepted_draft_tokens=31, num_draft_tokens=90)),
        ("unknown", 80, None),
    ],
    "tensorfold": [("tensorfold", None, ACCEPTED_31 | exact(num_draft_tokens=90)), ("unknown", None, None)],
    "mlc_llm": [
        ("mlc-llm", 30, estimated(num_spec_steps=10, num_accepted_draft_tokens=15, num_draft_tokens=29)),
    ],
    "spec_bench": [
        (
            "spec-bench",
            16,
            derived(
                num_spec_steps=7,
                num_accepted_draft_tokens=9,
                acceptance_histogram=[1, 4, 1, 1],
                per_step_accepted=[2, 3, 1, 1, 0, 1, 1],
            ),
        )
    ],
}


def records_of(name: str) -> list[LogRecord]:
    return [entry for entry in read_logs([FOREIGN / f"{name}.jsonl"]) if isinstance(entry, LogRecord)]


def stated(record: LogRecord) -> dict[str, tuple[Any, Origin]] | None:
    if record.acceptance is None:
        return None
    found = {name: (getattr(record.acceptance, name), record.acceptance.origin(name)) for name in FIELDS}
    return {name: pair for name, pair in found.items() if pair[1] is not Origin.ABSENT}


def test_every_file_is_expected() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in FOREIGN.glob("*.jsonl"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_shape_gives_what_it_states_and_nothing_else(name: str) -> None:
    found = [(record.engine, record.completion_tokens, stated(record)) for record in records_of(name)]
    assert found == EXPECTED[name]


def test_absent_is_none_and_none_is_absent() -> None:
    for name in EXPECTED:
        for record in records_of(name):
            for field in FIELDS if record.acceptance else ():
                is_absent = record.acceptance.origin(field) is Origin.ABSENT  # type: ignore[union-attr]
                assert is_absent == (getattr(record.acceptance, field) is None)


def test_the_engines_own_lengths_are_kept_apart() -> None:
    lengths = [record.acceptance.stated_length for record in records_of("sglang_native") if record.acceptance]
    assert lengths == [3.0476, 3.0476, 3.0476, None]
    iterations = [record.acceptance.stated_length for record in records_of("tensorrt") if record.acceptance]
    assert iterations == [2.5, 2.5, 1.0, 1.0]


def test_choices_that_speak_for_themselves_are_records_of_their_own() -> None:
    assert [(record.line, record.choice, record.num_choices) for record in records_of("tensorrt")] == [
        (1, 0, 1),
        (2, 0, 2),
        (2, 1, 2),
        (3, 0, 1),
    ]


def test_a_null_tells_how_many_choices_there_were() -> None:
    (record,) = records_of("vllm_null")
    assert record.num_choices == 2


def test_a_turn_that_failed_is_an_error() -> None:
    _, failed = read_logs([FOREIGN / "spec_bench.jsonl"])
    assert isinstance(failed, SkippedRow)
    assert (failed.reason, failed.category, failed.custom_id) == (SkipReason.ERROR, "qa", "82")


def test_a_category_and_an_id_beside_the_response_are_kept() -> None:
    (record,) = records_of("spec_bench")
    assert (record.category, record.custom_id) == ("writing", "81")


@pytest.mark.parametrize("name", ["vllm_draft_era", "vllm_offline", "sglang_choice", "tensorrt", "spec_bench"])
def test_the_choice_has_its_index(name: str) -> None:
    assert records_of(name)[0].choice == 0


def test_more_may_be_accepted_than_the_output_holds(tmp_path: Path) -> None:
    """A server's own numbers: 1 + 168 accepted + 33 steps are 202 tokens, of which a stop left 200."""
    block = {
        "acceptance_histogram": [2, 3, 2, 2, 4, 0, 1, 19],
        "num_spec_steps": 33,
        "num_accepted_draft_tokens": 168,
        "num_draft_tokens": 231,
        "num_spec_tokens": 7,
    }
    (record,) = read_rows(tmp_path / "log.jsonl", [body(block, tokens=200)])
    assert isinstance(record, LogRecord)
    assert record.acceptance is not None
    assert record.acceptance.num_accepted_draft_tokens == 168


@pytest.mark.parametrize("histogram", [[39, 1, 0, 3], [41, 1, 0, 3]])
def test_drafts_that_a_grammar_cut_to_nothing_may_be_steps_or_not(tmp_path: Path, histogram: list[int]) -> None:
    """They stand in a row of their own, and no position was drafted in them."""
    block = SUMMARY | {"acceptance_histogram": histogram, "num_spec_steps": sum(histogram)}
    block["acceptance_histogram_by_draft_length"] = {"0": [2], "3": [39, 1, 0, 3]}
    (record,) = read_rows(tmp_path / "log.jsonl", [body(block)])
    assert isinstance(record, LogRecord)
    assert record.acceptance is not None
    assert record.acceptance.num_drafted_per_position == [43, 43, 43]
