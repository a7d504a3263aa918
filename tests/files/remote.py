"""Files behind URLs for tests: fsspec's memory, a directory of its own for each test."""

from collections.abc import Iterator
from uuid import uuid4

import fsspec
import pytest


class Place:
    """A directory in fsspec's memory."""

    def __init__(self) -> None:
        self.files = fsspec.filesystem("memory")
        self.url = f"memory://{uuid4().hex}"

    def write(self, name: str, data: bytes) -> str:
        url = f"{self.url}/{name}"
        self.files.pipe_file(url, data)
        return url

    def read(self, name: str) -> bytes:
        return bytes(self.files.cat_file(f"{self.url}/{name}"))

    def names(self) -> list[str]:
        return sorted(str(path).rpartition("/")[2] for path in self.files.find(self.url))


@pytest.fixture
def place() -> Iterator[Place]:
    one = Place()
    yield one
    if one.files.exists(one.url):
        one.files.rm(one.url, recursive=True)
