"""What a draft model's passes take by the number of sequences, known from few of them and forgotten soon."""

__all__ = ["Passes"]

_WEIGHT = 1 / 4  # of the latest pass, which may have had to read long prompts first
_AGING = 3 / 4  # what remains of an estimate, at most, when fewer sequences are tried in its place


class Passes:
    """Seconds of a pass by the number of its sequences, to the next power of two.

    Of more sequences than were ever asked for nothing but the best is believed, that they take no longer than fewer.
    """

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}

    def observe(self, *, num_sequences: int, seconds: float) -> None:
        """Note what a pass took."""
        size = _size(num_sequences)
        if size in self._seconds:
            self._seconds[size] += _WEIGHT * (seconds - self._seconds[size])
        else:
            fewer = max((other for other in self._seconds if other < size), default=0)
            self._seconds[size] = min(seconds, self._seconds[fewer] * size / fewer) if fewer else seconds

    def age(self, *, num_sequences: int) -> None:
        """Believe less of larger passes than of one that was just seen, so that they are tried again some time."""
        size = _size(num_sequences)
        for other in self._seconds:
            if other > size:
                self._seconds[other] = max(_AGING * self._seconds[other], self._seconds[size])

    def expected(self, num_sequences: int) -> float:
        """Return what a pass is taken to need; one at least must have been seen."""
        size = _size(num_sequences)
        return self._seconds[max((other for other in self._seconds if other <= size), default=min(self._seconds))]


def _size(num_sequences: int) -> int:
    return 1 << (num_sequences - 1).bit_length()
