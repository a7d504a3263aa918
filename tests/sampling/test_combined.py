"""All parameters together, against transformers; rows behind drafts and rows among others, bit for bit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from batchspec.params import SamplingParams
from batchspec.sampling import choice, decide
from batchspec.sequence import TokenLogprobs

from .contexts import VOCAB, Context, processed, random_context, random_logits, reference, split, warped

WORDS = ((1, 2), (3, 4, 5), (0,), (5, 5), (2, 2, 1), (7, 8))
PARAMETERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "min_tokens": {"min_tokens": 5, "stop_token_ids": (11,)},
    "top_k": {"top_k": 5},
    "top_p": {"top_p": 0.8},
    "min_p": {"min_p": 0.1},
    "presence_penalty": {"presence_penalty": 0.9},
    "frequency_penalty": {"frequency_penalty": 0.7},
    "repetition_penalty": {"repetition_penalty": 1.4},
    "logit_bias": {"logit_bias": ((4, 2.25), (30, -1.5))},
    "bad_words": {},
    "allowed_token_ids": {"allowed_token_ids": tuple(range(0, VOCAB, 2))},
}
PARAMETERS["all"] = {name: value for values in PARAMETERS.values() for name, value in values.items()}
PARAMETERS["all but allowed"] = {**PARAMETERS["all"], "allowed_token_ids": None, "top_k": 20, "min_p": 0.01}


def context_for(dice: np.random.Generator, name: str, **values: Any) -> Context:
    """A random context with one parameter, or all."""
    sampling = SamplingParams(seed=int(dice.integers(1000)), logprobs=4, **PARAMETERS[name] | values)
    has_words = name == "bad_words" or name.startswith("all")
    return random_context(
        dice,
        sampling=sampling,
        bad_words=WORDS if has_words else (),
        stop_ids=frozenset({3, 12}),
        sample_index=int(dice.integers(3)),
    )


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.5])
@pytest.mark.parametrize("name", PARAMETERS)
def test_the_distribution_equals_that_of_transformers(name: str, temperature: float, seed: int) -> None:
    dice = np.random.default_rng(seed)
    context = context_for(dice, name, temperature=temperature)
    logits = random_logits(dice, len(context.draft) + 1)
    torch.testing.assert_close(processed(context, logits), reference(context, logits), rtol=0, atol=1e-13)
    ours, theirs = warped(context, logits), reference(context, logits, has_temperature=True)
    assert torch.equal(ours.isneginf(), theirs.isneginf())
    torch.testing.assert_close(ours.softmax(dim=-1), theirs.softmax(dim=-1), rtol=0, atol=1e-14)


def results_of(contexts: list[Context], logits: torch.Tensor) -> list[tuple[int, TokenLogprobs | None]]:
    """Target and log probabilities of every row."""
    choices = decide([context.chunk() for context in contexts], logits)
    assert choices.has_target.all()
    return [(token, choices.logprobs.get(row)) for row, token in enumerate(choices.target_ids.tolist())]


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("name", PARAMETERS)
def test_a_row_behind_a_draft_equals_the_row_without_speculation(name: str, temperature: float, seed: int) -> None:
    dice = np.random.default_rng(seed)
    context = context_for(dice, name, temperature=temperature)
    context = replace(context, draft=dice.integers(0, 9, size=5).tolist())
    logits = random_logits(dice, 6)
    together = processed(context, logits)
    for i, part in enumerate(split(context)):
        alone = logits[i : i + 1]
        assert torch.equal(processed(part, alone), together[i : i + 1])
        if temperature:
            assert torch.equal(warped(part, alone), warped(context, logits)[i : i + 1])
        assert results_of([part], alone) == results_of([context], logits)[i : i + 1]
        assert results_of([replace(part, is_recomputed=not part.is_recomputed)], alone) == results_of([part], alone)


def mixed(dice: np.random.Generator, vocabulary: int) -> tuple[list[Context], torch.Tensor]:
    """Every parameter, greedy and not, in random order."""
    contexts = [
        context_for(dice, name, temperature=temperature) for name in PARAMETERS for temperature in (0.0, 0.7, 1.3)
    ]
    contexts = [contexts[i] for i in dice.permutation(len(contexts))]
    return contexts, random_logits(dice, sum(len(context.draft) + 1 for context in contexts), vocabulary)


@pytest.mark.parametrize("vocabulary", [VOCAB, 40_000])
def test_a_row_does_not_depend_on_its_batch(vocabulary: int) -> None:
    contexts, logits = mixed(np.random.default_rng(1), vocabulary)
    together = results_of(contexts, logits)
    first = 0
    for context in contexts:
        rows = slice(first, first + len(context.draft) + 1)
        assert results_of([context], logits[rows]) == together[rows]
        first = rows.stop


@pytest.mark.parametrize("num_rows", [1, 2, 7])
def test_rows_do_not_depend_on_the_blocks_they_are_computed_in(num_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    contexts, logits = mixed(np.random.default_rng(2), VOCAB)
    together = results_of(contexts, logits)
    monkeypatch.setattr(choice, "_BLOCK_SIZE", num_rows * VOCAB)
    assert results_of(contexts, logits) == together


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_rows_without_a_target_leave_the_others_as_they_are(value: float) -> None:
    contexts, logits = mixed(np.random.default_rng(3), VOCAB)
    expected = results_of(contexts, logits)
    poisoned = logits.clone()
    poisoned[::3] = value
    poisoned[1::3, 5] = -torch.inf  # an entry that was removed before does no harm
    for row in (1, 4, 7):
        logits[row, 5] = -torch.inf
    choices = decide([context.chunk() for context in contexts], poisoned)
    assert choices.has_target.tolist() == [row % 3 != 0 for row in range(len(logits))]
    assert all(row % 3 for row in choices.logprobs)
    for row in range(2, len(logits), 3):
        assert (int(choices.target_ids[row]), choices.logprobs.get(row)) == expected[row]


def test_a_single_nan_takes_the_target_from_its_row_even_where_the_token_is_forbidden() -> None:
    context = Context(prompt=[1], output=[2], draft=[3], sampling=SamplingParams(allowed_token_ids=(4, 5)))
    logits = torch.zeros(2, 10)
    logits[0, 9] = torch.nan
    assert decide([context.chunk()], logits).has_target.tolist() == [False, True]


def test_plain_greedy_rows_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path: nothing but the largest raw logit, also behind min_tokens."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a plain row was processed")

    monkeypatch.setattr(choice, "process", refuse)
    sampling = SamplingParams(temperature=0.0, min_tokens=1, top_k=5, top_p=0.5, min_p=0.2)
    context = Context(prompt=[1], output=[2], draft=[3], sampling=sampling, stop_ids=frozenset({4}))
    logits = random_logits(np.random.default_rng(4), 2)
    assert decide([context.chunk()], logits).target_ids.tolist() == logits.argmax(dim=-1).tolist()
    with pytest.raises(AssertionError):
        decide([replace(context, output=[]).chunk()], logits)


GREEDY: dict[str, tuple[dict[str, Any], tuple[tuple[int, ...], ...]]] = {
    "min_tokens": ({"min_tokens": 4, "stop_token_ids": (8,)}, ()),
    "bad_words": ({}, ((8,),)),
    "allowed_token_ids": ({"allowed_token_ids": (1, 2, 3)}, ()),
    "logit_bias": ({"logit_bias": ((5, 3.0),)}, ()),
    "repetition_penalty": ({"repetition_penalty": 10.0}, ()),
    "frequency_penalty": ({"frequency_penalty": 1.5}, ()),
    "presence_penalty": ({"presence_penalty": 1.5}, ()),
}


@pytest.mark.parametrize("name", GREEDY)
def test_each_parameter_alone_reaches_greedy_rows(name: str) -> None:
    """No parameter is missed where a sequence is taken for plain."""
    values, bad_words = GREEDY[name]
    sampling = SamplingParams(temperature=0.0, **values)
    context = Context(prompt=[1], output=[8, 2], draft=[3], sampling=sampling, bad_words=bad_words)
    logits = torch.tensor([[0.0, 0.3, 0.2, 0.1, 0.25, 0.0, 0.0, 0.0, 1.0, 0.0]]).expand(2, -1)
    chosen = decide([context.chunk()], logits).target_ids
    assert chosen.tolist() == reference(context, logits).argmax(dim=-1).tolist()
    assert 8 not in chosen.tolist()
