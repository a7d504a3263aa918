"""The token ids of a response's sequences, which our own detailed metrics tell."""

from typing import Any

__all__ = ["sequences_in"]


def sequences_in(body: Any) -> Any:
    """Return ``metrics.batchspec.sequences`` of a body as it stands, whatever it holds; None where it is missing."""
    for name in ("metrics", "batchspec", "sequences"):
        body = body.get(name) if isinstance(body, dict) else None
    return body
