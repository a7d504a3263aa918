"""bench.json and bench.md, in the benchmark's directory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from batchspec.bench.tables import bench_parts
from batchspec.errors import UsageError
from batchspec.files.atomic import write_whole
from batchspec.report.markdown import parts_markdown

__all__ = ["write_bench"]


def write_bench(document: Mapping[str, Any], directory: Path) -> None:
    """Write both files, each as a whole.

    Raises:
        UsageError: they cannot be written.
    """
    files = {
        "bench.json": orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n",
        "bench.md": parts_markdown("Benchmark", bench_parts(document)).encode(),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            write_whole(directory / name, data)
    except OSError as error:
        raise UsageError(f"{directory} cannot be written to ({error.strerror or error}): check the disk") from error
