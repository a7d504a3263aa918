"""llguidance's messages, which span lines and show its own notation, as one readable line."""

import re

__all__ = ["one_line"]

_LONGEST = 200
_LISTING = re.compile(r"\s*(\d+ \||\^|<)")  # lines that show the source, point into it, or hold llguidance's state
_MEANINGS = {
    "NoExtension": "it cannot be completed from here with the tokens of this model",
    "NoExtensionBias": "it cannot be completed from here with the tokens of this model",
}


def one_line(message: str) -> str:
    """Return the reason in an error message of llguidance, without a full stop, at most 200 characters."""
    lines = [line.strip() for line in message.splitlines() if line.strip() and not _LISTING.match(line)]
    reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    text = " ".join(reasons or lines).rstrip(".") or "no reason given"
    text = _MEANINGS.get(text, text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
