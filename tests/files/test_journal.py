"""What survives a crash at any byte, and which counts are still known for it."""

import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batchspec.errors import UsageError
from batchspec.files import Journal, Recovery, create_journal, open_for_resume, read_records

TEXTS = ["a", "naïve \u2028 text", 'line\nbreak \\ " quote', "{}", ""]


def record(index: int) -> dict[str, Any]:
    return {"id": f"batch_req_{index:08d}", "custom_id": TEXTS[index % 5], "response": {"n": index}, "error": None}


class Place:
    def __init__(self, directory: Path):
        self.path = directory / "responses.jsonl"
        self.checkpoint_path = directory / "checkpoint.json"

    def create(self) -> Journal:
        return create_journal(path=self.path, checkpoint_path=self.checkpoint_path)

    def resume(self) -> tuple[Journal, Recovery]:
        return open_for_resume(path=self.path, checkpoint_path=self.checkpoint_path)

    def recovered(self) -> tuple[int, Any]:
        """Resume and close; return the number of records and the state."""
        journal, recovery = self.resume()
        journal.close()
        kept = list(read_records(self.path))
        assert kept == [record(i) for i in range(recovery.num_records)]
        assert [i in recovery.finished for i in range(len(kept) + 1)] == [True] * len(kept) + [False]
        return recovery.num_records, recovery.state


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def fill(place: Place, *, counted: int, more: int) -> bytes:
    """Write a journal with a checkpoint behind ``counted`` records (none for 0) and more records behind that."""
    with place.create() as journal:
        for index in range(counted + more):
            journal.append(record(index))
            if index + 1 == counted:
                journal.checkpoint({"done": counted})
    return place.path.read_bytes()


def test_records_come_back_as_they_were_appended(place: Place) -> None:
    fill(place, counted=3, more=4)
    assert list(read_records(place.path)) == [record(i) for i in range(7)]


def test_a_torn_tail_at_every_byte_without_a_checkpoint(place: Place) -> None:
    data = fill(place, counted=0, more=3)
    for size in range(len(data) + 1):
        place.path.write_bytes(data[:size])
        assert place.recovered() == (data[:size].count(b"\n"), None)
        assert place.path.read_bytes() == data[: data[:size].rfind(b"\n") + 1]


def test_a_torn_tail_at_every_byte_with_a_checkpoint(place: Place) -> None:
    data = fill(place, counted=2, more=2)
    checkpoint = place.checkpoint_path.read_bytes()
    counted_bytes = orjson.loads(checkpoint)["journal_bytes"]
    for size in range(len(data) + 1):
        place.path.write_bytes(data[:size])
        place.checkpoint_path.write_bytes(checkpoint)
        lines = data[:size].count(b"\n")
        expected = (2, {"done": 2}) if size >= counted_bytes else (lines, None)
        assert place.recovered() == expected
        assert place.checkpoint_path.exists() == (size >= counted_bytes)


def test_a_file_that_was_cut_does_not_trust_the_old_checkpoint_once_it_has_grown_again(place: Place) -> None:
    data = fill(place, counted=4, more=0)
    place.path.write_bytes(data[: len(data) // 2])
    journal, recovery = place.resume()
    with journal:
        for index in range(recovery.num_records, 9):
            journal.append(record(index))
    assert place.recovered() == (9, None)


def test_a_resumed_journal_continues_its_counts(place: Place) -> None:
    fill(place, counted=2, more=2)
    journal, recovery = place.resume()
    assert (recovery.num_records, recovery.state, journal.num_records) == (2, {"done": 2}, 2)
    assert recovery.num_dropped_bytes == len(orjson.dumps(record(2))) + len(orjson.dumps(record(3))) + 2
    with journal:
        journal.append(record(2))
        journal.checkpoint({"done": 3})
        journal.append(record(3))
    assert place.recovered() == (3, {"done": 3})


def test_an_absent_or_empty_journal_resumes_as_empty(place: Place) -> None:
    assert place.recovered() == (0, None)
    place.path.unlink()
    place.checkpoint_path.write_bytes(orjson.dumps({"journal_bytes": 5, "num_records": 1, "state": {}}))
    assert place.recovered() == (0, None)
    with place.create() as journal:
        journal.checkpoint({"done": 0})
    assert place.recovered() == (0, {"done": 0})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"journal_bytes": "5", "num_records": 1, "state": {}}',
        b'{"journal_bytes": -5, "num_records": 1, "state": {}}',
        b'{"journal_bytes": true, "num_records": 1, "state": {}}',
        b'{"journal_bytes": 5, "num_records": 1}',
        b'{"journal_bytes": 5, "num_records": 1, "state": 3}',
    ],
)
def test_a_checkpoint_that_is_not_ours_counts_nothing(place: Place, content: bytes) -> None:
    fill(place, counted=0, more=3)
    place.checkpoint_path.write_bytes(content)
    assert place.recovered() == (3, None)


@pytest.mark.parametrize(
    "damage", [b"garbage\n", b"{}\n", b"\n", b"[1]\n", b"\0" * 40, b'{"id": "batch_req_00000001"}\n']
)
def test_damage_ends_what_is_kept_and_the_counts(place: Place, damage: bytes) -> None:
    lines = fill(place, counted=4, more=0).splitlines(keepends=True)
    place.path.write_bytes(b"".join([*lines[:2], damage, *lines[2:]]))
    assert place.recovered() == (2, None)


def test_records_out_of_order_are_known_by_their_index(place: Place) -> None:
    order = [3, 0, 7]
    with place.create() as journal:
        for index in order:
            journal.append(record(index))
        journal.checkpoint({})
    journal, recovery = place.resume()
    journal.close()
    assert [index for index in range(10) if index in recovery.finished] == sorted(order)
    assert recovery.state == {}


def test_creating_replaces_an_old_journal_and_its_checkpoint(place: Place) -> None:
    fill(place, counted=2, more=0)
    place.create().close()
    assert place.path.read_bytes() == b""
    assert not place.checkpoint_path.exists()


def test_a_checkpoint_is_durable_before_close_and_leaves_no_temporary_file(place: Place) -> None:
    journal = place.create()
    journal.append(record(0))
    journal.checkpoint({"done": 1})
    assert place.path.read_bytes() == orjson.dumps(record(0)) + b"\n"
    assert sorted(os.listdir(place.path.parent)) == ["checkpoint.json", "responses.jsonl"]
    journal.close()


def test_what_cannot_be_written_or_read_is_a_sentence(place: Place) -> None:
    missing = place.path.parent / "missing" / "responses.jsonl"
    with pytest.raises(UsageError, match="cannot be written"):
        create_journal(path=missing, checkpoint_path=place.checkpoint_path)
    with pytest.raises(UsageError, match=r"cannot be read .* check the path"):
        list(read_records(missing))
    place.path.write_bytes(b"{}\nnonsense\n")
    with pytest.raises(UsageError, match="line 2 is not a record"):
        list(read_records(place.path))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 300)), max_size=5))
def test_any_history_of_crashes_ends_with_every_record_once(place: Place, history: list[tuple[int, bool, int]]) -> None:
    """Each run appends some records, may checkpoint, and then loses some bytes of the file's end."""
    place.create().close()
    for num_new, is_checkpointed, num_lost in history:
        journal, recovery = place.resume()
        assert recovery.state in (None, {"done": recovery.num_records})
        with journal:
            for index in range(recovery.num_records, recovery.num_records + num_new):
                journal.append(record(index))
            if is_checkpointed:
                journal.checkpoint({"done": journal.num_records})
        os.truncate(place.path, max(0, place.path.stat().st_size - num_lost))
    place.recovered()
