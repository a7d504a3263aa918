"""Draft lengths by measured cost: what is kept is what pays, and nothing is lost when nothing pays."""

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.drafting.adaptive import AdaptiveDrafter
from batchspec.drafting.choosing import Choice, choose
from batchspec.drafting.costs import StepCosts
from batchspec.drafting.estimates import AcceptanceEstimates
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome
from batchspec.testing import ScriptedDrafter

from .sequences import decoding


def costs_of(seconds: Callable[[int], float], *, up_to: int = 64) -> StepCosts:
    costs = StepCosts()
    for rows in range(1, up_to + 1):
        costs.observe(num_rows=rows, seconds=seconds(rows))
    return costs


def test_costs_lie_on_lines_between_and_beyond_the_sizes_that_were_seen() -> None:
    costs = StepCosts()
    costs.observe(num_rows=8, seconds=1.0)
    assert costs.by_rows()[[1, 8, 12]].tolist() == [1.0, 1.0, 1.0]
    costs.observe(num_rows=16, seconds=2.0)
    assert costs.by_rows()[[4, 8, 12, 16, 24]].tolist() == [0.5, 1.0, 1.5, 2.0, 3.0]
    assert costs.most_rows == 24 == len(costs.by_rows()) - 1
    assert costs.table() == {8: 1.0, 16: 2.0}


def test_costs_take_no_notice_of_a_delay_and_forget() -> None:
    costs = StepCosts()
    for seconds in (1.0, 9.0, 1.1, 1.0, 1.2):
        costs.observe(num_rows=4, seconds=seconds)
    costs.observe(num_rows=64, seconds=5.0)
    assert costs.by_rows()[4] == pytest.approx(1.0)
    assert costs.is_known(64)
    for _ in range(512):
        costs.observe(num_rows=4, seconds=3.0)
    assert not costs.is_known(64)
    assert costs.by_rows()[4] == pytest.approx(3.0)


def test_a_size_that_was_slow_once_is_tried_again() -> None:
    costs = StepCosts()
    for _ in range(3):
        costs.observe(num_rows=4, seconds=1.0)
        costs.observe(num_rows=8, seconds=1.2)
    costs.observe(num_rows=12, seconds=1.9)
    assert costs.by_rows()[12] == pytest.approx(1.4)
    for _ in range(2):
        costs.observe(num_rows=12, seconds=1.9)
    assert costs.by_rows()[12] == pytest.approx(1.9)


def test_a_step_that_was_slower_than_so_many_rows_can_be_tells_nothing() -> None:
    costs = StepCosts()
    for _ in range(3):
        costs.observe(num_rows=8, seconds=1.0)
    costs.observe(num_rows=12, seconds=1.8)
    assert costs.by_rows()[12] == pytest.approx(1.0)
    costs.observe(num_rows=16, seconds=1.8)
    assert costs.by_rows()[12] == pytest.approx(1.4)


def test_no_size_is_taken_to_be_slower_than_a_larger_one() -> None:
    costs = StepCosts()
    for _ in range(3):
        costs.observe(num_rows=4, seconds=5.0)
        costs.observe(num_rows=8, seconds=1.0)
    assert costs.by_rows()[4] == pytest.approx(1.0)


def test_fewer_sequences_than_ever_need_no_step_of_their_own() -> None:
    costs = StepCosts()
    assert not costs.is_known(1)
    costs.observe(num_rows=8, seconds=1.0)
    assert costs.is_known(3)
    assert not costs.is_known(16)


def test_free_rows_admit_everything_and_dear_ones_nothing() -> None:
    survival = [np.array([0.9, 0.8, 0.1]), np.array([0.5])]
    assert choose(2, survival, costs_of(lambda _: 1.0)).lengths == [3, 1]
    assert choose(2, survival, costs_of(lambda rows: float(rows))) == Choice(lengths=[0, 0], gain=1.0)
    assert choose(2, [], costs_of(lambda _: 1.0)) == Choice(lengths=[], gain=1.0)


@given(
    chances=st.lists(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5), min_size=1, max_size=5),
    per_row=st.floats(0.0, 1.0), drafting=st.floats(0.0, 2.0),
)  # fmt: skip
def test_no_other_choice_brings_more_tokens_a_second(
    chances: list[list[float]], per_row: float, drafting: float
) -> None:
    survival = [np.cumprod(each).astype(np.float64) for each in chances]
    costs = costs_of(lambda rows: 1.0 + per_row * rows)
    choice = choose(len(survival), survival, costs, drafting=drafting)

    def seconds(num_drafted: int) -> float:
        return float(costs.by_rows()[len(survival) + num_drafted])

    def tokens(lengths: Iterable[int]) -> float:
        return len(survival) + sum(float(each[:n].sum()) for each, n in zip(survival, lengths, strict=True))

    rates = [tokens(n) / seconds(sum(n)) for n in product(*(range(len(each) + 1) for each in survival))]
    number, plain = sum(choice.lengths), len(survival) / seconds(0)
    expected = max(rates) if max(rates) > 1.02 * plain else plain  # less is not to be told from an estimate's error
    assert tokens(choice.lengths) / seconds(number) == pytest.approx(expected)
    ratio = tokens(choice.lengths) / (seconds(number) + drafting) / (len(survival) / seconds(0))
    assert choice.gain == pytest.approx(ratio)


