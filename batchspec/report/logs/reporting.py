"""``batchspec report`` without its command line: logs in, the judged document out, and a file of it."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from batchspec.errors import UsageError
from batchspec.files import check_not_input, check_writable
from batchspec.files.atomic import is_written_through, write_whole
from batchspec.ingest.reading import open_logs
from batchspec.report.logs.formats import ReportFormat, format_by_name, log_text
from batchspec.report.logs.groups import Grouping
from batchspec.report.logs.measured import grouping_of, measured
from batchspec.report.logs.survey import survey_logs
from batchspec.requirements import Judgement, Requirement, judge

__all__ = ["check_report_file", "choose_format", "parse_grouping", "report_logs", "write_report"]


def report_logs(
    paths: Sequence[str], *, by: Grouping | None, requirements: Sequence[Requirement]
) -> tuple[dict[str, Any], tuple[Judgement, ...]]:
    """Return the report of logs with the judgements in it, and the judgements.

    Args:
        paths: what ``read_logs`` takes.
        by: what requests are told apart by; a requirement on a group asks for its own.
        requirements: what the numbers have to be.

    Raises:
        UsageError: a path cannot be read or stands for a log that another stands for, or the requirements do not go
            together.
    """
    _check_distinct(paths)
    with _without_collector():
        document = survey_logs(paths, by=grouping_of(requirements, by=by))
    judged = judge(requirements, partial(measured, document))
    return document | {"requirements": [one.document() for one in judged]}, judged


def _check_distinct(paths: Sequence[str]) -> None:
    """Raise UsageError if a log would be counted twice."""
    seen: set[Path] = set()
    for log in open_logs(paths):
        file = Path(log.file).resolve()
        if file in seen:
            raise UsageError(f"{log.file} is named twice: name every log once")
        seen.add(file)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Keep Python from searching for cycles: decoded rows have none, and the search takes as long as decoding."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def parse_grouping(name: str | None) -> Grouping | None:
    """Return the grouping of ``--by``; UsageError if there is none of that name."""
    if name is None or name in list(Grouping):
        return None if name is None else Grouping(name)
    raise UsageError(f"--by {name!r} is no grouping: choose one of {', '.join(Grouping)}")


def choose_format(name: str | None, *, as_json: bool, output: Path | None) -> ReportFormat:
    """Return the format that is asked for: by ``--json``, by name, or by the extension of the output.

    Raises:
        UsageError: there is no such format, two different ones are asked for, or the extension stands for none.
    """
    if name is not None and name not in list(ReportFormat):
        raise UsageError(f"--format {name!r} is no format: choose one of {', '.join(ReportFormat)}")
    if as_json and name not in (None, ReportFormat.JSON):
        raise UsageError(f"--json and --format {name} contradict each other: give one of them")
    if as_json:
        return ReportFormat.JSON
    return ReportFormat(name) if name is not None else format_by_name(str(output or ""))


def check_report_file(output: Path, *, inputs: Sequence[str]) -> None:
    """Raise UsageError if the report cannot be written there, or would overwrite a log."""
    if output.is_dir():
        raise UsageError(f"output {output} is a directory: name a file in it")
    for log in open_logs(inputs):
        check_not_input(output, input_path=log.file)
    if not is_written_through(output):
        check_writable(output.parent)


def write_report(document: Mapping[str, Any], form: ReportFormat, output: Path) -> None:
    """Write the report as a whole or not at all; UsageError if that fails."""
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        write_whole(output, log_text(document, form).encode())
    except OSError as error:
        raise UsageError(f"output {output} cannot be written ({error.strerror or error}): choose another") from error
