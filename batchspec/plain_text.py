"""Text from outside, made fit for a terminal, a table or a page."""

import re

__all__ = ["escaped_json", "is_text", "printable", "printable_lines"]

# Beyond those that JSON escapes itself: DEL, the C1 controls, and characters that reorder or hide text.
_STEERING = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


def is_text(text: str) -> bool:
    """Whether text can be written as UTF-8, which the name of a file in another encoding cannot."""
    return text.isascii() or not any("\ud800" <= one <= "\udfff" for one in text)


def printable(text: str) -> str:
    """Return text on one line and without characters that could steer a terminal."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "\ufffd" for one in text)


def printable_lines(text: str) -> str:
    """Return text like ``printable``, its lines kept apart."""
    return "\n".join(map(printable, text.split("\n")))


def escaped_json(text: str) -> str:
    """Return JSON text with those characters escaped that could steer a terminal; it means the same."""
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
