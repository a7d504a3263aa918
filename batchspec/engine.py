"""The engine: requests in, records out, one packed forward pass a step."""

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import torch

from batchspec.admission import Grammars
from batchspec.answer import TokenizerLike
from batchspec.assembly import Limits
from batchspec.counters import Counters
from batchspec.desk import Desk
from batchspec.drafting import Drafter
from batchspec.errors import RequestError
from batchspec.model.memory import give_back, is_shortage
from batchspec.request import Intake, NotYet, Request, Where
from batchspec.sampling import Screened
from batchspec.scarcity import Scarcity
from batchspec.scheduler import Scheduler
from batchspec.sequence import Sequence
from batchspec.source_counters import SourceCounters
from batchspec.step import Draft, Outcome, StepPlan, TokenMasks
from batchspec.verify import judge

__all__ = ["EngineCore", "GrammarsOfSteps", "Records", "Runner"]

Records = Generator[dict[str, Any], None, None]
"""Records or chunks, one by one; closing it gives up what is in flight."""


class Runner(Protocol):
    """What the engine asks of a model."""

    def forward(self, plan: StepPlan) -> torch.Tensor | Screened:
        """Return the logits (rows, vocabulary): those of the plan's sampled chunks, then those of its prompt rows.

        Where there are no prompt rows they may be screened.
        """


class GrammarsOfSteps(Grammars, Protocol):
    """What the engine asks of grammars."""

    def masks(self, plan: StepPlan) -> Callable[[], TokenMasks | None]:
        """Begin to compute which tokens are allowed in a step; calling the result waits for it."""


