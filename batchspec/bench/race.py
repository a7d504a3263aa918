"""Running a whole file with one drafter after another, and holding their answers beside each other."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from batchspec.acceptance import Level
from batchspec.bench.entries import Entry
from batchspec.bench.job import Measured, serve
from batchspec.bench.subject import Subject
from batchspec.bench.whole_file import WholeFile
from batchspec.bench.witness import Outputs, Witness
from batchspec.errors import UsageError

__all__ = ["Lap", "Race"]


@dataclass(frozen=True, kw_only=True)
class Lap:
    """One run of a file.

    Attributes:
        measured: its time, tokens and counts.
        accepted_by_source: draft tokens that were accepted, by who proposed them.
        num_different: requests whose answer is another than the first run's on the same prompts.
    """

    measured: Measured
    accepted_by_source: Mapping[str, int]
    num_different: int

    @property
    def rate(self) -> float:
        """Output tokens per second."""
        return self.measured.output_tokens / self.measured.seconds


class Race:
    """Runs entries on a file, each time with a new engine, so that no cache is left from the run before.

    Args:
        subject: the model.
        files: by whether a word is changed, what is run.
    """

    def __init__(self, subject: Subject, files: Mapping[bool, WholeFile]):
        self.subject = subject
        self.files = files
        self._expected: dict[bool, Outputs] = {}

    def run(
        self, entry: Entry, *, max_num_seqs: int, on_record: Callable[[dict[str, Any]], None] = lambda _: None
    ) -> Lap:
        """Run the entry's prompts; making the engine is left out of the time.

        Raises:
            UsageError: a request cannot be served, or a float32 model gives another answer than before.
        """
        core = self.subject.engine(speculative=entry.config, level=Level.NONE, max_num_seqs=max_num_seqs)
        witness = Witness(core)
        measured = serve(core, self.files[entry.is_changed], on_record=on_record)
        num_different = self._compare(entry, witness.outputs)
        counts = {
            "num_steps": core.progress.num_steps,
            "num_decode_steps": witness.num_decode_steps,
            "num_decoded_tokens": witness.num_decoded_tokens,
            "num_drafts": witness.num_drafts,
            "num_draft_tokens": core.progress.num_draft_tokens,
            "num_accepted_draft_tokens": core.progress.num_accepted_draft_tokens,
        }
        sources = core.sources.totals()
        return Lap(
            measured=replace(measured, counts=counts),
            accepted_by_source={name: each["num_accepted_draft_tokens"] for name, each in sources.items()},
            num_different=num_different,
        )

    def _compare(self, entry: Entry, outputs: Outputs) -> int:
        """Return how many requests were answered otherwise; below float32 a text can depend on the batch."""
        expected = self._expected.setdefault(entry.is_changed, outputs)
        different = {key[0] for key in expected.keys() | outputs.keys() if expected.get(key) != outputs.get(key)}
        if different and self.subject.dtype == "float32":
            names = {request.index: request.custom_id for request in self.files[entry.is_changed].content}
            raise UsageError(
                f"the drafter {entry.name} changed {len(different)} answers, that to {names[min(different)]} first: "
                "this must not happen in float32; please report it."
            )
        return len(different)
