"""How a run ended, and the files that say so."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import orjson

from batchspec.errors import UsageError
from batchspec.files import RunState, remove_parts, responses_to_parquet
from batchspec.files.atomic import whole_file, write_whole
from batchspec.files.upload import upload
from batchspec.files.urls import is_url, local_form
from batchspec.report import report_markdown

__all__ = ["ExitStatus", "JobOutcome", "local_output", "read_report", "write_output", "write_reports"]


class ExitStatus(IntEnum):
    """What the process exits with."""

    DONE = 0
    FAILURES = 1
    USAGE = 2
    INTERRUPTED = 130
    TERMINATED = 143


@dataclass(frozen=True, kw_only=True)
class JobOutcome:
    """The end of a run.

    Attributes:
        status: what to exit with.
        report: the document of ``report.json``; None when the run was interrupted.
        sentences: what is left to tell the user, one line each.
    """

    status: ExitStatus
    report: Mapping[str, Any] | None
    sentences: tuple[str, ...]


def write_reports(state: RunState, *, report: Mapping[str, Any], exposition: str) -> None:
    """Write ``report.json``, ``report.md`` and ``metrics.prom`` into the run directory, each as a whole."""
    files = {
        "report.json": orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n",
        "report.md": report_markdown(report).encode(),
        "metrics.prom": exposition.encode(),
    }
    for name, data in files.items():
        _write(state.path(name), data)


def read_report(state: RunState) -> Mapping[str, Any]:
    """Return the report of a finished run; UsageError when it cannot be read."""
    path = state.path("report.json")
    try:
        document: dict[str, Any] = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise UsageError(f"{path} cannot be read: use --overwrite to run again") from error
    return document


def write_output(state: RunState, output: str | Path) -> None:
    """Write the records once more, where and in the format in which the user wants them.

    Raises:
        UsageError: that failed; a file that was to be uploaded stays in the run directory.
    """
    place = local_form(str(output))
    local = local_output(state, output)
    _copy(state.path("responses.jsonl"), local)
    if not is_url(place):
        return
    try:
        upload(local, place)
    except OSError as error:
        reason = " ".join((error.strerror or str(error)).split())
        raise UsageError(
            f"output {place} cannot be uploaded ({reason}): the responses are in {local}; "
            "run the same command again to try once more"
        ) from error


def local_output(state: RunState, output: str | Path) -> Path:
    """Return the file on this machine that an output is written to, before any upload."""
    place = local_form(str(output))
    if not is_url(place):
        return Path(place)
    return state.path("responses.parquet" if place.lower().endswith(".parquet") else "responses.jsonl")


def _copy(journal: Path, output: Path) -> None:
    """Write the records of a journal to a file, in the format that its extension says."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        if output.suffix.lower() == ".parquet":
            responses_to_parquet(jsonl_path=journal, parquet_path=output)
            remove_parts(output)
        elif output.resolve() != journal.resolve():
            with whole_file(output) as path, journal.open("rb") as source, path.open("wb") as target:
                while chunk := source.read(2**20):
                    target.write(chunk)
    except OSError as error:
        raise UsageError(f"output {output} cannot be written ({error.strerror or error}): choose another") from error


def _write(path: Path, data: bytes) -> None:
    try:
        write_whole(path, data)
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror or error}): check the disk") from error
