"""Where the two accounts are: files as they were named, or a run directory that has them all."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from batchspec.errors import UsageError
from batchspec.reconcile.between import Count

__all__ = ["AuditInputs", "find_inputs"]


@dataclass(frozen=True, kw_only=True)
class AuditInputs:
    """What is compared.

    Attributes:
        responses: file or run directory, ``-`` for standard input.
        after: the scrape behind the requests.
        before: the scrape before them; None when the counters began at zero.
        unreported: by cause, what the run counted for requests whose records carry no metrics; None when not known.
    """

    responses: str
    after: str
    before: str | None
    unreported: Mapping[str, Mapping[Count, int]] | None


def find_inputs(responses: str, *, after: str | None, before: str | None) -> AuditInputs:
    """Return the inputs; a run directory brings its counters and its unreported counts along.

    Raises:
        UsageError: there is no scrape from behind the requests, or the run directory's report cannot be read.
    """
    is_run = responses != "-" and Path(responses).is_dir()
    if after is None and not is_run:
        directory = Path(responses).parent
        has_scrape = responses != "-" and (directory / "metrics.prom").is_file()
        raise UsageError(
            f"--after is missing: give the scrape that was taken behind the requests of {responses}"
            + (f", or give the run directory {directory}" if has_scrape else "")
        )
    default = Path(responses) / "metrics.prom"
    if after is None and not default.is_file():
        raise UsageError(f"{responses} has no metrics.prom: give --after, or run the same command again to end the run")
    return AuditInputs(
        responses=responses,
        after=str(default) if after is None else after,
        before=before,
        unreported=_unreported(Path(responses) / "report.json") if is_run and before is None else None,
    )


def _unreported(path: Path) -> Mapping[str, Mapping[Count, int]] | None:
    """Return what the report of a run says about its unreported requests; None when it was not reconciled."""
    try:
        reconciliation = orjson.loads(path.read_bytes())["reconciliation"]
        if reconciliation is None:
            return None
        by_cause: dict[str, dict[Count, int]] = {}
        for row in reconciliation["rows"]:
            for cause, count in row["unreported"].items():
                by_cause.setdefault(cause, {})[row["quantity"], row["position"]] = count
    except FileNotFoundError:
        return None
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is not a report of batchspec: give the files themselves and --after") from error
    return by_cause
