"""The engine: requests in, records out, one packed forward pass a step."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from batchspec.acceptance import AcceptanceRecorder
from batchspec.assembly import Assembly, Limits, TokenizerLike
from batchspec.counters import Counters
from batchspec.drafting import Drafter
from batchspec.errors import RequestError
from batchspec.ordering import Lane
from batchspec.records import error_record
from batchspec.request import Intake, RejectedLine, Request
from batchspec.scheduler import Scheduler
from batchspec.sequence import Sequence
from batchspec.step import Outcome, StepPlan
from batchspec.verify import judge

__all__ = ["Engine", "Progress", "Runner"]

_MOST_HELD = 4096  # records that may wait for an earlier one before no new request is taken


class Runner(Protocol):
    """What the engine asks of a model."""

    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the logits (rows, vocabulary) of the plan's sampled chunks."""


@dataclass(kw_only=True)
class Progress:
    """What has been done so far, for a progress line; plain counts."""

    num_requests: int = 0
    num_done: int = 0
    num_failed: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    num_steps: int = 0
    num_draft_tokens: int = 0
    num_accepted_draft_tokens: int = 0


class Engine:
    """Continuous batching with speculation.

    Args:
        runner: computes logits.
        tokenizer: text to tokens and back.
        scheduler: its pool must hold one sequence of ``limits.max_model_len`` tokens.
        drafter: guesses tokens; ``NoDrafter`` for speculation off.
        counters: the Prometheus account.
        limits: what every sequence has in common.
        clock: monotonic, in seconds; read once a step, and once for every line taken in.
    """

    def __init__(
        self,
        *,
        runner: Runner,
        tokenizer: TokenizerLike,
        scheduler: Scheduler,
        drafter: Drafter,
        counters: Counters,
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.runner = runner
        self.tokenizer = tokenizer
        self.scheduler = scheduler
        self.drafter = drafter
        self.counters = counters
        self.limits = limits
        self.clock = clock
        self.progress = Progress()
        self.unreported: dict[str, AcceptanceRecorder] = {}
        self._now = clock()
        self.is_stopping = False
        self._open: dict[int, Assembly] = {}
        self._lane = Lane(in_order=True, most_held=_MOST_HELD)
        self._where = "line"

    def step(self) -> list[Sequence]:
        """Run one step and return the sequences that ended in it."""
        drafts = self.drafter.propose(self.scheduler.decoding)
        plan = self.scheduler.plan(drafts, now=self._now)
        logits = self.runner.forward(plan)
        verdicts = judge(plan, logits)
        self._now = self.clock()
        outcomes = self.scheduler.commit(plan, verdicts, now=self._now)
        self.counters.observe_drafts(num_drafted=verdicts.num_drafted, accepted=verdicts.accepted)
        self.drafter.observe(outcomes)
        self._observe(outcomes)
        return self.scheduler.reap()

    def run(self, intake: Iterable[Intake], *, in_order: bool = True, where: str = "line") -> Iterator[dict[str, Any]]:
        """Serve every line and yield its record; lines are taken in only as there is room for them.

        Args:
            intake: requests, and lines already found to be wrong, whose error records take their place.
            in_order: yield records in the order of the lines; otherwise as they are done.
            where: how error messages name a line, before its number.
        """
        lane = self._lane = Lane(in_order=in_order, most_held=_MOST_HELD)
        self._where = where
        source = iter(intake)
        is_exhausted = False
        while not self.is_stopping and (not is_exhausted or self.scheduler.num_unfinished):
            if not is_exhausted:
                is_exhausted = self._take_in(source, lane)
            if self.scheduler.num_unfinished:
                try:
                    finished = self.step()
                except RuntimeError as error:
                    self._abandon(error, lane)
                    finished = []
                for sequence in finished:
                    self._finish(sequence, lane)
            yield from lane.ready()

    def stop(self) -> None:
        """Let ``run`` end behind the current step; what is in flight then gets no record."""
        self.is_stopping = True

    def held(self) -> Iterator[dict[str, Any]]:
        """Yield the records that are done and wait for an earlier one."""
        return self._lane.held()

    def in_flight(self) -> list[AcceptanceRecorder]:
        """Return the recorders of requests that have no record yet."""
        found = (assembly.recorder for assembly in self._open.values())
        return [recorder for recorder in found if recorder is not None]

    def _take_in(self, source: Iterator[Intake], lane: Lane) -> bool:
        """Queue lines until a batch is waiting; return whether the input is exhausted."""
        while len(self.scheduler.waiting) < self.scheduler.max_num_seqs and not lane.is_full:
            line = next(source, None)
            if line is None:
                return True
            lane.open(line.index)
            self.progress.num_requests += 1
            if isinstance(line, RejectedLine):
                self._reject(line, lane)
                continue
            assembly = Assembly(line, tokenizer=self.tokenizer, limits=self.limits)
            try:
                sequences = assembly.start(now=self.clock())
            except RequestError as error:
                self._reject(self._rejected(line, error), lane)
                continue
            self._open[line.index] = assembly
            for sequence in sequences:
                self._add(sequence)
        return False

    def _add(self, sequence: Sequence) -> None:
        self.drafter.begin(sequence)
        self.scheduler.add(sequence)

    def _finish(self, sequence: Sequence, lane: Lane) -> None:
        """Close a sequence; ask the next turn, or hand in the record once the whole request is done."""
        self.drafter.end(sequence)
        self.counters.observe_finished(
            reason=sequence.finish_reason or "abort",
            num_prompt_tokens=sequence.num_prompt_tokens,
            num_output_tokens=sequence.num_output_tokens,
            seconds=self._now - sequence.timing.queued,
        )
        assembly = self._open.get(sequence.request_index)
        if assembly is None:  # given up in this very step, because of another of its sequences
            return
        if sequence.finish_reason == "error":
            self._fail(assembly, _no_token(), lane)
            return
        assembly.num_ended += 1
        if not assembly.is_finished:
            return
        try:
            turn = assembly.next_turn(now=self._now)
        except RequestError as error:
            self._fail(assembly, error, lane)
            return
        if turn is not None:
            self._add(turn)
            return
        del self._open[sequence.request_index]
        if not assembly.request.is_reportable:
            self._set_aside("n > 1" if assembly.request.sampling.n > 1 else "several prompts", assembly)
        self.progress.num_done += 1
        lane.close(assembly.request.index, assembly.record(created=int(time.time())))

    def _abandon(self, error: RuntimeError, lane: Lane) -> None:
        """Turn a failed forward pass into error records of the requests in the batch; the run goes on."""
        cause = next(iter(str(error).splitlines()), "no message")
        message = f"the forward pass failed with {type(error).__name__}: {cause}"
        failure = RequestError(message, code="engine_error", status_code=500)
        for index in {sequence.request_index for sequence in self.scheduler.running}:
            self._fail(self._open[index], failure, lane)

    def _fail(self, assembly: Assembly, error: RequestError, lane: Lane) -> None:
        """Give up a request that was being served; its counts stay in the totals, named as unreported."""
        del self._open[assembly.request.index]
        for sequence in assembly.sequences:
            if sequence.finish_reason is None:
                self.scheduler.drop(sequence)
                self.drafter.end(sequence)
                self.counters.request_success["error"].inc()
        self._set_aside("error", assembly)
        self._reject(self._rejected(assembly.request, error), lane)

    def _set_aside(self, cause: str, assembly: Assembly) -> None:
        recorder = assembly.recorder
        if recorder is not None:
            empty = AcceptanceRecorder(num_spec_tokens=self.limits.num_spec_tokens)
            self.unreported.setdefault(cause, empty).absorb(recorder)

    def _reject(self, line: RejectedLine, lane: Lane) -> None:
        self.progress.num_failed += 1
        self.progress.num_done += 1
        lane.close(line.index, error_record(line))

    def _rejected(self, request: Request, error: RequestError) -> RejectedLine:
        return RejectedLine(
            index=request.index,
            line=request.line,
            custom_id=request.custom_id,
            message=f"{self._where} {request.line}: {error.message}",
            param=error.param,
            code=error.code,
            status_code=error.status_code,
            category=request.category,
        )

    def _observe(self, outcomes: list[Outcome]) -> None:
        """Feed the general counters and the progress from what a step committed."""
        progress = self.progress
        progress.num_steps += 1
        for outcome in outcomes:
            sequence, num_tokens = outcome.sequence, len(outcome.token_ids)
            if outcome.seconds is not None:
                self.counters.observe_gap(seconds=outcome.seconds, num_tokens=num_tokens)
            elif num_tokens:
                progress.prompt_tokens += sequence.num_prompt_tokens
                self.counters.observe_first_token(
                    num_prompt_tokens=sequence.num_prompt_tokens, seconds=self._now - sequence.timing.queued
                )
            progress.output_tokens += num_tokens
            progress.num_draft_tokens += outcome.num_drafted
            progress.num_accepted_draft_tokens += outcome.num_accepted
        self.counters.observe_step(
            num_tokens=sum(len(outcome.token_ids) for outcome in outcomes),
            num_preemptions=self.scheduler.num_preemptions,
            num_running=len(self.scheduler.running),
            num_waiting=len(self.scheduler.waiting),
            usage=self.scheduler.pool.usage,
        )


def _no_token() -> RequestError:
    return RequestError(
        "the model's logits choose no token, because the largest is NaN or infinite; "
        "try --dtype float32, or check the model's weights",
        code="invalid_logits",
        status_code=500,
    )
