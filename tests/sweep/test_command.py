"""The command: the table on stdout, progress on stderr, and mistakes as one sentence."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batchspec.report.layout import ABSENT
from batchspec.report.plain import parts_text
from batchspec.sweep import running
from batchspec.sweep.tables import sweep_parts
from tests.cli.calling import call

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rows_path: Path,
    tmp_path: Path,
    loads: list[object],
) -> Command:
    monkeypatch.setattr(running, "warm_up", lambda *_: None)
    usual = [str(rows_path), "--run-dir", str(tmp_path / "sweep"), "--device", "cpu", "--max-model-len", "96"]
    return lambda *args: call(monkeypatch, capsys, "sweep", *usual, *args)


def test_table_and_document(command: Command, tmp_path: Path) -> None:
    args = ("--grid", "method=ngram,none k=2 max_num_seqs=4", "--by", "category", "--temperature", "0")
    status, out, err = command(*args)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "model target · 8 requests · 2 points"
    table = lines[lines.index("Sweep") :]
    assert [line.split()[:2] for line in table if line.startswith(("ngram", "none"))] == [
        ["ngram", "2"],
        ["none", ABSENT],
    ]
    assert "over none: output tok/s over those of method none with the same max_num_seqs" in out
    assert "By category" in out
    assert "Reconciled: both accounts of 1 point agree exactly." in out
    assert "Identical outputs: 2 points give the same text, finish reason and number of tokens for all 8" in out
    assert "batchspec: point 1 of 2: method=ngram k=2 max_num_seqs=4" in err
    assert "8/8 requests" in err
    assert err.endswith(f"the comparison and all runs are in {tmp_path / 'sweep'}\n")
    status, out, err = command(*args, "--json")
    assert (status, json.loads(out)) == (0, json.loads((tmp_path / "sweep" / "sweep.json").read_text()))
    assert "point" not in err
    manifest = json.loads((tmp_path / "sweep" / "001-method=ngram-k=2-max_num_seqs=4" / "manifest.json").read_text())
    assert (manifest["parameters"]["temperature"], manifest["parameters"]["level"]) == (0.0, "summary")


def test_a_failed_requirement_is_an_exit_status(command: Command) -> None:
    status, _, err = command("--grid", "k=1", "--require", "acceptance_length>=3")
    assert status == 1
    assert "requirement acceptance_length>=3 (method=ngram k=1) failed: the value is 1." in err


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ((), "--grid"),
        (("--grid", "k=1", "--method", "none"), "--method"),
        (("--grid", "speed=9"), "unknown key 'speed'; the known keys are method, k, prompt_lookup_min"),
        (("--grid", "k=1", "--by", "engine"), "'engine'"),
        (("--grid", "k=1", "--temperature", "9"), "--temperature must be"),
        (("--grid", "method=none", "--require", "acceptance_length>=2"), "no point of the grid drafts"),
        (("--grid", "k=1", "--require", "engine:x:acceptance_length>=2"), "is not told by a sweep"),
        (("--grid", "k=1", "--require", "speed>=2"), "'speed' is no quantity"),
    ],
)
def test_mistakes(command: Command, tmp_path: Path, args: tuple[str, ...], sentence: str) -> None:
    status, out, err = command(*args)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert not (tmp_path / "sweep").exists()


def point(name: str, **changes: Any) -> dict[str, Any]:
    """A point of a document."""
    values = dict(item.split("=") for item in name.split())
    throughput = {"elapsed_seconds": 2.0, "prompt_tokens_per_second": 1.0, "output_tokens_per_second": 100.0}
    usual = {
        "point": name,
        "values": values,
        "error": None,
        "was_interrupted": False,
        "requests": {"num_requests": 3, "num_failed": 0},
        "throughput": throughput,
        "acceptance": None,
        "categories": {},
        "reconciliation": {"num_differences": 0},
        "baseline": "method=ngram k=1",
        "speedup": 1.0,
    }
    return usual | changes


def shown(*points: dict[str, Any], **changes: Any) -> str:
    document: dict[str, Any] = {
        "sweep": {"model": "m", "resolved": {"dtype": "bfloat16"}},
        "points": list(points),
        "fastest": None,
        "outputs": {"points": {}, "num_points": 1, "first_difference": None},
        "definitions": dict.fromkeys(
            ("pooled", "mean_acceptance_length", "tokens_per_decode_step", "draft_acceptance_rate"), "…"
        ),
    }
    return parts_text(sweep_parts(document | changes, by_category=False), width=200)


def test_what_is_wrong_is_said() -> None:
    text = shown(
        point("method=ngram k=1", reconciliation={"num_differences": 2}),
        point("method=ngram k=2", requests={"num_requests": 3, "num_failed": 1}),
        point("method=ngram k=3", error="no room", requests=None, throughput=None, reconciliation=None, speedup=None),
    )
    assert "Not reconciled: the accounts of method=ngram k=1 differ" in text
    assert "Reconciled:" not in text
    assert "Failed requests at method=ngram k=2: 1" in text
    assert "Not run: method=ngram k=3: no room" in text
    assert "Outputs are not compared: it takes two points that have answered a request." in text
    assert "over first: output tok/s over those of the first point" in text


def test_speeds_of_interrupted_runs_are_marked() -> None:
    text = shown(point("method=ngram k=1"), point("method=ngram k=2", was_interrupted=True, speedup=None))
    assert "100.0*" in text
    assert "100.0 " in text
    assert "*: was interrupted and did some of its work twice" in text
    assert "*" not in shown(point("method=ngram k=1"))


def test_where_outputs_part_is_shown_and_what_may_be_the_cause() -> None:
    place = {"choice": 0, "character": 7, "token": 2, "texts": ["one\x1b[2J", "other"]}
    first = {"a": "method=ngram k=1", "b": "method=ngram k=2", "custom_id": "r\n1", "what": "text", **place}
    counts = {"method=ngram k=2": {"num_compared": 3, "num_with_token_ids": 0, "num_different": 2}}
    outputs = {"points": counts, "num_points": 2, "first_difference": first}
    text = shown(point("method=ngram k=1"), point("method=ngram k=2"), outputs=outputs)
    assert (
        "Outputs differ (text) for 2 requests between A (method=ngram k=1) and B (method=ngram k=2), first for r�1 at "
        "choice 0, character 7, token 2, counted from 0." in text
    )
    assert "A: one�[2J" in text
    assert "In bfloat16 a text can depend on the batch" in text
    assert "Identical" not in text


def test_more_keys_than_a_table_has_room_for_are_one_column() -> None:
    names = [f"method=suffix k={i} max_num_seqs={i} suffix_decoding_max_tree_depth={i}" for i in (1, 2)]
    assert "suffix decoding" in " ".join(shown(*map(point, names)).split())
    names = [f"{name} suffix_decoding_min_token_prob=0.{i}" for i, name in enumerate(names)]
    text = shown(*map(point, names))
    assert "suffix_decoding_min_token_prob=0.1" in text
    assert "point" in text


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--max-num-seqs", "2"], "--max-num-seqs is a grid key: write max_num_seqs=2 in --grid"),
        (["--method=ngram"], "--method is a grid key: write method=ngram in --grid"),
        (["--num-speculative-tokens", "3"], "--num-speculative-tokens is a grid key: write k=3 in --grid"),
        (["--adaptive"], "--adaptive is a grid key: write adaptive=true in --grid"),
        (
            ["--no-enable-prefix-caching"],
            "--no-enable-prefix-caching is a grid key: write enable_prefix_caching=false in --grid",
        ),
        (["--wrong", "2"], "no such option: --wrong"),
    ],
)
def test_a_flag_of_run_that_is_a_grid_key_is_led_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], flags: list[str], expected: str
) -> None:
    status, out, err = call(monkeypatch, capsys, "sweep", "in.jsonl", "--grid", "k=1", *flags)
    assert (status, out) == (2, "")
    assert err.startswith(f"batchspec: {expected}")
