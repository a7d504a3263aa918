"""Whole comparisons: which requests are paired, which are left out, and what the tables say of them."""

import json
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchspec.compare.comparing import compare_runs
from batchspec.compare.document import pairs_document
from batchspec.compare.sides import Numbers, Side
from batchspec.compare.tables import comparison_parts
from batchspec.errors import UsageError
from batchspec.report.layout import Paragraph
from tests.cli.calling import call

from .making import answer, failure, write_run

ORACLE = Path(__file__).parents[1] / "data" / "oracle"


def oracle(folder: str, group: str = "greedy") -> str:
    return str(ORACLE / folder / f"{group}.responses.jsonl")


def test_what_is_paired_and_what_is_not(tmp_path: Path) -> None:
    """In any order of the rows."""
    a = [answer("1"), answer("2"), failure("3"), answer("4"), failure("5"), answer("6"), failure("7")]
    b = [answer("2"), answer("1"), answer("3"), failure("4"), failure("5"), answer("8")]
    document = compare_runs(write_run(tmp_path / "a.jsonl", a), write_run(tmp_path / "b.jsonl", b))
    assert document["pairs"] == {
        "num_pairs": 2,
        "failed_in_one": {"num_requests": 2, "named": ["3", "4"]},
        "failed_in_both": {"num_requests": 1, "named": ["5"]},
        "left_out": {"num_requests": 0, "named": []},
        "repeated": {"num_requests": 0, "named": []},
        "only_in_a": {"num_requests": 2, "named": ["6", "7"]},
        "only_in_b": {"num_requests": 1, "named": ["8"]},
    }
    assert (document["runs"]["a"]["num_served"], document["runs"]["a"]["num_failed"]) == (4, 3)