class Steps:
    """A machine whose steps take what a function of their rows says, and a target that accepts so many draft tokens."""

    def __init__(
        self, seconds: Callable[[int], float], *, num_accepted: int, num_sequences: int, drafting: float = 0.0
    ):
        self.now = 0.0
        self.seconds = seconds
        self.num_accepted = num_accepted
        self.num_asked = 0
        self.num_tokens = 0
        self.every = 1  # of so many times that the inner drafter is asked, it has a draft once
        self.sequences = [decoding([1, 2, 3]) for _ in range(num_sequences)]

        def script(_: Sequence) -> list[int]:
            self.num_asked += 1
            self.now += drafting / num_sequences
            return [7] * 4 if self.num_asked % self.every == 0 else []

        inner = ScriptedDrafter(num_spec_tokens=4, script=script)
        self.drafter = AdaptiveDrafter(
            inner, estimates=AcceptanceEstimates(), costs=StepCosts(), clock=lambda: self.now
        )

    def run(self, num_steps: int) -> list[int]:
        """Return the number of draft tokens of every step."""
        drafted = []
        for _ in range(num_steps):
            drafts = {id(draft.sequence): draft for draft in self.drafter.propose(self.sequences)}
            outcomes = [self._outcome(sequence, drafts.get(id(sequence))) for sequence in self.sequences]
            num_rows = sum(1 + outcome.num_drafted for outcome in outcomes)
            self.now += self.seconds(num_rows)
            self.drafter.observe(outcomes, num_rows=num_rows)
            drafted.append(num_rows - len(self.sequences))
            self.num_tokens += sum(1 + outcome.num_accepted for outcome in outcomes)
        return drafted

    def _outcome(self, sequence: Sequence, draft: Draft | None) -> Outcome:
        num_drafted = 0 if draft is None else len(draft.token_ids)
        return Outcome(
            sequence=sequence,
            token_ids=[],
            num_drafted=num_drafted,
            num_accepted=min(num_drafted, self.num_accepted),
            seconds=1.0,
        )


def test_drafts_grow_where_rows_are_free() -> None:
    steps = Steps(lambda rows: 1.0 + 0.01 * rows, num_accepted=4, num_sequences=4)
    drafted = steps.run(40)
    assert drafted[0] == 0
    assert drafted[1] <= 2
    assert drafted[-10:] == [16] * 10


def test_drafts_end_where_the_target_stops_accepting() -> None:
    steps = Steps(lambda rows: 1.0 + 0.2 * rows, num_accepted=2, num_sequences=1)
    assert set(steps.run(200)[-50:]) == {2}


@pytest.mark.parametrize("drafting", [0.0, 0.3])
def test_where_nothing_pays_next_to_nothing_is_lost(drafting: float) -> None:
    steps = Steps(lambda rows: 0.1 * rows, num_accepted=0, num_sequences=16, drafting=drafting)
    steps.run(400)
    plain = 400 * 1.6
    assert steps.num_tokens == 400 * 16
    share_of_asking = 0.02 * bool(drafting)
    assert steps.now < (1.01 + share_of_asking) * plain
    assert not drafting or steps.num_asked < 16 * 50


def test_a_drafter_that_costs_more_than_it_brings_is_left_alone() -> None:
    steps = Steps(lambda rows: 1.0 + 0.001 * rows, num_accepted=1, num_sequences=2, drafting=3.0)
    steps.run(400)
    assert steps.now < 1.1 * 400 * 1.002
    assert steps.num_tokens >= 800


def test_a_drafter_is_always_asked_that_is_seldom_but_well_worth_it() -> None:
    steps = Steps(lambda rows: 1.0 + 0.001 * rows, num_accepted=4, num_sequences=1, drafting=0.05)
    steps.every = 6
    steps.run(200)
    assert steps.num_asked >= 195
    assert steps.num_tokens > 1.6 * 200


def test_steps_that_take_longer_than_their_quickest_are_found_out() -> None:
    """A quarter of the steps with drafts is quick, which is what the table says; all together they lose."""
    count = 0

    def seconds(rows: int) -> float:
        nonlocal count
        count += rows > 4
        return 1.0 if rows <= 4 else 1.2 if count % 4 == 0 else 2.6

    steps = Steps(seconds, num_accepted=1, num_sequences=4, drafting=0.05)
    steps.run(600)
    assert steps.num_asked < 0.3 * 600 * 4
    assert steps.now / steps.num_tokens < 1.06 / 4


def test_what_was_worth_much_is_soon_forgotten() -> None:
    steps = Steps(lambda rows: 1.0 + 0.001 * rows, num_accepted=4, num_sequences=1, drafting=0.1)
    steps.run(100)
    steps.num_accepted, steps.every, asked = 0, 10**9, steps.num_asked
    steps.run(30)
    assert steps.num_asked - asked < 25
    steps.run(400)
    assert steps.num_asked - asked < 25 + 0.02 / 0.1 * 400 + 5


def test_the_first_verification_which_loads_code_says_nothing_of_costs() -> None:
    slow = iter([0.0, 50.0])  # further seconds of the first plain step and of the first with drafts
    steps = Steps(lambda rows: 1.0 + 0.01 * rows + next(slow, 0.0), num_accepted=4, num_sequences=2)
    drafted = steps.run(2)
    assert drafted[0] == 0 < drafted[1]
    assert max(steps.drafter.costs.table().values()) < 2.0


def test_a_change_of_acceptance_is_noticed() -> None:
    steps = Steps(lambda rows: 1.0 + 0.3 * rows, num_accepted=0, num_sequences=1)
    steps.run(100)
    steps.num_accepted = 4
    assert sum(steps.run(1500)[-100:]) > 200
