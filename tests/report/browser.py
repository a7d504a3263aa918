"""A headless browser that opens a file and tells what came of it, driven over two pipes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["BROWSERS", "OpenPage", "find_browser", "opened"]

_RUN = """
import os, sys
ends = [os.dup(os.dup(os.dup(int(end)))) for end in sys.argv[1:3]]  # none of them is 3 or 4 any more
for place, end in enumerate(ends, start=3):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts both pipes where the browser looks for them."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    """The first browser that is installed."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


class OpenPage:
    """A page, and every event of the browser since it was asked for.

    Args:
        ask: file descriptor that the browser reads commands from.
        answer: file descriptor that it writes answers and events to.
    """

    def __init__(self, *, ask: int, answer: int):
        self._ask, self._answer = ask, answer
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Give a command of the DevTools protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._ask, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result
            self.events.append(found)

    def open(self, url: str) -> None:
        """Open a page and wait until it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Network", "Page", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        while not self.named("Page.loadEventFired"):
            self.events.append(self._next())

    def evaluate(self, expression: str) -> Any:
        """Return what an expression, or its promise, comes to in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    def named(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of all events of a kind."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            read = os.read(self._answer, 2**16)
            assert read, "the browser has gone away"
            self._buffer += read
        message, _, self._buffer = self._buffer.partition(b"\0")
        decoded: dict[str, Any] = json.loads(message)
        return decoded


@contextmanager
def opened(browser: str, file: Path, *, profile: Path) -> Iterator[OpenPage]:
    """Open a file in a browser with a profile of its own."""
    their_in, ask = os.pipe()
    answer, their_out = os.pipe()
    command = [
        sys.executable,
        "-c",
        _RUN,
        str(their_in),
        str(their_out),
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
    ]
    process = subprocess.Popen(
        command, pass_fds=(their_in, their_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(their_in)
    os.close(their_out)
    try:
        page = OpenPage(ask=ask, answer=answer)
        page.open(file.as_uri())
        yield page
    finally:
        os.close(ask)
        os.close(answer)
        process.terminate()
        process.wait(timeout=30)
