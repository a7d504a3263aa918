"""Drafters that know what would hurt: nonsense, the truth, the truth and more than may be emitted, and stops."""

import random
from collections.abc import Callable, Mapping

from batchspec.drafting import Drafter, NoDrafter
from batchspec.sequence import Sequence
from batchspec.testing import ByteTokenizer, ScriptedDrafter

__all__ = ["ADVERSARIES", "Outputs", "adversary"]

Outputs = Mapping[tuple[int, int], list[int]]  # by (request, sample) what is emitted without speculation
VOCAB = ByteTokenizer.vocab_size


def _nonsense(sequence: Sequence, num_tokens: int) -> list[int]:
    source = random.Random(f"{sequence.request_index} {sequence.sample_index} {sequence.num_tokens}")
    return [source.randrange(VOCAB) for _ in range(num_tokens)]


def _truth(outputs: Outputs, sequence: Sequence) -> list[int]:
    return outputs[sequence.request_index, sequence.sample_index][sequence.num_output_tokens :]


def _random(outputs: Outputs, sequence: Sequence) -> list[int]:
    return _nonsense(sequence, 1 + sequence.num_tokens % 4)


def _right(outputs: Outputs, sequence: Sequence) -> list[int]:
    return _truth(outputs, sequence)


def _beyond(outputs: Outputs, sequence: Sequence) -> list[int]:
    """The truth, and likely letters behind every stop."""
    return _truth(outputs, sequence) + list(b"abcdabcd")


def _nearly(outputs: Outputs, sequence: Sequence) -> list[int]:
    """The truth with one wrong token in it."""
    truth = _truth(outputs, sequence)[:4]
    if truth:
        wrong = sequence.num_tokens % len(truth)
        truth[wrong] = (truth[wrong] + 1) % VOCAB
    return truth


def _ends(outputs: Outputs, sequence: Sequence) -> list[int]:
    """The end of the sequence, a stop token and the beginnings of stop texts, over and over."""
    patterns = ([256, 256, 256, 256], [97, 98, 256, 97], [10, 10, 97, 98], [98, 99, 100, 32])
    return patterns[sequence.num_tokens % len(patterns)]


_SCRIPTS: dict[str, Callable[[Outputs, Sequence], list[int]]] = {
    "random": _random,
    "right": _right,
    "beyond": _beyond,
    "nearly": _nearly,
    "ends": _ends,
}
ADVERSARIES = tuple(_SCRIPTS)


def adversary(name: str, outputs: Outputs, *, k: int = 5) -> Drafter:
    """Return the drafter of that name; ``none`` drafts nothing."""
    if name == "none":
        return NoDrafter()
    return ScriptedDrafter(num_spec_tokens=k, script=lambda sequence: _SCRIPTS[name](outputs, sequence))
