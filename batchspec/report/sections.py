"""From the report document to the parts that both renderings show; nothing is computed anew but shares of a sum."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.account import reconciliation_parts
from batchspec.report.by_source import source_parts
from batchspec.report.distribution import distribution_parts
from batchspec.report.layout import Paragraph, Part, Tone, count, decimal, printable
from batchspec.report.weightings import weighting_parts

__all__ = ["report_parts"]

_SHOWN = {"model": "model", "method": "drafts by", "num_spec_tokens": "k", "level": "metrics"}


def report_parts(document: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of a report, top to bottom.

    Args:
        document: what ``report_document`` made.
    """
    yield from _summary(document)
    if document["acceptance"] is None:
        yield Paragraph(text="No acceptance numbers: no record carries metrics and no counter has a draft position.")
    else:
        yield from weighting_parts(document)
        yield from distribution_parts(document)
    yield from source_parts(document)
    yield from reconciliation_parts(document)


def _summary(document: Mapping[str, Any]) -> Iterator[Part]:
    run, requests, tokens = document["run"], document["requests"], document["tokens"]
    shown = [f"{name} {printable(str(run[key]))}" for key, name in _SHOWN.items() if run.get(key) is not None]
    if shown:
        yield Paragraph(text=" · ".join(shown), tone=Tone.QUIET)
    served, failed = count(requests["num_served"]), count(requests["num_failed"])
    lines = [
        f"Requests: {count(requests['num_requests'])}, served {served}, failed {failed}",
        *_listed("Failures", requests["failed_by_code"]),
        *_listed("Finish reasons", requests["finish_reasons"]),
        _tokens(tokens),
        *_throughput(document["throughput"]),
    ]
    yield Paragraph(text="\n".join(lines))


def _tokens(tokens: Mapping[str, int]) -> str:
    line = f"Tokens: {count(tokens['prompt_tokens'])} in prompts, {count(tokens['completion_tokens'])} in outputs"
    unknown = tokens["num_requests_without_usage"]
    return f"{line}, not known for {count(unknown)} streamed without usage" if unknown else line


def _listed(name: str, counts: Mapping[str, int]) -> Iterator[str]:
    if counts:
        yield f"{name}: " + ", ".join(f"{printable(key)} {count(number)}" for key, number in counts.items())


def _throughput(throughput: Mapping[str, float | None] | None) -> Iterator[str]:
    if throughput is not None:
        prompt, output, elapsed = (
            decimal(throughput[key], digits=1)
            for key in ("prompt_tokens_per_second", "output_tokens_per_second", "elapsed_seconds")
        )
        yield f"Throughput: prompt {prompt} tok/s, output {output} tok/s, elapsed {elapsed} s"
