"""The bias and the three penalties, on the entries that they touch.

With c the number of times that a token is in the output so far, OpenAI's API reference has::

    logit - c * frequency_penalty - (c > 0) * presence_penalty

The repetition penalty (Keskar et al., "CTRL", 2019, section 4.1, extended to negative logits as in transformers)
divides the logits of tokens in the prompt or the output by it if positive, and multiplies them if not. All of them see
the draft tokens that a row stands behind as output.
"""

from collections.abc import Sequence as Many

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.sampling.entries import Entries
from batchspec.sampling.rows import Row

__all__ = ["add_bias", "apply_penalties"]


def add_bias(block: torch.Tensor, rows: Many[Row]) -> None:
    """Add ``logit_bias``, in place.

    Args:
        block: float64 (rows, vocabulary), the logits of ``rows``.
        rows: what they continue.
    """
    parts = []
    for i, row in enumerate(rows):
        bias = dict(row.sampling.logit_bias)
        if bias:
            parts.append((i, list(bias), list(bias.values())))
    if parts:
        entries = Entries.collect(parts, block=block)
        entries.write(block, entries.read(block) + entries.amounts)


def apply_penalties(block: torch.Tensor, rows: Many[Row]) -> None:
    """Apply the repetition penalty, then the frequency penalty, then the presence penalty, in place.

    Args:
        block: float64 (rows, vocabulary), the logits of ``rows``.
        rows: what they continue.
    """
    _penalise_repetition(block, rows)
    frequency, presence = [], []
    for i, row in enumerate(rows):
        sampling = row.sampling
        if sampling.frequency_penalty or sampling.presence_penalty:
            ids, counts = np.unique(row.output, return_counts=True)
            frequency.append((i, ids, sampling.frequency_penalty * counts))
            presence.append((i, ids, sampling.presence_penalty))
    for parts in (frequency, presence):
        if parts:
            entries = Entries.collect(parts, block=block)
            entries.write(block, entries.read(block) - entries.amounts)


def _penalise_repetition(block: torch.Tensor, rows: Many[Row]) -> None:
    """Divide or multiply; a drafted token that was there before is an entry twice, with the same result."""
    known: dict[int, NDArray[np.int64]] = {}
    parts = []
    for i, row in enumerate(rows):
        sequence = row.sequence
        if row.sampling.repetition_penalty != 1:
            if id(sequence) not in known:
                known[id(sequence)] = np.unique(sequence.tokens[: sequence.num_tokens])
            ids = np.concatenate([known[id(sequence)], np.array(row.drafted, dtype=np.int64)])
            parts.append((i, ids, row.sampling.repetition_penalty))
    if parts:
        entries = Entries.collect(parts, block=block)
        logits = entries.read(block)
        entries.write(block, torch.where(logits > 0, logits / entries.amounts, logits * entries.amounts))
