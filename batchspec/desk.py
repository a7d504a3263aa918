"""Where lines come in and records go out: requests being served, their turns, their failures, and their order."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from batchspec.acceptance import AcceptanceRecorder
from batchspec.admission import Grammars
from batchspec.answer import TokenizerLike
from batchspec.assembly import Assembly, Limits
from batchspec.errors import RequestError, UsageError
from batchspec.ordering import Lane
from batchspec.reasons import cause_of_silence, no_token
from batchspec.records import error_record
from batchspec.request import Intake, RejectedLine, Request, Where, naming
from batchspec.sequence import Sequence
from batchspec.step import Outcome

__all__ = ["Desk", "Progress"]

_MOST_HELD = 4096  # records that may wait for an earlier one before no new line is taken


@dataclass(kw_only=True)
class Progress:
    """What has been done so far, for a progress line: plain counts, and whether the input has come to its end."""

    num_requests: int = 0
    is_exhausted: bool = False
    num_done: int = 0
    num_failed: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    num_steps: int = 0
    num_draft_tokens: int = 0
    num_accepted_draft_tokens: int = 0


class Desk:
    """Turns lines into sequences and ended sequences into records.

    Args:
        tokenizer: text to tokens and back.
        limits: what every sequence has in common.
        grammars: compiles structured output.
        add: called with every sequence that is to run.
        drop: called with every sequence that is to be given up, if it still runs, and why: "error" or "abort".
    """

    def __init__(
        self,
        *,
        tokenizer: TokenizerLike,
        limits: Limits,
        grammars: Grammars,
        add: Callable[[Sequence], None],
        drop: Callable[[Sequence, str], None],
    ):
        self.tokenizer = tokenizer
        self.limits = limits
        self.grammars = grammars
        self.progress = Progress()
        self.unreported: dict[str, AcceptanceRecorder] = {}
        self._add = add
        self._drop = drop
        self._open: dict[int, Assembly] = {}
        self._streamed: set[int] = set()
        self.begin(in_order=True, where="line")

    def begin(self, *, in_order: bool, where: Where, on_chunk: Callable[[dict[str, Any]], None] | None = None) -> None:
        """Open a new lane.

        Args:
            in_order: whether records leave in the order of the lines.
            where: how messages name a line.
            on_chunk: called with every chunk of streamed requests as it is made; chunks leave this way instead of in
                records, whose metrics then count as unreported.

        Raises:
            UsageError: requests of an earlier lane are still being served.
        """
        if self._open:
            raise UsageError("the engine is serving other requests: finish or close that run or stream first")
        self.lane = Lane(in_order=in_order, most_held=_MOST_HELD)
        self.where = naming(where)
        self.on_chunk = on_chunk or (lambda _: None)
        self.is_live = on_chunk is not None

    def take_in(self, line: Intake, *, now: float) -> None:
        """Start a request's sequences, or hand in the error record of a line that cannot be served.

        Raises:
            UsageError: a request of the same index is being served.
        """
        if line.index in self._open:
            raise UsageError(f"{self.where(line.line)} has index {line.index}, as has one that is being served")
        self.lane.open(line.index)
        self.progress.num_requests += 1
        if isinstance(line, RejectedLine):
            self._hand_in(line.index, error_record(line), is_failure=True)
            return
        assembly = Assembly(
            line, tokenizer=self.tokenizer, limits=self.limits, grammars=self.grammars, on_chunk=self.on_chunk
        )
        try:
            sequences = assembly.start(now=now)
        except RequestError as error:
            self._reject(line, error)
            return
        self._open[line.index] = assembly
        if line.stream:
            self._streamed.add(line.index)
        for sequence in sequences:
            self._add(sequence)

    def observe(self, outcomes: Iterable[Outcome]) -> None:
        """Let streamed requests tell what a step has committed."""
        if not self._streamed:
            return
        for outcome in outcomes:
            sequence = outcome.sequence
            if sequence.request_index in self._streamed and outcome.token_ids and sequence.finish_reason != "error":
                self._open[sequence.request_index].tell(sequence)

    def close(self, sequence: Sequence, *, now: float) -> None:
        """Note that a sequence ended: ask the next turn, or hand in the record once the whole request is done."""
        assembly = self._open.get(sequence.request_index)
        if assembly is None:  # given up in this very step, because of another of its sequences
            return
        if sequence.finish_reason == "error":
            self._fail(assembly, no_token(sequence))
            return
        assembly.num_ended += 1
        if not assembly.is_finished:
            return
        try:
            turn = assembly.next_turn(now=now)
        except RequestError as error:
            self._fail(assembly, error)
            return
        if turn is not None:
            self._add(turn)
            return
        self._forget(assembly)
        if self.is_live or not assembly.is_reported:
            self._set_aside("live stream" if self.is_live else cause_of_silence(assembly.request), assembly)
        self._hand_in(assembly.request.index, assembly.record(), is_failure=False)

    def give_up(self, sequences: Iterable[Sequence], error: RequestError) -> None:
        """Fail every request that one of the sequences belongs to."""
        for index in {sequence.request_index for sequence in sequences}:
            self._fail(self._open[index], error)

    def abort(self) -> None:
        """Give up everything that is in flight without a record; its counts stay in the totals, named as aborted."""
        for assembly in list(self._open.values()):
            self._drop_all(assembly, cause="aborted")

    def held(self) -> Iterator[dict[str, Any]]:
        """Yield the records that are done and wait for an earlier one."""
        return self.lane.held()

    def in_flight(self) -> list[AcceptanceRecorder]:
        """Return the recorders of requests that have no record yet."""
        found = (assembly.recorder for assembly in self._open.values())
        return [recorder for recorder in found if recorder is not None]

    def _fail(self, assembly: Assembly, error: RequestError) -> None:
        """Give up a request that was being served; its counts stay in the totals, named as unreported."""
        self._drop_all(assembly, cause="error")
        self._reject(assembly.request, error)

    def _drop_all(self, assembly: Assembly, *, cause: str) -> None:
        self._forget(assembly)
        for sequence in assembly.sequences:
            self._drop(sequence, "abort" if cause == "aborted" else "error")
        self._set_aside(cause, assembly)

    def _forget(self, assembly: Assembly) -> None:
        del self._open[assembly.request.index]
        self._streamed.discard(assembly.request.index)

    def _set_aside(self, cause: str, assembly: Assembly) -> None:
        recorder = assembly.recorder
        if recorder is not None:
            empty = AcceptanceRecorder(num_spec_tokens=self.limits.num_spec_tokens)
            self.unreported.setdefault(cause, empty).absorb(recorder)

    def _reject(self, request: Request, error: RequestError) -> None:
        line = RejectedLine(
            index=request.index,
            line=request.line,
            custom_id=request.custom_id,
            message=f"{self.where(request.line)}: {error.message}",
            param=error.param,
            code=error.code,
            status_code=error.status_code,
            category=request.category,
        )
        self._hand_in(line.index, error_record(line), is_failure=True)

    def _hand_in(self, index: int, record: dict[str, Any], *, is_failure: bool) -> None:
        self.progress.num_done += 1
        self.progress.num_failed += is_failure
        self.lane.close(index, record)
