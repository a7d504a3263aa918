"""Equal and different texts of two runs, in lines."""

from collections.abc import Iterator, Mapping
from typing import Any

from batchspec.report.layout import count, decimal, printable

__all__ = ["text_lines"]

_MAX_SHOWN = 5


def text_lines(texts: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many texts are equal, and the first places where others part.

    Args:
        texts: what ``texts_document`` made.
    """
    if not texts["num_compared"]:
        yield "Texts: none to compare"
        return
    equal, compared = count(texts["num_equal"]), count(texts["num_compared"])
    other_tokens = texts["num_equal_of_other_tokens"]
    spelled = f", {count(other_tokens)} of them spelled in other tokens" if other_tokens else ""
    yield f"Texts: {equal} of {compared} equal{spelled}"
    if not texts["num_different"]:
        return
    yield f"Different: {count(texts['num_different'])}, in {count(texts['num_cut'])} of them one text begins the other"
    for key, name in (("first_character", "character"), ("first_token", "token")):
        spread = texts[key]
        if spread is not None:
            median, most = decimal(spread["median"], digits=0), count(spread["max"])
            yield f"First different {name}: at {count(spread['min'])} to {most}, median {median} (from 0)"
    for one in texts["divergences"][:_MAX_SHOWN]:
        yield from _divergence(one)


def _divergence(one: Mapping[str, Any]) -> Iterator[str]:
    places = [f"{name} {count(one[name])}" for name in ("choice", "character", "token") if one[name]]
    yield f"{printable(one['custom_id'])}: {', '.join(places) or 'from the beginning'}"
    for name, text in zip("AB", one["texts"], strict=True):
        yield f"  {name}: {printable(text)}"
