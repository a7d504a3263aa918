"""Shards served by themselves and merged: the same run as in one process, or a sentence that names what is wrong."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batchspec.drafting import SpeculativeConfig
from batchspec.errors import UsageError
from batchspec.files import RowDefaults
from batchspec.job.outcome import ExitStatus
from batchspec.job.shard import Shard
from batchspec.scaleout.merging import MergeSettings, merge_shards
from tests.cli.calling import call
from tests.job.conftest import RunLines
from tests.job.test_resume import stop_after
from tests.scaleout.comparing import MIXED_ROWS, assert_same_run, document, records_of

ROWS = MIXED_ROWS[:6]


def serve_shards(
    run_lines: RunLines, directory: Path, rows: list[object], *, count: int = 3, **settings: object
) -> None:
    for index in range(count):
        shard = Shard(index=index, count=count)
        run_lines(rows, run_dir=directory / shard.directory, shard=shard, **settings)


def test_three_shards_merged_are_the_run_in_one_process(run_lines: RunLines, tmp_path: Path) -> None:
    run_lines(MIXED_ROWS, run_dir=tmp_path / "single")
    serve_shards(run_lines, tmp_path / "shards", MIXED_ROWS)
    outcome = merge_shards(MergeSettings(directories=[tmp_path / "shards"]))
    assert outcome.status is ExitStatus.FAILURES, "three lines cannot be served"
    assert_same_run(tmp_path / "shards", tmp_path / "single")
    assert [part["num_records"] for part in document(tmp_path / "shards", "manifest.json")["merged_from"]] == [6, 5, 5]
    again = merge_shards(MergeSettings(directories=sorted((tmp_path / "shards").glob("shard-*"))))
    assert "nothing was done" in again.sentences[0]
    assert again.report == json.loads((tmp_path / "shards" / "report.json").read_text())
    (tmp_path / "shards" / "responses.jsonl").unlink()
    with pytest.raises(UsageError, match=r"shards/responses.jsonl cannot be read"):
        merge_shards(MergeSettings(directories=[tmp_path / "shards"]))


def test_a_shard_that_was_interrupted_goes_on_where_it_stopped(
    run_lines: RunLines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run_lines(MIXED_ROWS, run_dir=tmp_path / "single")
    serve_shards(run_lines, tmp_path, MIXED_ROWS, count=2)
    settings = {"run_dir": tmp_path / "shard-1-of-2", "shard": Shard(index=1, count=2), "overwrite": True}
    with monkeypatch.context() as patch:
        stop_after(patch, 6)
        outcome, _ = run_lines(MIXED_ROWS, **settings)
    assert outcome.status is ExitStatus.INTERRUPTED
    with pytest.raises(UsageError, match=r"shard 1/2 in .* is not finished \(interrupted\)"):
        merge_shards(MergeSettings(directories=[tmp_path], run_dir=tmp_path / "merged"))
    run_lines(MIXED_ROWS, **settings | {"overwrite": False})
    merge_shards(MergeSettings(directories=[tmp_path], run_dir=tmp_path / "merged"))
    assert_same_run(tmp_path / "merged", tmp_path / "single", redone=True)
    row = document(tmp_path / "merged", "report.json")["reconciliation"]["rows"][0]
    assert row["unreported"]["interrupted"] > 0


def _cut_responses(directory: Path) -> None:
    path = directory / "shard-1-of-3" / "responses.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def _repeat_a_record(directory: Path) -> None:
    path = directory / "shard-1-of-3" / "responses.jsonl"
    first, *_ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first * 2)


def _swap_responses(directory: Path) -> None:
    shutil.copy(directory / "shard-0-of-3" / "responses.jsonl", directory / "shard-1-of-3")


def _edit_record(number: int, edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        path = directory / "shard-1-of-3" / "responses.jsonl"
        records = [json.loads(line) for line in path.read_text().splitlines()]
        edit(records[number - 1]["response"])
        path.write_text("".join(json.dumps(record) + "\n" for record in records))

    return damage


def _set_drafted(number: int) -> Callable[[dict[str, Any]], object]:
    return lambda response: response["body"]["metrics"]["speculative_decoding"].update(num_draft_tokens=number)


def _forget_metrics(response: dict[str, Any]) -> None:
    del response["body"]["metrics"]


def _forget_body(response: dict[str, Any]) -> None:
    del response["body"]


def _write(name: str, value: object, part: str) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        path = directory / "shard-1-of-3" / "manifest.json"
        manifest = json.loads(path.read_text())
        manifest[part][name] = value
        path.write_text(json.dumps(manifest))

    return write


DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (lambda at: shutil.rmtree(at / "shard-1-of-3"), r"shard 1/3 is missing: .* run --shard 1/3"),
    (lambda at: shutil.copytree(at / "shard-1-of-3", at / "shard-2-of-4"), r"shard 1/3 is there twice"),
    (
        lambda at: (at / "shard-1-of-3" / "checkpoint.json").unlink(),
        r"shard 1/3 in .*shard-1-of-3 has lost its counters",
    ),
    (lambda at: (at / "shard-1-of-3" / "responses.jsonl").unlink(), r"shard-1-of-3/responses.jsonl cannot be read"),
    (
        lambda at: (at / "shard-1-of-3" / "manifest.json").write_text("{"),
        r"shard-1-of-3/manifest.json is not a manifest that batchspec wrote: it is damaged: ",
    ),
    (_cut_responses, r"shard-1-of-3/responses.jsonl holds 1 records, and its manifest says 2"),
    (_repeat_a_record, r"shard-1-of-3/responses.jsonl has no record of row 4"),
    (
        _edit_record(2, _set_drafted(1)),
        r"shard 1/3 is damaged: .*shard-1-of-3/responses.jsonl line 2 \(.*--overwrite",
    ),
    (
        _edit_record(1, _forget_metrics),
        r"shard 1/3 is damaged: .*shard-1-of-3/responses.jsonl holds records whose num_spec_steps sum up to",
    ),
    (
        _edit_record(2, _forget_body),
        r"shard 1/3 is damaged: .*shard-1-of-3/responses.jsonl line 2 is not a record",
    ),
    (_swap_responses, r"shard-1-of-3/responses.jsonl line 1 answers row 0, which is not in shard 1/3"),
    (_write("sha256", "0" * 64, "dataset"), r"shard-1-of-3 does not belong with .*shard-0-of-3: the input's sha256"),
    (_write("fingerprint", "f", "model"), r"shard-1-of-3 .*the model's fingerprint"),
    (_write("temperature", 0.5, "parameters"), r"shard-1-of-3 .*--temperature is 0.5 in the former and null"),
    (_write("device", "cuda", "resolved"), r"shard-1-of-3 .*the resolved device is \"cuda\""),
]


def test_what_does_not_belong_together_is_refused_and_named(run_lines: RunLines, tmp_path: Path) -> None:
    serve_shards(run_lines, tmp_path / "good", ROWS)
    for number, (damage, expected) in enumerate(DAMAGE):
        at = tmp_path / f"damaged-{number}"
        shutil.copytree(tmp_path / "good", at)
        damage(at)
        with pytest.raises(UsageError, match=expected) as refusal:
            merge_shards(MergeSettings(directories=[at]))
        assert "\n" not in str(refusal.value)
        assert not (at / "manifest.json").exists(), "nothing is written before all is known to be right"
    merged, good = tmp_path / "good" / "manifest.json", MergeSettings(directories=[tmp_path / "good"])
    merged.write_text("{")
    with pytest.raises(UsageError, match=r"good/manifest.json is not a manifest .*: use --overwrite"):
        merge_shards(good)
    assert merge_shards(replace(good, overwrite=True)).status is ExitStatus.DONE


def test_a_real_shard_of_another_input_or_of_other_parameters_is_named(run_lines: RunLines, tmp_path: Path) -> None:
    second = Shard(index=1, count=2)
    run_lines(ROWS, run_dir=tmp_path / "a" / "shard-0-of-2", shard=Shard(index=0, count=2))
    run_lines(MIXED_ROWS[:7], name="other", run_dir=tmp_path / "other", shard=second)
    run_lines(ROWS, run_dir=tmp_path / "hot", shard=second, defaults=RowDefaults(min_p=0.1))
    for name, expected in {"other": "the input's sha256", "hot": r"--min-p is 0\.1"}.items():
        directories = [tmp_path / "a" / "shard-0-of-2", tmp_path / name]
        with pytest.raises(UsageError, match=rf"{name} does not belong with .*{expected}"):
            merge_shards(MergeSettings(directories=directories, run_dir=tmp_path / "merged"))
    onto_a_shard = MergeSettings(directories=[tmp_path / "a"], run_dir=tmp_path / "a" / "shard-0-of-2", overwrite=True)
    run_lines(ROWS, run_dir=tmp_path / "a" / "shard-1-of-2", shard=second)
    with pytest.raises(UsageError, match="holds shard 0/2"):
        merge_shards(onto_a_shard)


def test_drafts_of_a_shard_learn_from_its_own_answers_and_the_manifest_says_so(
    run_lines: RunLines, tmp_path: Path
) -> None:
    suffix = SpeculativeConfig.from_mapping({"method": "suffix"})
    run_lines(ROWS, run_dir=tmp_path / "single", speculative=suffix)
    serve_shards(run_lines, tmp_path, ROWS, count=2, speculative=suffix)
    merge_shards(MergeSettings(directories=[tmp_path], run_dir=tmp_path / "merged"))
    learning = document(tmp_path / "merged", "manifest.json")["resolved"]["drafts_learn_from"]
    assert "of the same of 2 shards" in learning
    texts = [
        [json.loads(record)["response"]["body"]["choices"] for record in records_of(tmp_path / name)]
        for name in ("merged", "single")
    ]
    assert texts[0] == texts[1]


def test_the_command_line_serves_shards_and_merges_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"prompt": "a b a b", "max_tokens": 3}\n' * 3)
    status, _, _ = call(monkeypatch, capsys, "run", "in.jsonl", "--shard", "0/2")
    assert status == 0
    status, out, err = call(monkeypatch, capsys, "merge", "reports/in")
    assert (status, out) == (2, "")
    assert err == "batchspec: shard 1/2 is missing: give the run directory, or make it with run --shard 1/2\n"
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    status, _, err = call(monkeypatch, capsys, "run", "in.jsonl", "--shard", "env")
    assert (status, "serving shard 1/2, as RANK and WORLD_SIZE say" in err) == (0, True)
    status, out, err = call(monkeypatch, capsys, "merge", "reports/in", "--json")
    assert (status, json.loads(out)["requests"]["num_served"]) == (0, 3)
    assert "elapsed is the longest shard's time" in err
    status, _, err = call(monkeypatch, capsys, "run", "in.jsonl")
    assert (status, "finished, nothing was done" in err) == (0, True)
