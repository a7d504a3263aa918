"""How a job ended: its report on standard output, remarks on standard error."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from batchspec.job.outcome import JobOutcome

__all__ = ["show_outcome"]

_WIDTH_OF_FILES = 100


def show_outcome(outcome: "JobOutcome", *, as_json: bool) -> int:
    """Print the report, then the sentences; return the exit status."""
    from rich.console import Console

    from batchspec.cli.lines import remark
    from batchspec.cli.output import print_document, writing_to_stdout
    from batchspec.report import report_renderable

    with writing_to_stdout():
        if outcome.report is not None and as_json:
            print_document(outcome.report)
        elif outcome.report is not None:
            console = Console()
            console.width = console.width if console.is_terminal else _WIDTH_OF_FILES
            console.print(report_renderable(outcome.report))
    for sentence in outcome.sentences:
        remark(sentence)
    return int(outcome.status)
