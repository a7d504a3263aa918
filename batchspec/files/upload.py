"""A finished file on its way to a URL, where it appears as a whole or not at all."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from batchspec.files.urls import filesystem

__all__ = ["upload"]

# Where an object appears only when its upload has ended. Elsewhere a file could be seen growing.
_WHOLE = frozenset({"s3", "s3a", "gs", "gcs", "hf", "abfs", "abfss", "az"})


def upload(local: Path, url: str) -> None:
    """Copy a file to a URL.

    Raises:
        UsageError: the URL's protocol cannot be spoken here.
        OSError: the upload failed, or the copy is not as long as the file.
    """
    files, key = filesystem(url)
    try:
        _put(files, local, key)
        files.invalidate_cache()
        size, found = local.stat().st_size, files.info(key).get("size")
    except OSError:
        raise
    except Exception as error:  # of whatever package speaks the protocol
        raise OSError(" ".join(str(error).split()) or type(error).__name__) from error
    if found is not None and found != size:
        raise OSError(f"{found} bytes arrived of {size}")


def _put(files: Any, local: Path, key: str) -> None:
    protocols = {files.protocol} if isinstance(files.protocol, str) else set(files.protocol)
    if protocols & _WHOLE:
        files.put_file(str(local), key)
        return
    parent, _, name = key.rpartition("/")
    temporary = f"{parent}/.{name}.tmp"
    try:
        if parent:
            files.makedirs(parent, exist_ok=True)
        files.put_file(str(local), temporary)
        files.mv(temporary, key)
    except BaseException:
        with suppress(Exception):
            files.rm_file(temporary)
        raise