class EngineCore:
    """Continuous batching with speculation.

    Args:
        runner: computes logits.
        tokenizer: text to tokens and back.
        scheduler: its pool must hold one sequence of ``limits.max_model_len`` tokens.
        drafter: guesses tokens; ``NoDrafter`` for speculation off.
        counters: the Prometheus account.
        limits: what every sequence has in common.
        grammars: structured output.
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
        grammars: GrammarsOfSteps,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.runner = runner
        self.scheduler = scheduler
        self.drafter = drafter
        self.counters = counters
        self.sources = SourceCounters(labels=counters.labels, registry=counters.registry)
        self.grammars = grammars
        self.clock = clock
        self.desk = Desk(tokenizer=tokenizer, limits=limits, grammars=grammars, add=self._add, drop=self._drop)
        self.progress = self.desk.progress
        self.scarcity = Scarcity(scheduler)
        self.is_stopping = False
        self._may_repeat = False  # whether nothing of the step was committed so far
        self._now = clock()

    def step(self) -> list[Sequence]:
        """Run one step and return the sequences that ended in it."""
        self._may_repeat = True
        drafts = self._propose()
        plan = self.scheduler.plan(drafts, now=self._now)
        masks = self.grammars.masks(plan)
        try:
            logits = self.runner.forward(plan)
        finally:
            allowed = masks()  # waited for in any case: nobody may touch the grammars before
        verdicts = judge(plan, logits, allowed)
        self._now = self.clock()
        self._may_repeat = False
        outcomes = self.scheduler.commit(plan, verdicts, now=self._now)
        self.counters.observe_drafts(num_drafted=verdicts.num_drafted, accepted=verdicts.accepted)
        self.drafter.observe(outcomes, num_rows=plan.num_tokens)
        self.sources.observe(outcomes)
        self._observe(outcomes)
        self.desk.observe(outcomes)
        ended = self.scheduler.reap()
        self._observe_load()
        return ended

    def run(
        self,
        intake: Iterable[Intake | NotYet],
        *,
        in_order: bool = True,
        where: Where = "line",
        between_steps: Callable[[], None] = lambda: None,
    ) -> Records:
        """Serve every line and yield its record; lines are taken in only as there is room for them.

        Args:
            intake: requests, and lines already found to be wrong, whose error records take their place.
            in_order: yield records in the order of the lines; otherwise as they are done.
            where: how error messages name a line.
            between_steps: called behind every step, once the records that may leave have left.
        """
        self._begin(in_order=in_order, where=where)
        source = iter(intake)
        is_exhausted = False
        try:
            while not self.is_stopping and (not is_exhausted or self.scheduler.num_unfinished):
                is_exhausted = is_exhausted or self._take_in(source)
                if self.scheduler.num_unfinished:
                    self._advance()
                yield from self.desk.lane.ready()
                between_steps()
        except GeneratorExit:
            self.desk.abort()
            raise

    def stream(self, request: Request) -> Records:
        """Serve one request and yield the chunks of its answer as steps commit them.

        Raises:
            RequestError: the request cannot be served, or fails on the way.
        """
        chunks: deque[dict[str, Any]] = deque()
        self._begin(in_order=False, where="request", on_chunk=chunks.append)
        self.desk.take_in(replace(request, stream=True), now=self.clock())
        try:
            while self.scheduler.num_unfinished and not self.is_stopping:
                self._advance()
                while chunks:
                    yield chunks.popleft()
        finally:
            self.desk.abort()
        for record in self.desk.lane.ready():
            if record["error"] is not None:
                error, status_code = record["error"], record["response"]["status_code"]
                raise RequestError(error["message"], param=error["param"], code=error["code"], status_code=status_code)

    def stop(self) -> None:
        """Let ``run`` end behind the current step; what is in flight then gets no record."""
        self.is_stopping = True

    def _begin(self, **options: Any) -> None:
        """Open a lane for other requests, which begin at index 0."""
        self.desk.begin(**options)
        if self.drafter.generations is not None:
            self.drafter.generations.restart()

    def _take_in(self, source: Iterator[Intake | NotYet]) -> bool:
        """Take lines until a batch is waiting; return whether the input is exhausted."""
        while len(self.scheduler.waiting) < self.scheduler.max_num_seqs and not self.desk.lane.is_full:
            line = next(source, None)
            if line is None:
                self.progress.is_exhausted = True
                return True
            if isinstance(line, NotYet):
                return False
            self.desk.take_in(line, now=self.clock())
        return False

    def _advance(self) -> None:
        """Run a step and close what ended; a failed forward pass fails the requests in the batch, not the run."""
        try:
            ended = self.step()
        except (RuntimeError, MemoryError) as error:
            self._cope(error)
            return
        self.scarcity.relax()
        for sequence in ended:
            self.drafter.end(sequence)
            self.counters.observe_finished(
                reason=sequence.finish_reason or "abort",
                num_prompt_tokens=sequence.num_prompt_tokens,
                num_output_tokens=sequence.num_output_tokens,
                seconds=self._now - sequence.timing.queued,
            )
            self.desk.close(sequence, now=self._now)

    def _propose(self) -> list[Draft]:
        """Return the drafts; none where memory is short, since they change nothing but the speed."""
        try:
            return self.drafter.propose(self.scheduler.decoding)
        except (RuntimeError, MemoryError) as error:
            if not is_shortage(error):
                raise
            return []

    def _cope(self, error: RuntimeError | MemoryError) -> None:
        """Plan smaller steps if memory was short, as long as they can be smaller; else fail who was in the step."""
        if self._may_repeat and is_shortage(error):
            give_back()
            if self.scarcity.retrench():
                return
            message = f"out of memory even for a step of one token ({_first_line(error)}); give the machine more"
            failed, code = self.scheduler.running[:1], "out_of_memory"
        else:
            message = f"the forward pass failed with {type(error).__name__}: {_first_line(error)}"
            failed, code = self.scheduler.running, "engine_error"
        if not failed:
            raise error
        self.desk.give_up(failed, RequestError(message, code=code, status_code=500))

    def _add(self, sequence: Sequence) -> None:
        self.drafter.begin(sequence)
        self.scheduler.add(sequence)

    def _drop(self, sequence: Sequence, reason: str) -> None:
        if self.scheduler.drop(sequence):
            self.drafter.end(sequence)
            self.counters.request_success[reason].inc()
            self._observe_load()

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
        prefixes = self.scheduler.prefixes
        if prefixes is not None:
            self.counters.observe_prefixes(num_queries=prefixes.num_queries, num_hits=prefixes.num_hits)
        self.counters.observe_step(
            num_tokens=sum(len(outcome.token_ids) for outcome in outcomes),
            num_preemptions=self.scheduler.num_preemptions,
        )

    def _observe_load(self) -> None:
        self.counters.observe_load(
            num_running=len(self.scheduler.running),
            num_waiting=len(self.scheduler.waiting),
            usage=self.scheduler.pool.usage,
        )


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "no message")
