"""How many rows an input has, counted beside the run, for the progress line only."""

import threading

import pyarrow as pa
import pyarrow.parquet as pq

from batchspec.files import InputSource

__all__ = ["RowCount"]

_CHUNK_BYTES = 2**20


class RowCount:
    """Counts an input's rows in a thread of its own; standard input is not counted.

    Args:
        source: an input whose path was checked.
    """

    def __init__(self, source: InputSource):
        self.num_rows: int | None = None
        self._source = source
        self._thread = threading.Thread(target=self._count, daemon=True)
        if source.is_regular:
            self._thread.start()

    def wait(self) -> None:
        """Wait until the rows are counted."""
        if self._thread.is_alive():
            self._thread.join()

    def _count(self) -> None:
        try:
            if self._source.is_parquet:
                self.num_rows = int(pq.ParquetFile(self._source.path).metadata.num_rows)
                return
            num_rows = 0
            last = b"\n"
            with pa.input_stream(self._source.path) as stream:
                while chunk := stream.read(_CHUNK_BYTES):
                    num_rows += chunk.count(b"\n")
                    last = chunk[-1:]
            self.num_rows = num_rows + (last != b"\n")
        except (OSError, pa.ArrowException):
            return
