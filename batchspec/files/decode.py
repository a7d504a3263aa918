"""One line of bytes to one JSON object, with a sentence for everything that can be wrong with it."""

from typing import Any

import orjson

from batchspec.errors import RequestError
from batchspec.files.lines import MAX_LINE_BYTES
from batchspec.files.wording import describe

__all__ = ["decode_row"]

_CODE = "invalid_json_line"


def decode_row(data: bytes | None) -> dict[str, Any]:
    """Return the object that a line holds.

    Args:
        data: the line; None when it was too long to keep.

    Raises:
        RequestError: the line is not UTF-8, not JSON or not an object; the sentence names the byte or the column.
    """
    if data is None:
        raise RequestError(
            f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB: split it or shorten its prompt", code=_CODE
        )
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _not_json(data, error) from error
    if not isinstance(value, dict):
        raise RequestError(
            f'the line is {describe(value)}: write one object per line, as in {{"prompt": "Hello"}}', code=_CODE
        )
    return value


def _not_json(data: bytes, error: orjson.JSONDecodeError) -> RequestError:
    """Return the error for a line that orjson refused."""
    try:
        data.decode()
    except UnicodeDecodeError as unicode:
        what = f"byte {unicode.start + 1} of the line (0x{data[unicode.start]:02x}) is not UTF-8"
        return RequestError(f"{what}: save the file as UTF-8", code=_CODE)
    if "surrogate" in error.msg:
        what = f"half of a surrogate pair stands alone at column {error.colno}"
        return RequestError(f"{what}: write both \\u escapes of the character or neither", code=_CODE)
    if "depth" in error.msg:
        return RequestError(f"the line is nested too deeply at column {error.colno}: flatten it", code=_CODE)
    if "infinity" in error.msg:
        return RequestError(f"the number at column {error.colno} is too large: write a smaller one", code=_CODE)
    reason = f"{error.msg} at column {error.colno}"
    return RequestError(f"the line is not JSON ({reason}): correct it there", code=_CODE)
