"""What is to be said about a sweep beside its numbers: the fastest point, what failed, whether outputs agree."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from batchspec.report.layout import Paragraph, Tone, count, decimal, printable

__all__ = ["difference_sentence", "verdict_parts"]


def verdict_parts(document: Mapping[str, Any]) -> Iterator[Paragraph]:
    """Yield the sentences beneath the tables of what ``sweep_document`` made."""
    points: Sequence[Mapping[str, Any]] = document["points"]
    yield from _fastest(document, points)
    lines = [line for point in points if (line := _trouble(point)) is not None]
    if lines:
        yield _bad("\n".join(lines))
    yield from _accounts(points)
    yield from _outputs(document)


def difference_sentence(outputs: Mapping[str, Any]) -> str | None:
    """Return where the outputs of two points part first; None where they do not.

    Args:
        outputs: of the document.
    """
    first = outputs["first_difference"]
    if first is None:
        return None
    places = [
        f"{name} {count(first[name])}" for name in ("choice", "character", "token") if first.get(name) is not None
    ]
    where = f" at {', '.join(places)}" if places else ""
    number = count(outputs["points"][first["b"]]["num_different"])
    return printable(
        f"outputs differ ({first['what']}) for {number} requests between A ({first['a']}) and B ({first['b']}), "
        f"first for {first['custom_id']}{where}, counted from 0"
    )


def _fastest(document: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> Iterator[Paragraph]:
    for point in points:
        if point["point"] == document["fastest"]:
            rate = decimal(point["throughput"]["output_tokens_per_second"], digits=1)
            yield Paragraph(text=f"Fastest: {printable(point['point'])}, {rate} output tok/s")


def _trouble(point: Mapping[str, Any]) -> str | None:
    """Return what went wrong at a point, None for nothing."""
    if point["error"] is not None:
        return f"Not run: {printable(point['point'])}: {printable(point['error'])}"
    failed = point["requests"]["num_failed"]
    return f"Failed requests at {printable(point['point'])}: {count(failed)}" if failed else None


def _accounts(points: Sequence[Mapping[str, Any]]) -> Iterator[Paragraph]:
    accounts = [(point["point"], point["reconciliation"]) for point in points if point["reconciliation"] is not None]
    wrong = [name for name, account in accounts if account["num_differences"]]
    for name in wrong:
        yield _bad(f"Not reconciled: the accounts of {printable(name)} differ; do not trust its numbers.")
    if accounts and not wrong:
        yield Paragraph(text=f"Reconciled: both accounts of {_points(len(accounts))} agree exactly.", tone=Tone.GOOD)


def _outputs(document: Mapping[str, Any]) -> Iterator[Paragraph]:
    outputs = document["outputs"]
    compared = list(outputs["points"].values())
    sentence = difference_sentence(outputs)
    if sentence is not None:
        first = outputs["first_difference"]
        texts = [f"{name}: {printable(text)}" for name, text in zip("AB", first.get("texts", ()), strict=False)]
        yield _bad("\n".join([f"{sentence[0].upper()}{sentence[1:]}.", *texts, *_doubt(document)]))
    elif compared and compared[0]["num_compared"]:
        with_ids = min(one["num_with_token_ids"] for one in compared)
        ids = f", and token ids of {count(with_ids)}" if with_ids else ""
        yield Paragraph(
            text=f"Identical outputs: {_points(outputs['num_points'])} give the same text, finish reason and number of "
            f"tokens for all {count(compared[0]['num_compared'])} requests{ids}.",
            tone=Tone.GOOD,
        )
    else:
        yield Paragraph(text="Outputs are not compared: it takes two points that have answered a request.")


def _doubt(document: Mapping[str, Any]) -> Iterator[str]:
    dtype = document["sweep"]["resolved"]["dtype"]
    if dtype != "float32":
        yield f"In {dtype} a text can depend on the batch: rows are rounded in ways that depend on their number."


def _points(number: int) -> str:
    return "1 point" if number == 1 else f"{count(number)} points"


def _bad(text: str) -> Paragraph:
    return Paragraph(text=text, tone=Tone.BAD)
