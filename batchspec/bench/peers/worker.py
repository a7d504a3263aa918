"""An engine in a process of its own environment: a line of JSON asks for a job, a line of JSON answers.

The process is given its settings as one JSON argument, says ``{"ready": true}`` once its model is loaded, and then
waits. A job is ``{"prompts": [[token ids]], "max_tokens", "num_running"}``, an answer ``{"seconds", "output_tokens"}``.
"""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from batchspec.bench.job import Job, Measured
from batchspec.errors import UsageError

__all__ = ["Worker"]

_PATIENCE = 10.0  # seconds for the process to end once it is not needed any more


class Worker:
    """A worker process; a context manager and a contestant.

    Args:
        name: of the engine, for messages.
        python: the interpreter of its environment.
        script: the worker, which needs nothing but the engine and the standard library.
        settings: what the script is told.

    Raises:
        UsageError: the process ends before it is ready.
    """

    def __init__(self, name: str, *, python: str, script: Path, settings: Mapping[str, Any]):
        self.name = name
        self._directory = TemporaryDirectory()
        self._errors = Path(self._directory.name) / "stderr"
        try:
            with self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [python, str(script), json.dumps(settings)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                )
        except OSError as error:
            self._directory.cleanup()
            raise UsageError(f"--peer {name}={python} cannot be run ({error.strerror or error}).") from error
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def run(self, job: Job) -> Measured:
        """Have the job done; the seconds are those that the worker measured.

        Raises:
            UsageError: the worker could not do it.
        """
        request = {"prompts": job.prompts, "max_tokens": job.max_tokens, "num_running": job.max_num_seqs}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; reading its answer says why
        answer = self._answer()
        return Measured(seconds=float(answer["seconds"]), output_tokens=int(answer["output_tokens"]))

    def close(self) -> None:
        """Let the process end, and make it if it does not."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._directory.cleanup()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        """Wait for the next line of the worker's; UsageError if there is none, or if it tells of an error."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise UsageError(f"the peer {self.name} ended without an answer: {self._last_words()}")
        try:
            answer: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            raise UsageError(f"the peer {self.name} answered {line!r}, which is not JSON.") from None
        if "error" in answer:
            raise UsageError(f"the peer {self.name} failed: {answer['error']}")
        return answer

    def _last_words(self) -> str:
        text = self._errors.read_text(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {self._process.returncode}"
