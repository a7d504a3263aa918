"""Refusal by name of what a request asks for and does not get."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from batchspec.errors import RequestError
from batchspec.files.parameters import HONOURED, IGNORED, OF_ONE_ENDPOINT, OFF_VALUES
from batchspec.files.wording import shown
from batchspec.request import Endpoint

__all__ = ["check_endpoint", "check_known", "check_unsupported"]


def check_unsupported(fields: Mapping[str, Any]) -> None:
    """Raise RequestError for the first field that asks for something that is not supported yet."""
    for name, value in fields.items():
        if name in OFF_VALUES and not _is_off(value, OFF_VALUES[name]):
            remedy = " or ".join(["remove it", *(f"give {shown(off)}" for off in OFF_VALUES[name])])
            raise RequestError(
                f'"{name}" is not supported yet (found {shown(value)}): {remedy}',
                param=name,
                code="unsupported_parameter",
            )


def check_endpoint(fields: Mapping[str, Any], *, endpoint: Endpoint) -> None:
    """Raise RequestError for the first field that asks for something that only the other endpoint does."""
    for owner, names in OF_ONE_ENDPOINT.items():
        for name, off_values in names.items():
            value = fields.get(name)
            if owner is not endpoint and not _is_off(value, off_values):
                raise RequestError(
                    f'"{name}" belongs to {owner} (found {shown(value)}): remove it or address the request there',
                    param=name,
                    code="unsupported_parameter",
                )


def check_known(fields: Mapping[str, Any]) -> None:
    """Raise RequestError for the first field, not null, that is neither honoured, ignored nor known as unsupported."""
    for name, value in fields.items():
        if value is None or name in HONOURED or name in IGNORED or name in OFF_VALUES:
            continue
        near = get_close_matches(name, HONOURED, n=1)
        remedy = f'did you mean "{near[0]}"?' if near else "remove it"
        raise RequestError(
            f"{shown(name)} is not supported yet (found {shown(value)}): {remedy}",
            param=name,
            code="unsupported_parameter",
        )


def _is_off(value: Any, off_values: tuple[Any, ...]) -> bool:
    """Whether a value asks for nothing: null, or one of these; unlike in Python, true is not 1."""
    return value is None or any(isinstance(value, bool) == isinstance(off, bool) and value == off for off in off_values)
