"""What is removed, against transformers' own processors, row by row behind random drafts."""

import numpy as np
import pytest
import torch

from batchspec.params import SamplingParams
from batchspec.sampling import decide
from batchspec.step import TokenMasks

from .contexts import VOCAB, Context, processed, random_context, random_logits, reference

SEEDS = range(60)


def words_from(dice: np.random.Generator, tokens: list[int]) -> tuple[tuple[int, ...], ...]:
    """Stretches of a text, so that words are about to be completed, some with another last token, and noise."""
    words = [tuple(dice.integers(0, 9, size=int(dice.integers(1, 4))).tolist()) for _ in range(3)]
    for _ in range(5):
        start = int(dice.integers(len(tokens)))
        word = tokens[start : start + int(dice.integers(1, 5))]
        words.append((*word, int(dice.integers(VOCAB))))
    return tuple(dict.fromkeys(words))


@pytest.mark.parametrize("seed", SEEDS)
def test_bad_words_equal_transformers(seed: int) -> None:
    dice = np.random.default_rng(seed)
    context = random_context(dice)
    whole = context.prompt + context.output + context.draft
    context = random_context(dice, **vars(context) | {"bad_words": words_from(dice, whole)})
    logits = random_logits(dice, len(context.draft) + 1)
    ours = processed(context, logits)
    assert torch.equal(ours, reference(context, logits))
    assert ours.isneginf().any()


@pytest.mark.parametrize(
    ("prompt", "output", "draft", "word", "rows"),
    [
        ([1, 2], [3], [], (2, 3, 9), [0]),  # prompt and output
        ([1, 2], [3], [4, 5], (3, 4, 5, 9), [2]),  # output and draft
        ([1, 2], [3], [4, 5], (2, 3, 4, 9), [1]),  # prompt, output and draft
        ([1, 2], [3], [4, 5, 4, 5], (4, 5, 9), [2, 4]),  # within the draft
        ([1, 2], [3], [9, 9], (9,), [0, 1, 2]),  # one token: always
        ([1, 2], [], [], (1, 2, 9), [0]),  # the prompt alone
        ([2], [3], [], (1, 2, 3, 9), []),  # longer than the context
        ([1, 2], [3, 2, 1], [], (1, 2, 9), []),  # not at the end
        ([1, 2], [3], [], (7, 7, 9), []),  # the buffer behind the tokens does not count
    ],
)
def test_a_bad_word_forbids_its_last_token_behind_the_rest_of_it(
    prompt: list[int], output: list[int], draft: list[int], word: tuple[int, ...], rows: list[int]
) -> None:
    context = Context(prompt=prompt, output=output, draft=draft, bad_words=(word,))
    ours = processed(context, torch.zeros(len(draft) + 1, 10))
    assert ours.isneginf().nonzero().tolist() == [[row, 9] for row in rows]


@pytest.mark.parametrize("seed", SEEDS)
def test_min_tokens_equals_transformers_with_several_ends(seed: int) -> None:
    dice = np.random.default_rng(seed)
    context = random_context(
        dice,
        sampling=SamplingParams(min_tokens=int(dice.integers(1, 9)), stop_token_ids=(11, 12)),
        stop_ids=frozenset({3, 11, 39}),
    )
    logits = random_logits(dice, len(context.draft) + 1)
    assert torch.equal(processed(context, logits), reference(context, logits))


def test_ends_come_free_in_the_row_in_which_the_draft_reaches_min_tokens() -> None:
    context = Context(
        prompt=[1] * 5, output=[2], draft=[3, 3, 3], sampling=SamplingParams(min_tokens=3), stop_ids=frozenset({5, 6})
    )
    ours = processed(context, torch.zeros(4, 8))
    assert ours.isneginf().nonzero().tolist() == [[0, 5], [0, 6], [1, 5], [1, 6]]


@pytest.mark.parametrize("seed", SEEDS)
def test_only_allowed_tokens_stay(seed: int) -> None:
    dice = np.random.default_rng(seed)
    allowed = tuple(dice.choice(VOCAB, size=int(dice.integers(1, VOCAB)), replace=False).tolist())
    context = random_context(dice, sampling=SamplingParams(allowed_token_ids=allowed))
    logits = random_logits(dice, len(context.draft) + 1)
    assert torch.equal(processed(context, logits), reference(context, logits))


def pack(allowed: torch.Tensor) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """Bits of a boolean mask (rows, whole words of 32), written out one by one."""
    rows, width = allowed.shape
    words = np.zeros((rows, width // 32), dtype=np.uint32)
    for row in range(rows):
        for token in range(width):
            if allowed[row, token]:
                words[row, token // 32] |= np.uint32(1 << (token % 32))
    return words.view(np.int32)


@pytest.mark.parametrize(("vocabulary", "width"), [(96, 96), (75, 96), (100, 64), (32, 32), (31, 32), (40, 32)])
def test_grammar_bits_equal_a_boolean_mask(vocabulary: int, width: int) -> None:
    dice = np.random.default_rng(vocabulary)
    context = Context(prompt=[1, 2], output=[3], draft=[4, 5, 6])
    allowed = torch.from_numpy(dice.random((3, width)) < 0.4)
    masks = TokenMasks(rows=np.array([0, 2, 3]), bits=pack(allowed))
    logits = random_logits(dice, 4, vocabulary)
    ours = processed(context, logits, masks=masks)
    expected = logits.double().clone()
    for row, mask in zip((0, 2, 3), allowed, strict=True):
        for token in range(vocabulary):
            if token >= width or not mask[token]:
                expected[row, token] = -torch.inf
    assert torch.equal(ours, expected)


def test_a_mask_reaches_the_row_of_its_number_in_the_step_and_no_other() -> None:
    """Three greedy chunks; the mask of the second one's last row alone changes what is chosen there."""
    greedy = SamplingParams(temperature=0.0)
    chunks = [Context(prompt=[1], output=[2], draft=draft, sampling=greedy).chunk() for draft in ([3], [3, 4], [5])]
    logits = torch.arange(64.0).expand(7, -1)
    bits = np.zeros((1, 2), dtype=np.int32)
    bits[0, 0] = 1 << 9
    choices = decide(chunks, logits, TokenMasks(rows=np.array([4]), bits=bits))
    assert choices.target_ids.tolist() == [63, 63, 63, 63, 9, 63, 63]
    assert choices.has_target.all()


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_row_with_everything_forbidden_has_no_target(temperature: float) -> None:
    chunks = [
        Context(
            prompt=[1],
            output=[output],
            sampling=SamplingParams(temperature=temperature, top_k=3, top_p=0.9, allowed_token_ids=(4,), logprobs=2),
            bad_words=((2, 4),),
        ).chunk()
        for output in (2, 3)
    ]
    choices = decide(chunks, torch.randn(2, 10))
    assert choices.has_target.tolist() == [False, True]
    assert choices.target_ids[1] == 4
    assert list(choices.logprobs) == [1]


def test_ids_that_the_model_lacks_are_left_out() -> None:
    sampling = SamplingParams(
        allowed_token_ids=(3, 10, 99),
        logit_bias=((12, 5.0), (3, 1.0)),
        repetition_penalty=2.0,
        presence_penalty=1.0,
        min_tokens=9,
        stop_token_ids=(10,),
    )
    context = Context(prompt=[1, 11], output=[3, 25], draft=[30], sampling=sampling, bad_words=((10,), ()))
    ours = processed(context, torch.zeros(2, 10))
    assert ours[:, 3].tolist() == [-0.5, -0.5]
    assert ours.isfinite().sum() == 2
