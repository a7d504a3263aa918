"""The benchmark as a whole, as small as it can be, on the embedded model."""

from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from batchspec.bench import machine, suite
from batchspec.bench.settings import BenchSettings, Part
from batchspec.bench.suite import run_bench
from batchspec.bench.tables import bench_parts
from batchspec.bench.write import write_bench
from batchspec.errors import UsageError
from batchspec.model.load import LoadedModel
from batchspec.report.markdown import parts_markdown
from tests.bench.schema import BENCH

IN_PROCESS = tuple(part for part in Part if part is not Part.START)
START = {
    "first_token": {
        "prompt_tokens": 3,
        "first_record_seconds": {"median": 2.5, "min": 2.0, "max": 3.0},
        "steps_seconds": {"imports": {"median": 1.5, "min": 1.0, "max": 2.0}},
    },
    "memory": {
        "max_num_seqs": 2,
        "peak_bytes": 700_000_000,
        "weight_bytes": 7_000_000,
        "kv_cache_bytes": 3_000_000,
        "other_bytes": 690_000_000,
    },
}


@pytest.fixture(autouse=True)
def small(embedded: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """No second loading, and a copy that is over at once."""
    monkeypatch.setattr(suite, "load_model", lambda *_, **__: embedded)
    monkeypatch.setattr(suite, "measure_start", lambda *_, **__: START["first_token"])
    monkeypatch.setattr(suite, "measure_memory", lambda *_, **__: START["memory"])
    copied = machine.measure_bandwidth
    monkeypatch.setattr(
        suite, "measure_bandwidth", lambda device, rounds: copied(device, rounds=rounds, num_bytes=2**20)
    )


def silent(_: str) -> None:
    pass


def test_a_model_whose_rows_are_screened(
    settings: BenchSettings, screened: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert screened.network.screened is not None
    monkeypatch.setattr(suite, "load_model", lambda *_, **__: screened)
    jsonschema.validate(run_bench(settings, say=silent), BENCH)


def test_every_part_is_measured_shown_and_written(settings: BenchSettings) -> None:
    said: list[str] = []
    document: dict[str, Any] = run_bench(settings, say=said.append)
    jsonschema.validate(document, BENCH)
    _check_steps(document["steps"])
    _check_throughput(document["throughput"])
    assert set(document["overhead"]["modes"]) == {"none", "ngram"}
    for mode in document["overhead"]["modes"].values():
        assert 0 < mode["outside_share"]["median"] < 1
        assert {"forward", "write"} < set(mode["seconds_by_station"])
    assert document["prefix"]["is_identical"]
    assert document["prefix"]["work_ratio"] > 1.5
    write_bench(document, settings.run_dir)
    markdown = (settings.run_dir / "bench.md").read_text()
    for title in ("Step time", "A step's time", "Throughput, 2 sequences", "Prefix caching", "First token", "Memory"):
        assert f"## {title}" in markdown
    assert "the texts are identical" in markdown
    assert any("round 2 of 2" in text for text in said)


def _check_steps(steps: dict[str, Any]) -> None:
    sizes = [(cell["rows"], cell["rows_per_sequence"], cell["num_sequences"]) for cell in steps["cells"]]
    assert sizes == [(1, 1, 1), (6, 1, 6), (6, 4, 2)]
    assert set(steps["matmuls"]) == {"1", "6"}


def _check_throughput(sizes: list[dict[str, Any]]) -> None:
    assert [size["max_num_seqs"] for size in sizes] == [1, 2]
    for size in sizes:
        assert list(size["engines"]) == ["none", "ngram", "ngram, detailed"]
        assert len(size["ratios"]) == 6
        for engine in size["engines"].values():
            assert engine["output_tokens"] == 2 * 4
            assert len(engine["rounds"]) == 2
        rates = {
            name: [run["output_tokens"] / run["seconds"] for run in engine["rounds"]]
            for name, engine in size["engines"].items()
        }
        ratio = next(each for each in size["ratios"] if (each["engine"], each["over"]) == ("ngram", "none"))
        pairs = sorted(above / below for above, below in zip(rates["ngram"], rates["none"], strict=True))
        assert (ratio["tokens_per_second"]["min"], ratio["tokens_per_second"]["max"]) == (pairs[0], pairs[-1])


def test_only_what_was_asked_for_is_measured(settings: BenchSettings) -> None:
    document = run_bench(replace(settings, parts=(Part.START,)), say=silent)
    jsonschema.validate(document, BENCH)
    assert [name for name in map(str, Part) if document[name] is not None] == ["start"]


@pytest.mark.parametrize(
    ("moment", "rounds", "later"),
    [
        ("throughput at 1 sequences, round 2 of 2", [1], 1),
        ("throughput at 2 sequences, round 1 of 2", [2], 0),
        ("throughput at 2 sequences, round 2 of 2", [2, 1], 1),
        ("prefix caching on", [2, 2], 0),
    ],
)
def test_what_is_complete_outlives_a_signal(
    settings: BenchSettings, moment: str, rounds: list[int], later: int
) -> None:
    """The round in which the signal comes is lost, and all that would follow."""

    def say(text: str) -> None:
        if text.startswith(moment):
            raise KeyboardInterrupt

    parts = (Part.THROUGHPUT, Part.PREFIX, Part.DRAFTERS)
    document = run_bench(replace(settings, parts=parts), say=say)
    jsonschema.validate(document, BENCH)
    assert [[len(engine["rounds"]) for engine in size["engines"].values()] for size in document["throughput"]] == [
        [number] * 3 for number in rounds
    ]
    assert document["prefix"] is document["drafters"] is None
    assert document["interrupted"] == {"num_rounds": later}


@pytest.mark.parametrize("moment", ["throughput at 1 sequences: warming up", "throughput at 1 sequences, round 1"])
def test_a_signal_before_anything_is_complete_leaves_nothing(settings: BenchSettings, moment: str) -> None:
    def say(text: str) -> None:
        if text.startswith(moment):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bench(replace(settings, parts=(Part.THROUGHPUT, Part.PREFIX)), say=say)


def test_texts_that_differ_are_told() -> None:
    prefix = {
        "num_requests": 2,
        "header_tokens": 8,
        "with": {"prefill_tokens": 4, "seconds": 1.0},
        "without": {"prefill_tokens": 8, "seconds": 1.0},
        "work_ratio": 2.0,
        "is_identical": False,
    }
    shown = dict.fromkeys(["interrupted", *map(str, Part)]) | {"prefix": prefix}
    model = {"name": "m", "dtype": "float32", "device": "cpu", "implementation": "batchspec"}
    machine = {"processor": "p", "num_cores": 1, "num_threads": 1, "capability": "c", "torch": "t"}
    copy = {"bytes_per_second": {"median": 1e9, "min": 1e9, "max": 1e9}}
    prompts = {"num_prompts": 1, "input": "i", "num_left_out": 0, "num_cut": 0, "num_plain": 0}
    settings = {"speculative": {"method": "none"}, "rounds": 1}
    document = {"model": model, "machine": machine | {"copy": copy}, "prompts": prompts, "settings": settings, **shown}
    assert "THE TEXTS DIFFER" in parts_markdown("Benchmark", bench_parts(document))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"max_tokens": 4096}, "--max-tokens 4096 leaves no room"),
        ({"contexts": (2048,), "parts": (Part.STEPS,)}, "--context 2048 leaves no room"),
    ],
)
def test_what_does_not_fit_the_model_is_a_sentence(
    settings: BenchSettings, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        run_bench(replace(settings, **changes), say=silent)
