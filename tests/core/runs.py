"""Requests, checked engines and reconciliation for the tests of the core."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Sequence as Many
from typing import Any

from batchspec.engine import EngineCore
from batchspec.reconcile import AcceptanceSums, Reconciliation, reconcile
from batchspec.request import ChatPrompt, Endpoint, Intake, Prompt, Request, SamplingParams, TokenPrompt
from batchspec.scarcity import Scarcity
from batchspec.scheduler import Scheduler
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome, StepPlan, Verdicts
from batchspec.testing import make_engine

from .overtaking import OvertakingAccount

__all__ = [
    "CheckedScheduler",
    "ask",
    "ask_chat",
    "body_of",
    "checked_engine",
    "plans_of",
    "reconciliation_of",
    "sample_of",
    "serve",
    "spec_of",
    "token_ids_of",
]


class CheckedScheduler(Scheduler):
    """Asserts what the scheduler promises, in every step."""

    def __init__(self, inner: Scheduler):
        super().__init__(
            pool=inner.pool,
            max_num_seqs=inner.max_num_seqs,
            max_num_batched_tokens=inner.max_num_batched_tokens,
            prefix_caching=inner.prefixes is not None,
            is_ready=inner.waiting.is_ready,
        )
        self.account = OvertakingAccount(most=0 if self.prefixes is None else 2 * self.max_num_seqs)
        self.plans: list[StepPlan] = []

    def add(self, sequence: Sequence) -> None:
        self.account.add(sequence)
        super().add(sequence)

    def plan(self, drafts: Many[Draft], *, now: float) -> StepPlan:
        oldest = self.running[:1]
        plan = super().plan(drafts, now=now)
        self.plans.append(plan)
        self.account.observe(running=self.running, waiting=self.waiting)
        assert plan.chunks[0].sequence is (oldest or self.running)[0], "the oldest sequence made no progress"
        assert len(self.running) <= self.max_num_seqs
        assert 0 < plan.num_tokens <= self.max_num_batched_tokens
        assert len({id(chunk.sequence) for chunk in plan.chunks}) == len(plan.chunks)
        owners = Counter(block for sequence in self.running for block in sequence.blocks)
        for chunk in plan.chunks:
            written = chunk.sequence.blocks[chunk.start // self.pool.block_size :]
            assert all(owners[block] == 1 for block in written), "a shared block is written to"
            end = chunk.start + len(chunk.token_ids)
            assert chunk.start == chunk.sequence.num_computed_tokens, "a token is computed twice or not at all"
            assert end <= len(chunk.sequence.blocks) * self.pool.block_size, "a token has no page"
            assert end < chunk.sequence.context_limit, "the token after the draft does not fit the context"
        self._check()
        return plan

    def commit(self, plan: StepPlan, verdicts: Verdicts, *, now: float) -> list[Outcome]:
        outcomes = super().commit(plan, verdicts, now=now)
        self._check()
        return outcomes

    def reap(self) -> list[Sequence]:
        finished = super().reap()
        assert all(not sequence.blocks for sequence in finished)
        self._check()
        return finished

    def drop(self, sequence: Sequence) -> bool:
        self.account.drop(sequence)
        return super().drop(sequence)

    def _check(self) -> None:
        self.pool.check([sequence.blocks for sequence in self.running])
        assert all(not sequence.blocks for sequence in self.waiting)


def checked_engine(**kwargs: Any) -> EngineCore:
    """Return ``make_engine`` with a scheduler that checks itself."""
    engine = make_engine(**kwargs)
    engine.scheduler = CheckedScheduler(engine.scheduler)
    engine.scarcity = Scarcity(engine.scheduler)
    return engine


def plans_of(engine: EngineCore) -> list[StepPlan]:
    """Return the plans that a checked engine has run."""
    assert isinstance(engine.scheduler, CheckedScheduler)
    return engine.scheduler.plans


def ask(*prompts: list[int], index: int = 0, temperature: float = 0.0, **sampling: Any) -> Request:
    """Return a completion request for prompts of token ids, greedy unless a temperature is given."""
    return _request(
        tuple(TokenPrompt(token_ids=tuple(prompt)) for prompt in prompts),
        index=index,
        endpoint=Endpoint.COMPLETIONS,
        sampling=SamplingParams(temperature=temperature, return_token_ids=True, **sampling),
    )


def ask_chat(question: str, *turns: str, index: int = 0, temperature: float = 0.0, **sampling: Any) -> Request:
    """Return a chat request with one message and further turns."""
    return _request(
        (ChatPrompt(messages=({"role": "user", "content": question},)),),
        index=index,
        endpoint=Endpoint.CHAT,
        turns=turns,
        sampling=SamplingParams(temperature=temperature, return_token_ids=True, **sampling),
    )


def _request(
    prompts: tuple[Prompt, ...],
    *,
    index: int,
    endpoint: Endpoint,
    sampling: SamplingParams,
    turns: tuple[str, ...] = (),
) -> Request:
    return Request(
        index=index,
        line=index + 1,
        custom_id=f"r{index}",
        endpoint=endpoint,
        prompts=prompts,
        turns=turns,
        sampling=sampling,
    )


def serve(engine: EngineCore, intake: Iterable[Intake], *, in_order: bool = True) -> list[dict[str, Any]]:
    """Return the records; afterwards nothing is left in the engine and the pool is whole."""
    records = list(engine.run(intake, in_order=in_order))
    assert engine.scheduler.num_unfinished == 0
    assert engine.scheduler.pool.num_free == engine.scheduler.pool.num_blocks
    assert not engine.desk.in_flight()
    return records


def body_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return the body of a record that must not be an error."""
    assert record["error"] is None, record["error"]
    body: dict[str, Any] = record["response"]["body"]
    return body


def spec_of(record: dict[str, Any]) -> dict[str, Any]:
    """Return both acceptance documents of a record, merged: the documented one and our own."""
    metrics = body_of(record)["metrics"]
    return {**metrics["speculative_decoding"], **metrics["batchspec"]}


def token_ids_of(record: dict[str, Any]) -> list[list[int]] | str:
    """Return the output's token ids, choice by choice, or the code of the error."""
    if record["error"] is not None:
        code: str = record["error"]["code"]
        return code
    return [choice["token_ids"] for choice in body_of(record)["choices"]]


def reconciliation_of(engine: EngineCore, records: Iterable[dict[str, Any]]) -> Reconciliation:
    """Compare the records' own metrics, and what the engine set aside, with the engine's counters."""
    reported = AcceptanceSums()
    for record in records:
        body = record["response"]["body"]
        metrics = body[-1].get("metrics") if isinstance(body, list) else body.get("metrics")
        if metrics is not None and metrics["speculative_decoding"] is not None:
            reported += AcceptanceSums.from_document(metrics["speculative_decoding"])
    unreported = {
        cause: AcceptanceSums.from_histogram(recorder.acceptance_histogram, recorder.num_draft_tokens)
        for cause, recorder in engine.desk.unreported.items()
    }
    return reconcile(
        reported=reported, unreported=unreported, totals=AcceptanceSums.from_totals(engine.counters.totals())
    )


def sample_of(engine: EngineCore, name: str, **labels: str) -> float:
    """Return the value of one sample of the engine's counters."""
    value = engine.counters.registry.get_sample_value(f"vllm:{name}", {"model_name": "table", "engine": "0"} | labels)
    assert value is not None, name
    return value
