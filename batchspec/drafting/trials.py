"""When to try what does not pay: it could by now."""

__all__ = ["Trials"]

_RAREST = 64  # decisions, at most, from one trial to the next


class Trials:
    """Decisions against something, of which ever fewer are left for a trial: the 1st, 3rd, 7th, 15th and so on."""

    def __init__(self) -> None:
        self._num_trials = self._num_untried = 0

    def begin_anew(self) -> None:
        """Note that it paid: the next decision against it is a trial."""
        self._num_trials = self._num_untried = 0

    def is_time(self) -> bool:
        """Count a decision against it; return whether to try all the same."""
        self._num_untried += 1
        if self._num_untried < min(_RAREST, 2**self._num_trials):
            return False
        self._num_trials += 1
        self._num_untried = 0
        return True
