"""A draft model is asked for as much as pays: nearly nothing where it is slow or wrong, all where it is neither."""

from collections.abc import Sequence as Many

import numpy as np
import pytest

from batchspec.drafting.auto import AutoDrafter
from batchspec.drafting.costs import StepCosts
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.drafting.estimates import AcceptanceEstimates
from batchspec.drafting.thrift import Thrift
from batchspec.sequence import Sequence
from batchspec.step import Draft

from .sequences import decoding

MOST = 6


class Slow:
    """A draft model that takes its time, on a clock of its own, and says how sure it is."""

    def __init__(self, *, seconds: float, prob: float):
        self.seconds, self.prob = seconds, prob
        self.now = 0.0
        self.asked: list[tuple[int, int]] = []

    def propose(self, decoding: Many[Sequence], *, num_tokens: int) -> list[Draft]:
        self.asked.append((len(decoding), num_tokens))
        self.now += num_tokens * self.seconds
        probs = [self.prob] * num_tokens
        return [
            Draft(sequence=each, token_ids=[1] * num_tokens, source="draft_model", token_probs=probs)
            for each in decoding
        ]

    def end(self, sequence: Sequence) -> None:
        """Nothing to forget."""


def asked(model: Slow, *, per_row: float, num_steps: int = 40, num_sequences: int = 20) -> list[tuple[int, int]]:
    """Return for how many sequences and tokens a draft model was asked, by steps of 1 second and some for each row."""
    costs, estimates = StepCosts(), AcceptanceEstimates()
    for rows in range(1, 200):
        costs.observe(num_rows=rows, seconds=1.0 + per_row * rows)
    drafter = DraftModelDrafter(num_spec_tokens=MOST, draft_model=model)
    thrift = Thrift(drafter, costs=costs, estimates=estimates, clock=lambda: model.now)
    auto = AutoDrafter([], last=drafter, estimates=estimates, thrift=thrift, learns=False)
    sequences = [decoding([1, 2, 3]) for _ in range(num_sequences)]
    for _ in range(num_steps):
        auto.propose(sequences)
    return model.asked


def test_the_first_time_few_are_asked_for_little() -> None:
    assert asked(Slow(seconds=0.01, prob=0.9), per_row=0.001)[0] == (2, 2)


def test_where_drafts_cost_next_to_nothing_and_are_good_all_are_asked_for_all() -> None:
    assert asked(Slow(seconds=0.01, prob=0.95), per_row=0.001)[1:] == [(20, MOST)] * 39


@pytest.mark.parametrize(
    ("seconds", "prob", "per_row"),
    [(2.0, 0.9, 0.0), (0.001, 0.02, 0.05), (0.3, 0.4, 0.01)],
    ids=["slow", "wrong", "neither well"],
)
def test_where_it_does_not_pay_few_are_asked_and_ever_more_rarely(seconds: float, prob: float, per_row: float) -> None:
    found = asked(Slow(seconds=seconds, prob=prob), per_row=per_row)
    assert set(found) == {(2, 2)}
    assert len(found) == 5  # in the decisions 1, 3, 7, 15 and 31


def test_the_length_is_the_one_that_brings_most() -> None:
    """Against the quotients written out, for drafts of which each token is as likely as the one before."""
    seconds, prob, per_row = 0.1, 0.7, 0.004
    rates = []
    for k in range(MOST + 1):
        tokens = 20 + 20 * sum(prob**i for i in range(1, k + 1))
        rates.append(tokens / (1.0 + per_row * (20 + 20 * k) + k * seconds))
    best = int(np.argmax(rates))
    assert 0 < best < MOST
    assert asked(Slow(seconds=seconds, prob=prob), per_row=per_row)[1:] == [(20, best)] * 39


def test_a_draft_model_that_becomes_slow_is_given_up_and_found_again() -> None:
    model = Slow(seconds=0.01, prob=0.95)
    costs, estimates = StepCosts(), AcceptanceEstimates()
    for rows in range(1, 200):
        costs.observe(num_rows=rows, seconds=1.0 + 0.001 * rows)
    drafter = DraftModelDrafter(num_spec_tokens=MOST, draft_model=model)
    thrift = Thrift(drafter, costs=costs, estimates=estimates, clock=lambda: model.now)
    sequences = [decoding([1, 2, 3]) for _ in range(20)]

    def share(num_steps: int) -> float:
        model.asked.clear()
        for _ in range(num_steps):
            thrift.ask(sequences, num_decoding=20)
        return sum(number == 20 for number, _ in model.asked) / num_steps

    assert share(20) > 0.9
    model.seconds = 5.0
    assert share(20) < 0.2
    assert share(200) < 0.02
    model.seconds = 0.01
    share(1200)
    assert share(20) == 1.0
