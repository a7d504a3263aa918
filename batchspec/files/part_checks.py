"""What can be said of a file of an input before it is read, and of one that breaks off."""

from batchspec.errors import UsageError
from batchspec.files.fingerprint import sha256_of_file
from batchspec.files.parquet_in import check_parquet
from batchspec.files.parts import Part
from batchspec.files.urls import is_url

__all__ = ["check_part", "damaged", "digest_of"]

_SIGNATURES = {
    b"PAR1": (".parquet", "Parquet"),
    b"\x1f\x8b\x08": (".gz", "gzip"),
    b"\x28\xb5\x2f\xfd": (".zst", "zstd"),
}


def check_part(part: Part) -> int:
    """Raise UsageError for a file that cannot be read or is not what it is named; return its rows if it is Parquet."""
    try:
        size = part.size
        head = part.between(0, min(4, size)) if size else b""
    except OSError as error:
        raise UsageError(f"input {part.path} cannot be read ({_reason(error)}): check the path") from error
    for signature, (expected, kind) in _SIGNATURES.items():
        if head.startswith(signature) and part.suffix != expected:
            raise UsageError(f"input {part.path} holds {kind} data: give its name the extension {expected}")
    return check_parquet(part) if part.is_parquet else 0


def digest_of(part: Part) -> str | None:
    """Return the hash of a file that was not read from its beginning to its end; None if it cannot be read again."""
    try:
        with part.open() as file:
            return sha256_of_file(file)
    except OSError:
        return None


def damaged(part: Part, error: Exception) -> str:
    """Return the sentence about a file that breaks off."""
    remedy = "run the same command again" if is_url(part.path) else "it is truncated or corrupt; make it again"
    return f"{part.path} cannot be read further ({_reason(error)}): {remedy}"


def _reason(error: Exception) -> str:
    """Return the operating system's or pyarrow's reason in a few words, on one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split()) or type(error).__name__
