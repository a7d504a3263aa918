"""Responses to the records that AIPerf writes into ``profile_export.jsonl``.

Names, units and definitions are those of AIPerf's documentation: times in milliseconds as the client of a server would
have measured them, so that queueing belongs to the time to the first token; the rate of accepted drafts in per cent. A
request without a verification step has no draft metrics, one without timing fields no times.
"""

from collections.abc import Mapping
from typing import Any

from batchspec.convert.aiperf_metrics import draft_metrics, spec_decode_acceptance, time_metrics, token_metrics
from batchspec.errors import RequestError
from batchspec.ingest import LogRecord, SkippedRow, SkipReason
from batchspec.ingest.rows import read_row
from batchspec.ingest.streams import OpenStreams
from batchspec.response_times import ResponseTimes, response_body, response_times

__all__ = ["aiperf_record"]

_WRITER = "batchspec"


def aiperf_record(row: Mapping[str, Any], *, index: int) -> dict[str, Any]:
    """Return one response, or the line of a request that failed, as AIPerf's record.

    Start and end are Unix nanoseconds: the second in which the body was created, and the request's latency behind it
    (the same second, if there are no timing fields). The time of an error is not known: 0.

    Args:
        row: an output line of ours, or a response of any engine.
        index: its 0-based place in the file.

    Raises:
        RequestError: the row is no response, or its metrics contradict each other.
    """
    entries = list(read_row(row, path="", line=index + 1, streams=OpenStreams()))
    if not entries:
        raise RequestError("the line is one chunk of a stream: give responses as a whole")
    for entry in entries:
        if isinstance(entry, SkippedRow) and entry.reason is not SkipReason.ERROR:
            raise RequestError(entry.message)
    first = entries[0]
    if isinstance(first, SkippedRow):
        times = ResponseTimes()
        return {"metadata": _metadata(row, first, index, times), "metrics": {}, "error": _error(row, first)}
    return _served(row, first, index, is_whole=len(entries) == 1)


def _served(row: Mapping[str, Any], record: LogRecord, index: int, *, is_whole: bool) -> dict[str, Any]:
    """Return the record of a response; where choices speak for themselves, what is said of one is not passed on."""
    body = response_body(row)
    times = ResponseTimes() if body is None else response_times(body)
    acceptance = record.acceptance if is_whole else None
    num_tokens = record.completion_tokens if is_whole else None
    line = {
        "metadata": _metadata(row, record, index, times),
        "metrics": {
            **token_metrics(num_in=record.prompt_tokens, num_out=num_tokens),
            **time_metrics(times, num_tokens=num_tokens),
            **draft_metrics(acceptance),
        },
    }
    stated = spec_decode_acceptance(acceptance, engine=record.engine, completion_tokens=num_tokens)
    return line | ({} if stated is None else {"spec_decode_acceptance": stated}) | {"error": None}


def _metadata(
    row: Mapping[str, Any], entry: LogRecord | SkippedRow, index: int, times: ResponseTimes
) -> dict[str, Any]:
    start = (times.created or 0) * 10**9
    response = row.get("response")
    request_id = response.get("request_id") if isinstance(response, Mapping) else None
    return {
        "session_num": index,
        "x_request_id": request_id if isinstance(request_id, str) else None,
        "x_correlation_id": None,
        "conversation_id": entry.custom_id,
        "turn_index": 0,
        "request_start_ns": start,
        "request_ack_ns": None,
        "request_end_ns": start + round((times.latency_ms or 0.0) * 1e6),
        "worker_id": _WRITER,
        "record_processor_id": _WRITER,
        "benchmark_phase": "profiling",
        "was_cancelled": False,
        "cancellation_time_ns": None,
    }


def _error(row: Mapping[str, Any], entry: SkippedRow) -> dict[str, Any]:
    """Return the error in AIPerf's form, where the code is a number."""
    response, error = row.get("response"), row.get("error")
    status = response.get("status_code") if isinstance(response, Mapping) else None
    kind = error.get("type") if isinstance(error, Mapping) else None
    code = entry.code if entry.code is not None and entry.code.isdecimal() else status
    return {
        "code": int(code) if isinstance(code, int | str) and str(code).isdecimal() else None,
        "type": kind if isinstance(kind, str) else None,
        "message": entry.message,
    }
