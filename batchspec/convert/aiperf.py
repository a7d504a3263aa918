"""Responses to the records that AIPerf writes into ``profile_export.jsonl``.

Names, units and definitions are those of AIPerf's documentation: times in milliseconds as the client of a server would
have measured them, so that queueing belongs to the time to the first token; the rate of accepted drafts in per cent. A
request without a verification step has no draft metrics, one without timing fields no times.
"""

from collections.abc import Mapping
from typing import Any

from batchspec.convert.aiperf_metrics import draft_metrics, spec_decode_acceptance, time_metrics
from batchspec.errors import RequestError
from batchspec.report.bodies import BodyFacts, body_facts
from batchspec.report.identities import broken_identities

__all__ = ["aiperf_record"]

_WRITER = "batchspec"  # of the records; whose engine it was is told by the metrics


def aiperf_record(record: Mapping[str, Any], *, index: int) -> dict[str, Any]:
    """Return one output line of ours, or of a vLLM server's batch runner, as AIPerf's record.

    Start and end are Unix nanoseconds: the second in which the body was created, and the request's latency behind it
    (the same second, if there are no timing fields). The time of an error is not known: 0.

    Args:
        record: the output line.
        index: its 0-based place in the file.

    Raises:
        RequestError: the line is no output line, or its metrics contradict each other.
    """
    response = record.get("response")
    if not isinstance(response, Mapping):
        if record.get("error") is None:
            raise RequestError('the line has neither "response" nor "error": give a run\'s responses', param="response")
        response = {}
    if record.get("error") is not None or response.get("status_code", 200) != 200:
        return _metadata(record, index=index) | {"metrics": {}, "error": _error(record, response)}
    facts, last = _facts(response.get("body"))
    timing = last.get("metrics") or {}
    times = time_metrics(timing, num_tokens=None if facts.usage is None else facts.usage["completion_tokens"])
    latency = times.get("request_latency", {}).get("value", 0.0)
    line = _metadata(record, index=index, created=last.get("created") or 0, latency_ms=latency)
    line["metrics"] = _token_metrics(facts) | times | draft_metrics(facts.speculative_decoding)
    engine = "vllm" if facts.batchspec is None else "batchspec"
    acceptance = spec_decode_acceptance(facts.speculative_decoding, engine=engine, usage=facts.usage)
    return line | ({} if acceptance is None else {"spec_decode_acceptance": acceptance}) | {"error": None}


def _facts(body: Any) -> tuple[BodyFacts, Mapping[str, Any]]:
    """Return what the body says, and the part of it that has usage and metrics.

    Raises:
        RequestError: it is no response, or its metrics contradict each other.
    """
    try:
        facts = body_facts(body)
        last = body if isinstance(body, Mapping) else (body[-1] if body else {})
        stated, usage = facts.speculative_decoding, facts.usage
        completion_tokens = usage["completion_tokens"] if usage else 0
        broken = stated and broken_identities(stated, batchspec=facts.batchspec, completion_tokens=completion_tokens)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise RequestError("its body is no completion and no list of chunks: give a run's responses") from error
    if broken:
        raise RequestError(f"its metrics contradict each other ({broken[0]} does not hold): they cannot be passed on")
    return facts, last


def _metadata(record: Mapping[str, Any], *, index: int, created: int = 0, latency_ms: float = 0.0) -> dict[str, Any]:
    start = created * 10**9
    response = record.get("response")
    return {
        "metadata": {
            "session_num": index,
            "x_request_id": response.get("request_id") if isinstance(response, Mapping) else None,
            "x_correlation_id": None,
            "conversation_id": record.get("custom_id"),
            "turn_index": 0,
            "request_start_ns": start,
            "request_ack_ns": None,
            "request_end_ns": start + round(latency_ms * 1e6),
            "worker_id": _WRITER,
            "record_processor_id": _WRITER,
            "benchmark_phase": "profiling",
            "was_cancelled": False,
            "cancellation_time_ns": None,
        }
    }


def _token_metrics(facts: BodyFacts) -> dict[str, Any]:
    if facts.usage is None:
        return {}
    return {
        "input_sequence_length": {"value": facts.usage["prompt_tokens"], "unit": "tokens"},
        "output_sequence_length": {"value": facts.usage["completion_tokens"], "unit": "tokens"},
    }


def _error(record: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the error in AIPerf's form, where the code is a number."""
    error = record.get("error")
    error = error if isinstance(error, Mapping) else {}
    status = response.get("status_code")
    return {
        "code": status if isinstance(status, int) else None,
        "type": error.get("type"),
        "message": str(error.get("message") or "the request was not served"),
    }
