"""Token batches: encode examples, sort them by length, pad little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import torch
from tokenizers import Tokenizer
from torch import Tensor

from datasets.training.model import END_ID, PAD_ID
from datasets.training.stream import Example, make_example

PROMPT_WEIGHT = 0.1
POOL = 1024


@dataclass(frozen=True)
class Encoded:
    """Token ids and the loss weight of each."""

    ids: list[int]
    weights: list[float]


@dataclass(frozen=True)
class Batch:
    """Padded rows, and how many of their tokens are real."""

    ids: Tensor
    weights: Tensor
    tokens: int


def encode(tokenizer: Tokenizer, example: Example) -> Encoded:
    """Encode the prompt as a whole, as at inference, then the answer and its end."""
    prompt = tokenizer.encode(example.prompt, add_special_tokens=False)
    answer = tokenizer.encode(example.answer, add_special_tokens=False).ids
    weights = [PROMPT_WEIGHT] * len(prompt.ids)
    for start, end in example.spans:
        for i, (first, last) in enumerate(prompt.offsets):
            if first >= start and last <= end:
                weights[i] = 1.0
    return Encoded([*prompt.ids, *answer, END_ID], weights + [1.0] * (len(answer) + 1))


def _pad(rows: list[Encoded]) -> Batch:
    width = max(len(row.ids) for row in rows)
    ids = torch.full((len(rows), width), PAD_ID)
    weights = torch.zeros(len(rows), width)
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)] = torch.tensor(row.ids)
        weights[i, : len(row.ids)] = torch.tensor(row.weights)
    return Batch(ids, weights, sum(len(row.ids) for row in rows))


def pool_batches(tokenizer: Tokenizer, seed: int, pool: int, batch_tokens: int, longest: int) -> Iterator[Batch]:
    """Yield the batches of one pool of examples, in a shuffled order."""
    examples = (make_example(seed, pool * POOL + i) for i in range(POOL))
    rows = [row for row in (encode(tokenizer, e) for e in examples) if len(row.ids) <= longest]
    rows.sort(key=lambda row: len(row.ids))
    groups: list[list[Encoded]] = [[]]
    for row in rows:
        if len(row.ids) * (len(groups[-1]) + 1) > batch_tokens:
            groups.append([])
        groups[-1].append(row)
    Random(f"{seed}/{pool}").shuffle(groups)
    yield from (_pad(group) for group in groups if group)
