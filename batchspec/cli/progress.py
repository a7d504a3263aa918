"""Progress on stderr: one live line on a terminal, a plain line now and then elsewhere."""

import threading
import time

from rich.console import Console
from rich.live import Live
from rich.text import Text

from batchspec.api import Progress
from batchspec.files import InputSource
from batchspec.job.meter import Meter
from batchspec.plain_text import printable

__all__ = ["Display"]

_SECONDS_BETWEEN_LINES = 10.0


class Display:
    """Shows a run's progress; it reads the counts from a thread of its own.

    Args:
        console: where to; stderr by default.
    """

    def __init__(self, console: Console | None = None):
        self._console = console or Console(stderr=True, highlight=False)
        self._meter: Meter | None = None
        self._live: Live | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def say(self, text: str) -> None:
        """Print one sentence."""
        self._console.print(Text(f"batchspec: {printable(text)}"), soft_wrap=True)

    def begin(self, progress: Progress, source: InputSource, *, num_done: int, num_shards: int = 1) -> None:
        """Start to show progress."""
        self._meter = Meter(progress, source, num_before=num_done, now=time.monotonic(), num_shards=num_shards)
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=4, transient=True, get_renderable=self._line)
            self._live.start()
        else:
            self._thread = threading.Thread(target=self._print_lines, daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Stop, and leave the last line standing."""
        self._ended.set()
        if self._live is not None:
            self._live.stop()
        if self._thread is not None:
            self._thread.join()
        self._console.print(self._line(), soft_wrap=True)

    def _line(self) -> Text:
        return Text("" if self._meter is None else f"batchspec: {self._meter.line(now=time.monotonic())}")

    def _print_lines(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_LINES):
            self._console.print(self._line(), soft_wrap=True)
