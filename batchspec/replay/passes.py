"""What is done with every output of a job, setting by setting."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from batchspec.drafting import Drafter, SpeculativeConfig
from batchspec.replay.lookups import find_lookups
from batchspec.replay.recorded import Recorded
from batchspec.replay.schedule import Schedule
from batchspec.replay.simulate import simulate
from batchspec.replay.tallies import Tallies
from batchspec.replay.trace import NO_LIMIT, Trace, take_steps

__all__ = ["DrafterPass", "LookupPass", "Pass", "PlainPass"]


class Pass(Protocol):
    """Takes the outputs of one job, one after another."""

    def take(self, one: Recorded) -> None:
        """Take the steps over an output and add them up."""

    def finish(self) -> None:
        """Note that the job is over."""


class LookupPass:
    """Prompt lookup with several draft lengths at once.

    Args:
        configs: which differ in the draft length alone.
        first: place of the first of them among all settings; the others follow it.
        tallies: to add to.
        schedules: one for each of them; none where times are not asked for.
        max_model_len: the most tokens of a sequence and its draft; None for no limit.
    """

    def __init__(
        self,
        configs: Sequence[SpeculativeConfig],
        *,
        first: int,
        tallies: Tallies,
        schedules: Sequence[Schedule],
        max_model_len: int | None,
    ):
        self._bounds = (configs[0].prompt_lookup_min, configs[0].prompt_lookup_max)
        self._ks = [config.num_speculative_tokens for config in configs]
        self._settings = slice(first, first + len(configs))
        self._tallies = tallies
        self._schedules = schedules
        self._max_model_len = max_model_len

    def take(self, one: Recorded) -> None:
        """Search once, and step with every draft length."""
        lookups = find_lookups(
            np.concatenate([one.prompt, one.output, one.cut]),
            num_prompt_tokens=len(one.prompt),
            num_output_tokens=len(one.output),
            min_length=self._bounds[0],
            max_length=self._bounds[1],
            most=max(self._ks),
        )
        room = NO_LIMIT if self._max_model_len is None else self._max_model_len - len(one.prompt) - 1
        self._tallies.add_lookups(self._settings, one, lookups, room=room)
        for k, schedule in zip(self._ks, self._schedules, strict=False):
            schedule.add(one, take_steps(lookups, num_spec_tokens=k, room=room))

    def finish(self) -> None:
        """Run what is left in the batches."""
        for schedule in self._schedules:
            schedule.finish()


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
