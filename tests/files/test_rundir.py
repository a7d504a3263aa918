"""What a run directory lets a run do, and that looking at it writes nothing."""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from batchspec.errors import UsageError
from batchspec.files import OWN_FILES, RunState, RunStatus, open_run

PARAMETERS: dict[str, Any] = {"temperature": 0.0, "max_num_seqs": 8, "method": "ngram"}
MODEL = {"path": "models/tiny", "sha256": "ab"}
DATASET = {"path": "prompts.jsonl", "size": 5, "fingerprint": "cd"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "reports" / "prompts"


def look(
    directory: Path,
    *,
    parameters: dict[str, Any] = PARAMETERS,
    model: dict[str, Any] = MODEL,
    dataset: dict[str, Any] = DATASET,
    overwrite: bool = False,
) -> RunState:
    return open_run(directory, parameters=parameters, model=model, dataset=dataset, overwrite=overwrite)


def run(directory: Path, *, status: str = "finished", **settings: Any) -> None:
    with look(directory, **settings) as state:
        state.begin(versions={"torch": "2.13.0"})
        state.path("responses.jsonl").write_bytes(b"records\n")
        state.save(status=status, counts={"lines": 1})


def manifest(directory: Path) -> Any:
    return orjson.loads((directory / "manifest.json").read_bytes())


def test_looking_writes_nothing(directory: Path) -> None:
    assert look(directory).status is RunStatus.FRESH
    assert not directory.parent.exists()


def test_a_fresh_run_is_marked_running_and_then_as_it_ended(directory: Path) -> None:
    with look(directory) as state:
        state.begin(versions={"torch": "2.13.0"})
        assert manifest(directory)["status"] == "running"
        state.save(status="interrupted", counts={"lines": 3})
    document = manifest(directory)
    assert document["parameters"] == PARAMETERS
    assert (document["status"], document["counts"]) == ("interrupted", {"lines": 3})
    assert (document["model"], document["dataset"]) == (MODEL, DATASET)
    assert document["versions"] == {"torch": "2.13.0"}
    assert document["batchspec_version"]


@pytest.mark.parametrize("status", ["running", "interrupted"])
def test_an_unfinished_run_is_resumed_with_its_files(directory: Path, status: str) -> None:
    run(directory, status=status)
    with look(directory) as state:
        assert state.status is RunStatus.RESUME
        assert state.manifest["counts"] == {"lines": 1}
        state.begin()
        assert manifest(directory)["status"] == "running"
        assert state.path("responses.jsonl").read_bytes() == b"records\n"


def test_a_finished_run_says_so(directory: Path) -> None:
    run(directory)
    before = {name: (directory / name).stat().st_mtime_ns for name in os.listdir(directory)}
    assert look(directory).status is RunStatus.FINISHED
    assert {name: (directory / name).stat().st_mtime_ns for name in os.listdir(directory)} == before


def test_values_that_json_spells_differently_are_the_same(directory: Path) -> None:
    run(directory, parameters={"stop": (1, 2), "cache": Path("x")})
    assert look(directory, parameters={"stop": [1, 2], "cache": "x"}).status is RunStatus.FINISHED


def test_every_difference_is_named(directory: Path) -> None:
    run(directory)
    parameters = {"temperature": 0.8, "max_num_seqs": 8, "level": "summary"}
    with pytest.raises(UsageError) as caught:
        look(directory, parameters=parameters, model=MODEL | {"sha256": "ff"}, dataset=DATASET | {"fingerprint": "ee"})
    assert str(caught.value) == (
        f"{directory} holds a run with other settings: --temperature was 0.0, now 0.8; --level was not set, now "
        '"summary"; --method was "ngram", now not set; the model\'s sha256 was "ab", now "ff"; '
        'the input\'s fingerprint was "cd", now "ee" (prompts.jsonl); use --overwrite or another --run-dir'
    )


@pytest.mark.parametrize(("before", "now"), [("0/2", "1/2"), ("0/2", None), (None, "0/2")])
def test_another_shard_is_told_to_go_elsewhere_not_to_overwrite(
    directory: Path, before: str | None, now: str | None
) -> None:
    of_before, of_now = ({} if shard is None else {"shard": shard} for shard in (before, now))
    run(directory, parameters=of_before)
    held = "a run of the whole input" if before is None else f"shard {before}"
    with pytest.raises(UsageError) as caught:
        look(directory, parameters=of_now | {"temperature": 0.3})
    assert str(caught.value) == f"{directory} holds {held}: give each shard a --run-dir of its own"
    assert look(directory, parameters=of_before).status is RunStatus.FINISHED


@pytest.mark.parametrize(
    ("before", "now", "held"), [("grid", "k", "a sweep, not a run"), ("k", "grid", "a run, not a sweep")]
)
def test_a_sweep_is_no_run(directory: Path, before: str, now: str, held: str) -> None:
    run(directory, parameters={before: 1})
    with pytest.raises(UsageError) as caught:
        look(directory, parameters={now: 1})
    assert str(caught.value) == f"{directory} holds {held}: give another --run-dir"


def test_true_is_not_one_and_zero_is_not_false(directory: Path) -> None:
    run(directory, parameters={"timing": False})
    with pytest.raises(UsageError, match="--timing was false, now 0"):
        look(directory, parameters={"timing": 0})


def test_an_input_may_move_but_not_change(directory: Path) -> None:
    run(directory)
    assert look(directory, dataset=DATASET | {"path": "elsewhere.jsonl"}).status is RunStatus.FINISHED
    with pytest.raises(UsageError, match="the input's size was 5, now 6"):
        look(directory, dataset=DATASET | {"size": 6})


@pytest.mark.parametrize("status", ["finished", "interrupted"])
def test_a_stream_cannot_be_continued(directory: Path, status: str) -> None:
    stream = {"path": "-", "size": None, "fingerprint": None}
    run(directory, dataset=stream, status=status)
    with pytest.raises(UsageError, match="input was a stream"):
        look(directory, dataset=stream)


def test_overwriting_replaces_own_files_and_no_others(directory: Path) -> None:
    run(directory)
    for name in OWN_FILES:
        (directory / name).write_bytes(b"old")
    (directory / "notes.txt").write_text("mine")
    with look(directory, overwrite=True, parameters={"temperature": 1}) as state:
        assert state.status is RunStatus.FRESH
        assert (directory / "responses.jsonl").read_bytes() == b"old"
        state.begin()
    assert sorted(name for name in os.listdir(directory) if name[0] != ".") == ["manifest.json", "notes.txt"]
    assert manifest(directory)["parameters"] == {"temperature": 1}
    assert manifest(directory)["counts"] == {}


def test_a_directory_with_other_files_is_refused_unless_overwritten(directory: Path) -> None:
    directory.mkdir(parents=True)
    (directory / ".hidden").touch()
    assert look(directory).status is RunStatus.FRESH
    (directory / "thesis.tex").touch()
    with pytest.raises(UsageError, match=r"holds files but no run \(thesis.tex\): use --overwrite"):
        look(directory)
    assert look(directory, overwrite=True).status is RunStatus.FRESH


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"parameters": {}, "model": {}, "dataset": {}}'])
def test_a_manifest_that_is_not_ours_is_refused_unless_overwritten(directory: Path, content: bytes) -> None:
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_bytes(content)
    with pytest.raises(UsageError, match="is not a manifest that batchspec wrote: use --overwrite"):
        look(directory)
    with look(directory, overwrite=True) as state:
        state.begin()
    assert manifest(directory)["status"] == "running"