def test_texts_of_every_choice_and_stream(tmp_path: Path) -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "he"}}]}
    rest = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "llo"}}]}
    last = {"id": "c", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    stream = {"custom_id": "s", "response": {"status_code": 200, "body": [chunk, rest, last]}, "error": None}
    a = [answer("s"), answer("n", texts=["x", "y"]), answer("t", texts=["abc"], token_ids=[1, 2])]
    b = [stream, answer("n", texts=["x", "z"]), answer("t", texts=["abc"], token_ids=[3])]
    texts = compare_runs(write_run(tmp_path / "a.jsonl", a), write_run(tmp_path / "b.jsonl", b))["texts"]
    assert (texts["num_compared"], texts["num_equal"], texts["num_different"]) == (3, 2, 1)
    assert texts["num_equal_of_other_tokens"] == 1
    assert {one["custom_id"]: one["choice"] for one in texts["divergences"]} == {"n": 1, "t": 0}


def test_token_ids_and_reasons_that_are_something_else_are_not_told(tmp_path: Path) -> None:
    """Whatever stands there, deeper than JSON can be written again included."""
    deep: Any = 1
    for _ in range(400):
        deep = [deep]
    odd = [answer("deep", token_ids=deep), answer("mixed", token_ids=[1, True]), answer("reason"), answer("beside")]
    odd[2]["response"]["body"]["choices"][0]["finish_reason"] = deep
    odd[3]["response"]["body"]["metrics"]["batchspec"] = {"sequences": [{"token_ids": deep}]}
    path = tmp_path / "odd.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in odd))
    for other in (str(path), write_run(tmp_path / "b.jsonl", [answer(row["custom_id"]) for row in odd])):
        texts = compare_runs(str(path), other)["texts"]
        assert (texts["num_compared"], texts["num_equal"]) == (4, 4)


def test_captures_with_other_drafts_have_equal_texts() -> None:
    """And speculation is what differs: the same 24 requests, k = 3 and k = 5."""
    document = compare_runs(oracle("ngram_k3_n1-3"), oracle("ngram_k5_n2-4"))
    assert document["texts"]["num_equal"] == 24
    pooled = document["measures"][0]
    assert pooled["name"] == "mean_acceptance_length"
    assert pooled["difference"]["low"] > 0
    assert {one["detail"] for one in document["measures"] if one["name"] == "marginal_rate"} == {"0", "1", "2"}


def test_a_run_against_itself_differs_nowhere() -> None:
    document = compare_runs(oracle("ngram_k3_n1-3", "edges"), oracle("ngram_k3_n1-3", "edges"))
    assert document["texts"]["num_different"] == 0
    for measure in document["measures"]:
        bounds = (None, None) if measure["num_pairs"] == 1 else (0.0, 0.0)
        assert measure["difference"] == {"value": 0.0, "low": bounds[0], "high": bounds[1]}


def test_without_metrics_texts_and_times_are_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = call(monkeypatch, capsys, "compare", oracle("none"), oracle("ngram_k3_n1-3"))
    assert (status, err) == (0, "")
    assert "No acceptance to compare: no request has metrics in both runs." in out
    assert "Texts: 24 of 24 equal" in out
    assert "ms per output token" in out


def test_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    a = [answer(str(i), [(3, 1), (3, i % 3)]) for i in range(25)]
    b = [answer(str(i), [(3, 3), (3, i % 3)], texts=["hello" if i else "help!"]) for i in range(24)]
    paths = write_run(tmp_path / "a.jsonl", a), write_run(tmp_path / "b.jsonl", b)
    status, out, _ = call(monkeypatch, capsys, "compare", *paths)
    assert status == 0
    for text in (
        "Pairs: 24 requests served in both",
        "Not compared, only in A: 1 (24)",
        "B accepts more than A: acceptance length +1.0000, 95 % interval +1.0000 to +1.0000.",
        "Texts: 23 of 24 equal",
        "First different character: at 3 to 3, median 3 (from 0)",
        "0: character 3",
        "  A: hello",
        "  B: help!",
        "position 2",
    ):
        assert text in out
    status, out, _ = call(monkeypatch, capsys, "compare", *paths, "--json")
    assert orjson.loads(out)["pairs"]["num_pairs"] == 24


@pytest.mark.parametrize(
    ("requirement", "status"),
    [
        ("acceptance_length>=3.5", 0),
        ("acceptance_length>=4.5", 1),
        ("mean:acceptance_length>3.9", 0),
        ("position[0]>=0.7", 0),
        ("position[0]<0.7", 1),
        ("ratio:acceptance_length>=1.3", 0),
        ("ratio:acceptance_length>=1.5", 1),
        ("ratio:acceptance_rate<=1", 0),
        ("tokens_per_decode_step>=1", 1),
        ("category:code:acceptance_length>=1", 1),
    ],
)
def test_the_gate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], requirement: str, status: int
) -> None:
    """On the new run, or on the ratio; what the runs do not tell does not hold."""
    args = ("compare", oracle("ngram_k3_n1-3"), oracle("ngram_k5_n2-4"), "--json", "--require", requirement)
    ended, out, err = call(monkeypatch, capsys, *args)
    (judged,) = orjson.loads(out)["requirements"]
    assert (ended, judged["holds"], judged["require"]) == (status, status == 0, requirement)
    assert err.startswith(f"batchspec: requirement {requirement} failed") if status else not err


@pytest.mark.parametrize(
    ("requirement", "value"),
    [
        ("category:code:acceptance_length>=9", 3.0),
        ("category:code:mean:acceptance_length>=9", 3.0),
        ("category:code:acceptance_rate>=9", 2 / 3),
        ("category:code:position[2]>=9", 0.0),
        ("ratio:category:chat:acceptance_length>=9", 0.5),
    ],
)
def test_a_gate_on_a_category_is_told_the_value(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    requirement: str,
    value: float,
) -> None:
    old = [answer(i, [(3, 3)], category="code" if i in "ab" else "chat") for i in "abcd"]
    new = [answer(i, [(3, 2 if i in "ab" else 1)], category="code" if i in "ab" else "chat") for i in "abcd"]
    paths = write_run(tmp_path / "a.jsonl", old), write_run(tmp_path / "b.jsonl", new)
    _, out, _ = call(monkeypatch, capsys, "compare", *paths, "--json", "--require", requirement)
    (judged,) = orjson.loads(out)["requirements"]
    assert judged["value"] == value
    assert (judged["low"], judged["high"]) != (None, None)


