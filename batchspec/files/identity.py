"""What a row is called, and the category it belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.fields import text, wrong

__all__ = ["ID_COLUMNS", "Columns", "glimpse", "read_category", "read_custom_id"]

_LARGEST_EXACT = 2**53  # an integer beyond 64 bits is decoded as a float, which is another number
ID_COLUMNS = ("custom_id", "id", "question_id")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns that hold a row's prompt and id; None means the usual names."""

    prompt: str | None = None
    id: str | None = None


def read_custom_id(row: Mapping[str, Any], *, line: int, columns: Columns, is_batch: bool) -> str:
    """Return the row's id; an integer becomes text, and a bare row without one is called after its line.

    Raises:
        RequestError: a batch line has no ``custom_id`` string, or the id is neither text nor an integer.
    """
    if is_batch and columns.id is None:
        custom_id = row.get("custom_id")
        if not isinstance(custom_id, str) or not custom_id:
            code = "missing_required_parameter" if custom_id is None else "invalid_type"
            raise wrong("custom_id", custom_id, "a string that no other line has", code=code)
        return custom_id
    names = ID_COLUMNS if columns.id is None else (columns.id,)
    name = next((name for name in names if row.get(name) is not None), None)
    if name is None and columns.id is not None:
        raise RequestError(
            f'the row has no "{columns.id}": add it, or name another column with --id-column',
            param=columns.id,
            code="missing_required_parameter",
        )
    return f"line-{line}" if name is None else _as_text(row[name], name)


def _as_text(value: Any, name: str) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) <= _LARGEST_EXACT:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise wrong(name, value, "a string or an integer", code="invalid_type")
    return value


def read_category(row: Mapping[str, Any]) -> str | None:
    """Return the row's category, None when it has none.

    Raises:
        RequestError: it is not a string.
    """
    return text(row, "category")


def glimpse(row: Mapping[str, Any], *, line: int, columns: Columns) -> tuple[str | None, str | None]:
    """Return the id and the category that can be read from a row whatever else is wrong with it, None for either."""
    names = ("custom_id",) if columns.id is None and "body" in row else ID_COLUMNS
    if columns.id is not None:
        names = (columns.id,)
    custom_id = next((row[name] for name in names if row.get(name) is not None), None)
    is_bare = columns.id is None and not any(name in row for name in ("body", "url", "method"))
    if custom_id is None and is_bare:
        custom_id = f"line-{line}"
    try:
        named = None if custom_id is None else _as_text(custom_id, "id")
    except RequestError:
        named = None
    category = row.get("category")
    return named, category if isinstance(category, str) else None
