"""Paths with a protocol, such as ``s3://bucket/prompts.jsonl``, and what fsspec makes of them."""

import re
from pathlib import Path
from typing import Any

from batchspec.errors import UsageError

__all__ = ["filesystem", "is_url", "local_form", "refuse_url"]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*(::|://)")
_COLLAPSED = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:(/|$)")  # what pathlib leaves of a URL
_LOCAL = ("file://", "local://")
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}


def is_url(path: str) -> bool:
    """Whether a path names a protocol; ``file://`` counts, see ``local_form``."""
    return _URL.match(path) is not None


def local_form(path: str) -> str:
    """Return a ``file://`` URL as the plain path that it means; any other path as it is."""
    return next((path.removeprefix(head) for head in _LOCAL if path.startswith(head)), path)


def filesystem(url: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path in it.

    Raises:
        UsageError: nobody knows the protocol, its package is not installed, or the place cannot be reached.
    """
    from fsspec.core import url_to_fs

    try:
        found, key = url_to_fs(url)
    except ImportError as error:
        raise UsageError(f"{url} cannot be opened: {_remedy(url, error)}") from error
    except Exception as error:  # of whatever package speaks the protocol
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"{url} cannot be opened ({reason}): check the URL and the credentials") from error
    return found, str(key)


def _remedy(url: str, error: ImportError) -> str:
    protocol = url.partition("://")[0].rpartition("::")[2].lower()
    if protocol in _EXTRAS:
        return f"{protocol}:// needs a package; run pip install 'batchspec[{_EXTRAS[protocol]}]'"
    return f"{protocol}:// needs a package that is not installed ({' '.join(str(error).split())})"


def refuse_url(path: Path, *, why: str) -> None:
    """Raise UsageError if a path that must be local was given as a URL."""
    text = str(path)
    if _COLLAPSED.match(text):
        url = text.replace(":/", "://", 1)
        raise UsageError(f"{url} is a URL, and no files can be written there: {why}")
