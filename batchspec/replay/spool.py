"""Outputs put aside in a temporary file, so that several passes can be made over them, in the order of the input."""

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from tempfile import TemporaryFile
from types import TracebackType

import numpy as np

from batchspec.errors import UsageError
from batchspec.replay.recorded import NO_INDEX, NOTHING, Recorded

__all__ = ["Spool"]

_SIZE = np.dtype(np.int32).itemsize


class Spool:
    """The outputs of one job; a context manager. Memory holds where they are, not their tokens.

    Attributes:
        has_indices: whether the log told the index of every request, each once. Otherwise a line's number is taken.
    """

    def __init__(self) -> None:
        self.has_indices = True
        self._file = TemporaryFile(prefix="batchspec-")  # noqa: SIM115
        self._heads: list[Recorded] = []
        self._sizes = array("q")  # of prompt, output and cut, one after another
        self._indices: dict[int, int] = {}  # to the row that has it

    def add(self, recorded: Iterable[Recorded]) -> None:
        """Put outputs aside.

        Raises:
            UsageError: there is no room for them.
        """
        try:
            for one in recorded:
                for part in (one.prompt, one.output, one.cut):
                    self._file.write(part.astype(np.int32).tobytes())
                    self._sizes.append(len(part))
                self._heads.append(replace(one, prompt=NOTHING, output=NOTHING, cut=NOTHING))
                is_first = self._indices.setdefault(one.index, one.row) == one.row
                self.has_indices &= is_first and one.index != NO_INDEX
            self._file.flush()
        except OSError as error:
            raise UsageError(
                f"token ids cannot be put aside ({error.strerror or error}): set TMPDIR to a directory with more room"
            ) from error

    def read(self) -> Iterator[Recorded]:
        """Yield the outputs by ascending index, those of one request in the order in which they came."""
        sizes = np.array(self._sizes, dtype=np.int64).reshape(-1, 3)
        starts = _SIZE * (np.cumsum(sizes) - sizes.ravel()).reshape(-1, 3)[:, 0]
        indices = [head.index if self.has_indices else head.line - 1 for head in self._heads]
        for number in np.argsort(np.array(indices, dtype=np.int64), kind="stable").tolist():
            self._file.seek(int(starts[number]))
            num_bytes = _SIZE * int(sizes[number].sum())
            tokens = np.frombuffer(self._file.read(num_bytes), dtype=np.int32).astype(np.int64)
            prompt, output, cut = np.split(tokens, np.cumsum(sizes[number])[:2])
            yield replace(self._heads[number], prompt=prompt, output=output, cut=cut, index=indices[number])

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
