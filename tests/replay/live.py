"""Live runs over fakes: served, written as a log, and held beside what a replay gives."""

from collections.abc import Sequence as Many
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from batchspec.acceptance import Level
from batchspec.drafting import Drafter, NoDrafter
from batchspec.replay.recorded import Recorded
from batchspec.replay.spool import Spool
from batchspec.replay.trace import Trace
from batchspec.request import Request
from batchspec.scheduler import Scheduler
from batchspec.sequence import Sequence
from batchspec.step import Draft, StepPlan
from batchspec.testing import TableModel
from tests.core.runs import ask, ask_chat, checked_engine, plans_of, serve, spec_of
from tests.core.workloads import LETTERS, prone_table

from .logs import recorded_in, write_log

__all__ = ["CONTEXT", "Hesitant", "Served", "assert_same", "in_order", "prompt_of", "requests_of", "serve_to"]

MODEL = TableModel(3 * prone_table(3, end=-1.0, is_poisoned=False))
CONTEXT = 256
Place = tuple[str, int, int]
"""Id, tokens of the prompt (which tell the turn), tokens of the output."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A live run's log and records, who was preempted, and which steps computed a sequence again and sampled."""

    path: Path
    records: list[dict[str, Any]]
    preempted: set[str]
    again: set[Place]


class Hesitant(NoDrafter):
    """Asks another drafter and drops its drafts in some places."""

    def __init__(self, inner: Drafter, *, places: set[Place]):
        self.inner = inner
        self.places = places
        self.num_spec_tokens = inner.num_spec_tokens

    def begin(self, sequence: Sequence) -> None:
        self.inner.begin(sequence)

    def is_ready(self, sequence: Sequence) -> bool:
        return self.inner.is_ready(sequence)

    def propose(self, decoding: Many[Sequence]) -> list[Draft]:
        return [draft for draft in self.inner.propose(decoding) if place_of(draft.sequence) not in self.places]

    def end(self, sequence: Sequence) -> None:
        self.inner.end(sequence)


def place_of(sequence: Sequence) -> Place:
    return sequence.custom_id, sequence.num_prompt_tokens, sequence.num_output_tokens


def prompt_of(index: int) -> list[int]:
    return [LETTERS[index * step % 6] for step in (1, 2, 3, 5)][: 1 + index % 4]


def requests_of(number: int) -> list[Request]:
    """Requests that end by length, by a stop token or text, or that have several turns; half of them sampled."""
    requests = []
    for index in range(number):
        options: dict[str, Any] = {"temperature": 0.8 * (index % 2), "seed": index % 3}
        options["max_tokens"] = 3 + 7 * index % 29
        if index % 5 == 1:
            options |= {"stop_token_ids": (LETTERS[index % 6],), "min_tokens": 2}
        if index % 5 == 2:
            options |= {"stop": ("abc"[index % 3] + "def"[index % 2 :][:2],)}
        if index % 9 == 4:
            requests.append(ask_chat("ab", "c", "d", index=index, **options))
        else:
            requests.append(ask(prompt_of(index), index=index, **options))
    return requests


def serve_to(
    path: Path, requests: Many[Request], drafter: Drafter, *, preempt_every: int | None = None, **options: Any
) -> Served:
    """Serve with detailed metrics and write the records as a run does."""
    defaults = {"model": MODEL, "max_num_seqs": 4, "max_model_len": CONTEXT, "max_num_batched_tokens": 64}
    engine = checked_engine(**{"drafter": drafter, "level": Level.DETAILED, **defaults, **options})
    preempted, again = note_preemptions(engine.scheduler, every=preempt_every)
    records = serve(engine, requests)
    assert [record["error"] for record in records if record["error"]] == []
    assert any(chunk.draft for plan in plans_of(engine) for chunk in plan.chunks)
    return Served(path=write_log(path, records), records=records, preempted=preempted, again=again)


def note_preemptions(scheduler: Scheduler, *, every: int | None) -> tuple[set[str], set[Place]]:
    """Note who is put back and which steps compute again and sample; put the youngest back every so many steps."""
    preempted: set[str] = set()
    again: set[Place] = set()
    put_back, plan_step = scheduler._put_back, scheduler.plan
    numbers = count(1)

    def noted(sequence: Sequence) -> None:
        preempted.add(sequence.custom_id)
        put_back(sequence)

    def plan(drafts: Many[Draft], *, now: float) -> StepPlan:
        if every and next(numbers) % every == 0 and len(scheduler.running) > 1:
            noted(scheduler.running.pop())
        step = plan_step(drafts, now=now)
        sampled = [chunk for chunk in step.sampled if chunk.sequence.num_output_tokens]
        again.update(place_of(chunk.sequence) for chunk in sampled if len(chunk.token_ids) > 1 + len(chunk.draft))
        return step

    vars(scheduler).update(_put_back=noted, plan=plan)
    return preempted, again


def in_order(path: Path) -> list[Recorded]:
    with Spool() as spool:
        spool.add(recorded_in(path))
        assert spool.has_indices
        return list(spool.read())


def assert_same(served: Served, traces: Many[tuple[Recorded, Trace]]) -> None:
    """Every step of every turn, and every count, as the live run recorded them."""
    found: dict[str, list[Trace]] = {}
    for one, trace in traces:
        found.setdefault(one.custom_id, []).append(trace)
    for record in served.records:
        spec, turns = spec_of(record), found[record["custom_id"]]
        for name in ("drafted", "accepted", "position"):
            values = [value for turn in turns for value in getattr(turn, name).tolist()]
            assert values == spec[f"per_step_{name}"], record["custom_id"]
        assert sum(turn.num_decode_steps for turn in turns) == spec["num_decode_steps"]
        assert sum(turn.num_discarded_tokens for turn in turns) == spec["num_discarded_tokens"]
    assert len(found) == len(served.records)