def test_two_runs_do_not_write_one_directory(directory: Path) -> None:
    early = look(directory)
    with look(directory) as state:
        state.begin()
        with pytest.raises(UsageError, match=r"another run is writing to .*: wait until it ends"):
            look(directory)
        with pytest.raises(UsageError, match="another run is writing to"):
            look(directory, overwrite=True)
        with pytest.raises(UsageError, match="another run is writing to"):
            early.begin()
    assert look(directory).status is RunStatus.RESUME


def test_a_directory_that_changed_since_it_was_opened_is_not_touched(directory: Path) -> None:
    early = look(directory)
    run(directory)
    with pytest.raises(UsageError, match=r"has written to .* meanwhile: run the same command again"):
        early.begin()
    assert (directory / "responses.jsonl").read_bytes() == b"records\n"
    assert look(directory).status is RunStatus.FINISHED


def test_the_input_is_never_a_file_of_the_run(directory: Path) -> None:
    run(directory)
    for path in (directory / "responses.jsonl", directory / ".." / "prompts" / "responses.jsonl"):
        with pytest.raises(UsageError, match="is the input as well as an output"):
            look(directory, dataset=DATASET | {"path": str(path)}, overwrite=True)


def test_places_that_cannot_hold_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below" / "it", tmp_path / ("x" * 300)):
        with pytest.raises(UsageError, match="choose another path"):
            look(place)
