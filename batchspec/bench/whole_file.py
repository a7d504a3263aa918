"""The requests of a file, each as it wants to be answered."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from batchspec.bench.changed import with_a_word_changed
from batchspec.errors import UsageError
from batchspec.files import Columns, RowDefaults, open_source, read_requests
from batchspec.request import Request

__all__ = ["WholeFile", "read_whole_file"]


@dataclass(frozen=True, kw_only=True)
class WholeFile:
    """A job as it stands in a file.

    Attributes:
        content: its requests.
        num_left_out: lines that are none.
        num_changed: requests of which a word was changed.
    """

    content: tuple[Request, ...]
    num_left_out: int = 0
    num_changed: int = 0

    def requests(self) -> Iterator[Request]:
        """Yield the requests in their order."""
        yield from self.content

    def changed(self) -> "WholeFile":
        """Return the job with one word of every prompt changed."""
        content, num_changed = with_a_word_changed(self.content)
        return replace(self, content=tuple(content), num_changed=num_changed)


def read_whole_file(path: str, *, column: str | None, defaults: RowDefaults) -> WholeFile:
    """Return the job in a file.

    Args:
        path: of the file.
        column: that holds the prompt of a bare row; None for ``prompt``.
        defaults: for what a request does not say.

    Raises:
        UsageError: the file cannot be read, or holds no request.
    """
    lines = list(read_requests(open_source(path), columns=Columns(prompt=column), defaults=defaults))
    content = tuple(line for line in lines if isinstance(line, Request))
    if not content:
        raise UsageError(f"input {path} holds no request that can be served: give one that does.")
    return WholeFile(content=content, num_left_out=len(lines) - len(content))