def test_one_request_has_no_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither in a table nor at the gate: of all pairs, of a category, or where the others have no step."""
    rows = [answer("1", [(3, 1)], category="code"), answer("2", [(3, 3)], category="chat"), answer("3", [])]
    path = write_run(tmp_path / "a.jsonl", [*rows, answer("4", [(3, 2)], category="chat")])
    args = ("compare", path, path, "--json", "--require", "category:code:acceptance_length>=9")
    _, out, err = call(monkeypatch, capsys, *args)
    assert "interval" not in err
    lengths = [one for one in orjson.loads(out)["measures"] if one["name"] == "mean_acceptance_length"]
    assert {one["detail"]: one["difference"]["low"] for one in lengths if one["weighting"] == "pooled"} == {
        None: 0.0,
        "category chat": 0.0,
        "category code": None,
    }
    alone = write_run(tmp_path / "b.jsonl", [rows[0], rows[2]])
    out = call(monkeypatch, capsys, "compare", alone, alone)[1]
    assert "Too few requests to say which run accepts more." in out
    assert " to " not in out.split("interval", 2)[1]


MISTAKES: list[tuple[list[str], str]] = [
    ([oracle("none"), "missing.jsonl"], "missing.jsonl cannot be read"),
    ([oracle("none"), "."], "is a directory without responses.jsonl"),
    ([oracle("none"), "-"], "cannot be standard input"),
    ([oracle("none"), oracle("ngram_k3_n1-3", "edges")], "have no served request in common"),
    ([oracle("none"), oracle("none"), "--require", "speed>=1"], "is no quantity"),
    ([oracle("none"), oracle("none"), "--require", "file:x:acceptance_length>=1"], "is not told by a comparison"),
    ([oracle("none"), oracle("none"), "--require", "ratio:macro:acceptance_length>=1"], "is not told by a comparison"),
    ([oracle("none")], "missing argument"),
]


@pytest.mark.parametrize(("args", "expected"), MISTAKES, ids=[expected for _, expected in MISTAKES])
def test_a_mistake_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: list[str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = call(monkeypatch, capsys, "compare", *args)
    assert (status, out) == (2, "")
    assert err.startswith("batchspec: ")
    assert err.count("\n") == 1
    assert expected in err


def test_a_run_of_which_nothing_was_served_says_why(tmp_path: Path) -> None:
    good = write_run(tmp_path / "good.jsonl", [answer("1")])
    for name, rows, expected in (
        (
            "failed",
            [failure("1")],
            "failed.jsonl has no served request that could be compared: the first row failed with: no",
        ),
        (
            "wrong",
            [answer("1", [(3, 1)], beside={"num_decode_steps": 9, "num_discarded_tokens": 0})],
            r"wrong.jsonl line 1 \(1\) is left out: completion_tokens is 10, but",
        ),
        (
            "long",
            [answer("x" * 5000, [(3, 1)], beside={"num_decode_steps": 9, "num_discarded_tokens": 0})],
            r"long.jsonl line 1 \(x{60}…\) is left out: completion_tokens is 10, but",
        ),
        ("empty", [], "it holds no responses"),
        ("nameless", [{key: value for key, value in answer("1").items() if key != "custom_id"}], "no row has an id"),
    ):
        with pytest.raises(UsageError, match=expected):
            compare_runs(good, write_run(tmp_path / f"{name}.jsonl", rows))


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    twice = write_run(tmp_path / "a.jsonl", [answer("1"), answer("2"), answer("1")])
    with pytest.raises(UsageError, match='has the id "1" in line 1 and in line 3'):
        compare_runs(twice, twice)


def test_a_failed_row_does_not_spoil_the_served_one_of_its_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In either order; a request that was never served is no repeated one."""
    rows = [answer("1", [(3, 1)]), answer("2"), failure("1"), failure("3"), failure("3")]
    monkeypatch.chdir(tmp_path)
    paths = write_run(Path("a.jsonl"), rows), write_run(Path("b.jsonl"), rows[::-1])
    status, out, err = call(monkeypatch, capsys, "compare", *paths)
    assert (status, err) == (0, "")
    assert "a.jsonl, served 2, failed 2\n" in out
    assert "Pairs: 2 requests served in both" in out
    assert "Not compared, failed rows with the id of a served one: 1 (1)" in out
    assert "Not compared, failed in both runs: 1 (3)" in out


