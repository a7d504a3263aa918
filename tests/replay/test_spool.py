"""Outputs put aside and read again, in the order of the input."""

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.errors import UsageError
from batchspec.replay.recorded import NO_INDEX, Recorded
from batchspec.replay.spool import Spool

ids = st.lists(st.integers(0, 2**31 - 1), max_size=6)


def recorded(row: int, index: int, *, output: list[int] | None = None, **fields: Any) -> Recorded:
    def array(values: list[int]) -> Any:
        return np.array(values, dtype=np.int64)

    fields = {"prompt": array(fields.get("prompt", [row])), "cut": array(fields.get("cut", []))}
    output = [row, index + 1] if output is None else output
    return Recorded(output=array(output), custom_id=f"r{row}", index=index, line=row + 1, row=row, **fields)


def plain(one: Recorded) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in asdict(one).items()}


@given(texts=st.lists(st.tuples(ids, ids, ids), max_size=8), order=st.randoms())
def test_what_goes_in_comes_out_by_index(texts: list[tuple[list[int], list[int], list[int]]], order: Any) -> None:
    indices = list(range(0, 3 * len(texts), 3))
    order.shuffle(indices)
    put = [
        recorded(row, index, prompt=prompt, output=output, cut=cut)
        for row, (index, (prompt, output, cut)) in enumerate(zip(indices, texts, strict=True))
    ]
    with Spool() as spool:
        spool.add(put)
        assert spool.has_indices
        expected = [plain(one) for one in sorted(put, key=lambda one: one.index)]
        assert [plain(one) for one in spool.read()] == expected
        assert [plain(one) for one in spool.read()] == expected


def test_outputs_of_one_request_stay_in_their_order() -> None:
    put = [recorded(0, 5), recorded(0, 5, output=[9]), recorded(1, 2)]
    with Spool() as spool:
        spool.add(put)
        assert spool.has_indices
        assert [one.output.tolist() for one in spool.read()] == [[1, 3], [0, 6], [9]]


@pytest.mark.parametrize("indices", [[4, NO_INDEX, 2], [4, 4, 2]])
def test_where_indices_are_missing_or_come_twice_the_lines_count(indices: list[int]) -> None:
    with Spool() as spool:
        spool.add(recorded(row, index) for row, index in enumerate(indices))
        assert not spool.has_indices
        assert [one.index for one in spool.read()] == [0, 1, 2]


def test_a_full_disk_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchspec.replay.spool.TemporaryFile", lambda **_: open("/dev/full", "w+b"))  # noqa: SIM115
    big = [recorded(0, 0, output=[1] * 100_000)]
    spool = Spool()
    with pytest.raises(UsageError, match="set TMPDIR to a directory with more room"):
        spool.add(big)
    with pytest.raises(OSError, match="space"):
        spool._file.close()
