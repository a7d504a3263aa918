"""Drafters beside each other on a file as it is, on the embedded model."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from batchspec.bench.drafters import measure_drafters
from batchspec.bench.entries import Entry, best_rival, entries_for
from batchspec.bench.race import Race
from batchspec.bench.settings import BenchSettings, Part
from batchspec.bench.subject import WITHOUT, Subject
from batchspec.bench.tables import bench_parts
from batchspec.bench.whole_file import read_whole_file
from batchspec.drafting import SpeculativeConfig
from batchspec.errors import UsageError
from batchspec.files import RowDefaults
from batchspec.report.layout import Table
from batchspec.report.markdown import parts_markdown
from tests.bench.schema import DRAFTERS
from tests.bench.test_command import EMPTY

ROWS: list[dict[str, Any]] = [
    {"prompt": "Record: city: Oslo; team: sales\nJSON:", "max_tokens": 20, "temperature": 0},
    {"messages": [{"role": "user", "content": "Number these entries:\nred cup\nOslo"}], "max_tokens": 12, "seed": 3},
    {"prompt": "List: 1, 2, 1, 2, 1\nNext 3:", "max_tokens": 12, "temperature": 0, "stop": ["2, 1, 2"]},
    {"prompt": 5},
]
ALL = ["none", "ngram", "suffix", "draft_model", "auto", "none, changed", "recall", "auto, recalling"]


@pytest.fixture
def settings(settings: BenchSettings) -> BenchSettings:
    lines = [json.dumps({"custom_id": f"r{number}"} | row) for number, row in enumerate(ROWS)]
    Path(settings.input).write_text("\n".join(lines) + "\n")
    return replace(settings, rounds=1, parts=(Part.DRAFTERS,))


def measure(subject: Subject, settings: BenchSettings) -> tuple[dict[str, Any], list[str]]:
    said: list[str] = []
    return measure_drafters(subject, settings, say=said.append), said


def test_every_drafter_is_measured_at_every_size(subject: Subject, settings: BenchSettings) -> None:
    document, said = measure(subject, settings)
    jsonschema.validate(document, DRAFTERS)
    assert (document["num_requests"], document["num_left_out"], document["num_changed"]) == (3, 1, 3)
    assert document["is_identical"]
    assert [size["max_num_seqs"] for size in document["sizes"]] == [1, 2]
    for size in document["sizes"]:
        rows = size["rows"]
        assert list(rows) == [*ALL, "recall, unchanged"]
        assert rows["none"]["accepted_per_draft"] is None
        assert rows["none"]["tokens_per_decode_step"] == 1
        for row in rows.values():
            counts = row["counts"]
            assert counts["num_decode_steps"] <= counts["num_decoded_tokens"] == row["output_tokens"] - 3
            assert sum(row["accepted_by_source"].values()) == counts["num_accepted_draft_tokens"]
        assert len({row["output_tokens"] for row in rows.values() if not row["is_changed"]}) == 1
        assert rows["recall, unchanged"]["accepted_per_draft"] > 4
        assert (rows["none"]["over_none"]["median"], rows["none, changed"]["over_none"]["median"]) == (1, 1)
    assert "drafters at 2 sequences, round 1 of 1" in said


def test_drafters_keep_complete_rounds_when_a_signal_comes(subject: Subject, settings: BenchSettings) -> None:
    def say(text: str) -> None:
        if text == "drafters at 2 sequences, round 2 of 3":
            raise KeyboardInterrupt

    few = replace(settings, drafters=("none", "ngram"), rounds=3)
    document = measure_drafters(subject, few, say=say)
    assert [[len(row["rounds"]) for row in size["rows"].values()] for size in document["sizes"]] == [[3, 3], [1, 1]]


def test_the_tables_show_every_row(subject: Subject, settings: BenchSettings) -> None:
    few = replace(settings, drafters=("none", "recall"), max_num_seqs=(2,))
    document, _ = measure(subject, few)
    shown: Any = EMPTY | {"drafters": document}
    tables = [part for part in bench_parts(shown) if isinstance(part, Table)]
    assert [table.title for table in tables] == ["Drafters", "What became of the drafts"]
    for table in tables:
        assert [row[1] for row in table.rows] == ["none", "none, changed", "recall", "recall, unchanged"]
        assert all(len(row) == len(table.columns) for row in table.rows)
    markdown = parts_markdown("Benchmark", bench_parts(shown))
    assert "the answers are identical" in markdown
    assert "drafts by" not in markdown
    shown["drafters"]["is_identical"] = False
    assert "SOME ANSWERS DIFFER" in parts_markdown("Benchmark", bench_parts(shown))


def test_an_answer_that_a_drafter_changes_is_a_sentence(subject: Subject, settings: BenchSettings) -> None:
    file = read_whole_file(settings.input, column=None, defaults=RowDefaults())
    longer = replace(file.content[2], sampling=replace(file.content[2].sampling, max_tokens=3, stop=()))
    files = {False: file}
    race = Race(subject, files)
    race.run(Entry(name="none", config=WITHOUT), max_num_seqs=2)
    files[False] = replace(file, content=(*file.content[:2], longer))
    with pytest.raises(UsageError, match="the drafter ngram changed 1 answers, that to r2 first"):
        race.run(Entry(name="ngram", config=SpeculativeConfig()), max_num_seqs=2)


def test_a_file_without_a_request_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("{}\n")
    with pytest.raises(UsageError, match="holds no request"):
        read_whole_file(str(tmp_path / "in.jsonl"), column=None, defaults=RowDefaults())


def test_a_model_without_a_draft_model_goes_without_one(settings: BenchSettings) -> None:
    other = replace(settings, model="some-model", drafters=("none", "draft_model", "auto"))
    assert [entry.name for entry in entries_for(other, earlier="")] == ["none", "auto"]
    given = replace(other, draft_model="small", num_speculative_tokens=5)
    entries = {entry.name: entry.config for entry in entries_for(given, earlier="")}
    assert {name: (config.model, config.num_speculative_tokens) for name, config in entries.items()} == {
        "none": (None, 0),
        "draft_model": ("small", 5),
        "auto": ("small", 5),
    }


def test_drafters_have_the_defaults_of_a_run(settings: BenchSettings) -> None:
    configs = {entry.name: entry.config for entry in entries_for(settings, earlier="responses.jsonl")}
    assert configs["ngram"] == SpeculativeConfig()
    assert configs["suffix"].num_speculative_tokens == 8
    assert configs["recall"].path == configs["auto, recalling"].path == "responses.jsonl"
    assert configs["auto"].path is None
    assert [name for name, config in configs.items() if config.adaptive] == ["auto", "auto, recalling"]


def test_rivals_are_fixed_choices_that_know_no_more(settings: BenchSettings) -> None:
    entries = entries_for(settings, earlier="responses.jsonl")
    rates = {entry.name: float(number) for number, entry in enumerate(entries)}
    best = {entry.name: best_rival(entry, entries, rates) for entry in entries}
    assert {best[name] for name in ("none", "ngram", "suffix", "draft_model")} == {"draft_model"}
    assert best["auto"] == "suffix"  # it has no draft model unless one is given
    given = entries_for(replace(settings, draft_model="small"), earlier="responses.jsonl")
    assert best_rival(next(each for each in given if each.name == "auto"), given, rates) == "draft_model"
    assert best["none, changed"] == "none, changed"
    assert best["recall"] == best["auto, recalling"] == "recall"
    assert best["recall, unchanged"] == "recall, unchanged"