def test_rows_that_cannot_be_believed_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cut line, and metrics that contradict each other: neither failed, and neither is compared."""
    a = [answer(str(i), [(3, 1)]) for i in range(4)]
    b = [*a[:2], answer("2", [(3, 1)])]
    b[2]["response"]["body"]["metrics"]["speculative_decoding"]["num_draft_tokens"] = 9
    monkeypatch.chdir(tmp_path)
    paths = write_run(Path("a.jsonl"), a), write_run(Path("b.jsonl"), b)
    with Path(paths[1]).open("ab") as file:
        file.write(orjson.dumps(a[3])[:-9])
    status, out, err = call(monkeypatch, capsys, "compare", *paths)
    assert status == 1
    assert [line.split(": ")[1] for line in err.splitlines()] == [
        "b.jsonl line 3 (2) is left out",
        "b.jsonl line 4 is left out",
    ]
    assert "B: b.jsonl, served 2, failed 0, left out 2\n" in out
    assert "Not compared, left out, as standard error says: 1 (2)" in out
    assert "Not compared, failed" not in out


def test_rows_too_many_to_be_named_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [write_run(tmp_path / name, [answer("1")]) for name in ("a.jsonl", "b.jsonl")]
    with Path(paths[0]).open("ab") as file:
        file.write(b"{\n" * 23)
    status, _, err = call(monkeypatch, capsys, "compare", *paths)
    assert (status, err.count("\n")) == (1, 21)
    assert err.endswith(f"3 more rows of {paths[0]} are left out\n")


def test_run_directories_tell_what_was_set_differently(tmp_path: Path) -> None:
    def run(name: str, **parameters: Any) -> str:
        directory = tmp_path / name
        directory.mkdir()
        write_run(directory / "responses.jsonl", [answer("1", [(3, 1)]), answer("2", [(3, 2)])])
        manifest = {"batchspec_version": "1", "parameters": parameters, "model": {}, "dataset": {"path": "in.jsonl"}}
        (directory / "manifest.json").write_bytes(orjson.dumps(manifest))
        report = {"throughput": {"output_tokens_per_second": 100.0}}
        (directory / "report.json").write_bytes(orjson.dumps(report))
        return str(directory)

    document = compare_runs(run("old", method="ngram", seed=0), run("new", method="suffix", seed=0))
    assert document["changed_settings"] == ['--method was "ngram", now "suffix"']
    assert document["throughput"]["b"] == {"output_tokens_per_second": 100.0}
    texts = [part.text for part in comparison_parts(document) if isinstance(part, Paragraph)]
    (said,) = [text for text in texts if text.startswith("Throughput")]
    assert said.endswith("1.000 times A (one run each; the first run of an installation also compiles)")
    (tmp_path / "new" / "manifest.json").write_text("{}")
    (tmp_path / "new" / "report.json").unlink()
    document = compare_runs(str(tmp_path / "old"), str(tmp_path / "new"))
    assert document["changed_settings"] is None
    assert document["throughput"]["b"] is None


def test_many_requests_are_told_apart_at_once() -> None:
    """Not every request of one run against every request of the other, which would take minutes here."""
    sides = [Side(path=name, requests={f"{name}{i}": Numbers(line=i) for i in range(30_000)}) for name in "ab"]
    started = time.process_time()
    document = pairs_document(*sides, num_pairs=0)
    assert time.process_time() - started < 5
    assert document["only_in_a"] == {"num_requests": 30_000, "named": sorted(sides[0].requests)[:8]}
