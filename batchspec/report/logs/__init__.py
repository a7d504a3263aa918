"""The report of logs of any engine: columns, intervals, and the document that its renderings read."""

from batchspec.report.logs.groups import Grouping
from batchspec.report.logs.survey import LogSurvey, survey_logs

__all__ = ["Grouping", "LogSurvey", "survey_logs"]
