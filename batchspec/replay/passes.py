"""What is done with every output of a job, setting by setting."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from batchspec.drafting import Drafter, SpeculativeConfig
from batchspec.replay.lookups import Lookups, find_lookups
from batchspec.replay.recorded import Recorded
from batchspec.replay.schedule import Schedule
from batchspec.replay.simulate import simulate
from batchspec.replay.tallies import Tallies
from batchspec.replay.trace import NO_LIMIT, Trace, take_steps

__all__ = ["DrafterPass", "LookupPass", "Pass", "PlainPass", "ngrams_of"]


class Pass(Protocol):
    """Takes the outputs of one job, one after another."""

    def take(self, one: Recorded) -> None:
        """Take the steps over an output and add them up."""

    def finish(self) -> None:
        """Note that the job is over."""


class LookupPass:
    """A drafter whose drafts hang on the text alone and begin alike for every draft length: all lengths at once.

    Args:
        find: returns what the drafter finds before each token of an output, drafts as long as any of ``ks`` asks for.
        ks: draft lengths.
        first: place of the first of them among all settings; the others follow it.
        tallies: to add to.
        schedules: one for each of them; none where times are not asked for.
        max_model_len: the most tokens of a sequence and its draft; None for no limit.
    """

    def __init__(
        self,
        find: Callable[[Recorded], Lookups],
        *,
        ks: Sequence[int],
        first: int,
        tallies: Tallies,
        schedules: Sequence[Schedule],
        max_model_len: int | None,
    ):
        self._find = find
        self._ks = ks
        self._settings = slice(first, first + len(ks))
        self._tallies = tallies
        self._schedules = schedules
        self._max_model_len = max_model_len

    def take(self, one: Recorded) -> None:
        """Search once, and step with every draft length."""
        lookups = self._find(one)
        room = NO_LIMIT if self._max_model_len is None else self._max_model_len - len(one.prompt) - 1
        self._tallies.add_lookups(self._settings, one, lookups, room=room)
        for k, schedule in zip(self._ks, self._schedules, strict=False):
            schedule.add(one, take_steps(lookups, num_spec_tokens=k, room=room))

    def finish(self) -> None:
        """Run what is left in the batches."""
        for schedule in self._schedules:
            schedule.finish()


def ngrams_of(one: Recorded, *, config: SpeculativeConfig, most: int) -> Lookups:
    """Return what prompt lookup finds before each token of an output, in drafts of up to ``most`` tokens."""
    return find_lookups(
        np.concatenate([one.prompt, one.output, one.cut]),
        num_prompt_tokens=len(one.prompt),
        num_output_tokens=len(one.output),
        min_length=config.prompt_lookup_min,
        max_length=config.prompt_lookup_max,
        most=most,
    )


class DrafterPass:
    """Any drafter, with one setting.

    Args:
        drafter: a new one.
        setting: its place among all settings.
        tallies: to add to.
        schedule: None where times are not asked for.
        max_model_len: the most tokens of a sequence and its draft; None for no limit.
    """

    def __init__(
        self, drafter: Drafter, *, setting: int, tallies: Tallies, schedule: Schedule | None, max_model_len: int | None
    ):
        self._drafter = drafter
        self._setting = setting
        self._tallies = tallies
        self._schedule = schedule
        self._context_limit = NO_LIMIT if max_model_len is None else max_model_len

    def take(self, one: Recorded) -> None:
        """Step as the engine does; outputs must come by ascending index."""
        trace = simulate(one, self._drafter, context_limit=self._context_limit)
        self._tallies.add_trace(self._setting, one, trace)
        if self._schedule is not None:
            self._schedule.add(one, trace)

    def finish(self) -> None:
        """Run what is left in the batch."""
        if self._schedule is not None:
            self._schedule.finish()


class PlainPass:
    """The job without drafts, for its time."""

    def __init__(self, schedule: Schedule):
        self._schedule = schedule

    def take(self, one: Recorded) -> None:
        """Step token by token."""
        none = np.zeros(0, dtype=np.int32)
        num_tokens = len(one.output)
        trace = Trace(
            position=none, drafted=none, accepted=none, num_decode_steps=num_tokens - 1, num_output_tokens=num_tokens
        )
        self._schedule.add(one, trace)

    def finish(self) -> None:
        """Run what is left in the batch."""
        self._schedule.finish()
