"""An input as a dataset of Ray Data: its lines as they are, with their places in it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from batchspec.errors import UsageError
from batchspec.files import InputSource, open_source
from batchspec.scaleout.ray_workers import import_ray

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["read_lines"]

_LINES_OF_A_BLOCK = 256


def read_lines(path: str, *, lines_per_block: int = _LINES_OF_A_BLOCK) -> "Dataset":
    """Return the lines of an input that are not blank: ``index``, int64, from 0 on, and ``text``, the bytes of each.

    Ray's own readers parse, decode or reorder; these are the lines that ``batchspec run`` would have read. One task
    reads them, on a machine that must be able to open the path, while those behind it already work.

    Args:
        path: JSONL: a file, plain or compressed, a directory of part files, a pattern or a URL.
        lines_per_block: what is handed to an actor at once.

    Raises:
        UsageError: Ray is not installed, the path cannot be read, or it is Parquet.
    """
    ray = import_ray()
    source = open_source(path)
    if source.is_parquet:
        raise UsageError(f"input {path} is Parquet: read it with ray.data.read_parquet and write each row as JSON text")
    data = ray.data
    metadata = data.block.BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)

    class Lines(data.Datasource):  # type: ignore[misc, name-defined]
        """Reads all lines in one task."""

        def estimate_inmemory_data_size(self) -> int | None:
            return None

        def get_read_tasks(self, *_: Any, **__: Any) -> list[Any]:
            return [data.ReadTask(lambda: _blocks(source, lines_per_block), metadata)]

    lines: Dataset = data.read_datasource(Lines(), override_num_blocks=1)
    return lines.repartition(target_num_rows_per_block=lines_per_block)


def _blocks(source: InputSource, num_lines: int) -> Iterator[pa.Table]:
    indices: list[int] = []
    texts: list[bytes] = []
    for index, (_, content) in enumerate(source.rows()):
        indices.append(index)
        texts.append(content if isinstance(content, bytes) else b"")
        if len(indices) == num_lines:
            yield _table(indices, texts)
            indices, texts = [], []
    yield _table(indices, texts)


def _table(indices: list[int], texts: list[bytes]) -> pa.Table:
    return pa.table({"index": pa.array(indices, pa.int64()), "text": pa.array(texts, pa.large_binary())})
