"""Plain text: one prompt a line."""

from batchspec.convert.asked import Asked
from batchspec.errors import RequestError
from batchspec.files.lines import MAX_LINE_BYTES
from batchspec.files.source import Row

__all__ = ["text_line"]


def text_line(row: Row, *, is_chat: bool) -> Asked:
    """Return what a line asks: to continue it, or as a chat to answer it; a carriage return at its end goes.

    Raises:
        RequestError: the line is not UTF-8 or was too long to keep.
    """
    _, data = row
    if not isinstance(data, bytes):
        raise RequestError(f"the line is longer than {MAX_LINE_BYTES // 2**20} MiB: split it")
    try:
        text = data.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} of the line (0x{data[error.start]:02x}) is not UTF-8"
        raise RequestError(f"{what}: save the file as UTF-8") from error
    return Asked(turns=(text,)) if is_chat else Asked(prompt=text)
