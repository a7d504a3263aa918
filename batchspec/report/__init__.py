"""From output records to the report: aggregate, document, and its two renderings."""

from batchspec.report.aggregate import Aggregate
from batchspec.report.document import report_document, throughput_document
from batchspec.report.exposition import totals_from_exposition
from batchspec.report.from_counters import acceptance_from_counters
from batchspec.report.markdown import report_markdown
from batchspec.report.render import report_renderable

__all__ = [
    "Aggregate",
    "acceptance_from_counters",
    "report_document",
    "report_markdown",
    "report_renderable",
    "throughput_document",
    "totals_from_exposition",
]
