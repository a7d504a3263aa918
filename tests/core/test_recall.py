"""Recall: the old answer, again from where the new one agrees with it, and any old answer else."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from batchspec.acceptance import Level
from batchspec.drafting.recall import RecallDrafter, trie_over
from batchspec.sequence import Sequence
from batchspec.testing import TableModel

from .runs import ask, checked_engine, serve, spec_of, token_ids_of
from .sequences import decoding

Answers = dict[str, list[int]]


def drafter_over(answers: Answers, *, k: int = 4) -> RecallDrafter:
    arrays = {name: np.array(answer, dtype=np.int64) for name, answer in answers.items()}
    return RecallDrafter(
        num_spec_tokens=k,
        answer_to=lambda name, _: arrays.get(name),
        trie=trie_over(arrays.values(), max_depth=8),
        factor=2.0,
        min_prob=0.1,
    )


def begun(output: list[int], *, name: str = "a", prompt: list[int] | None = None) -> Sequence:
    """A sequence that has written the beginning of an output."""
    prompt = [90, 91] if prompt is None else prompt
    sequence = decoding([*prompt, output[0]])
    sequence.custom_id = name
    sequence.append(output[1:])
    sequence.num_computed_tokens = sequence.num_tokens - 1
    return sequence


def proposal(drafter: RecallDrafter, sequence: Sequence) -> tuple[str, list[int]] | None:
    drafts = drafter.propose([sequence])
    return (drafts[0].source, drafts[0].token_ids) if drafts else None


def test_the_old_answer_is_followed_as_long_as_it_agrees() -> None:
    drafter = drafter_over({"a": [1, 2, 3, 4, 5, 6]})
    sequence = begun([1])
    assert proposal(drafter, sequence) == ("recall", [2, 3, 4, 5])
    sequence.append([2, 3])
    assert proposal(drafter, sequence) == ("recall", [4, 5, 6])
    sequence.append([4, 5, 6])
    assert proposal(drafter, sequence) is None


def test_it_is_taken_up_again_behind_a_difference() -> None:
    drafter = drafter_over({"a": [1, 2, 3, 4, 5, 6, 7, 8]})
    sequence = begun([1, 2])
    assert proposal(drafter, sequence) == ("recall", [3, 4, 5, 6])
    sequence.append([50])
    assert proposal(drafter, sequence) is None
    sequence.append([5])
    assert proposal(drafter, sequence) == ("recall_global", [6, 7])
    sequence.append([6])
    assert proposal(drafter, sequence) == ("recall", [7, 8])


def test_of_several_places_the_nearest_is_taken() -> None:
    drafter = drafter_over({"a": [7, 8, 1, 0, 7, 8, 2, 0, 7, 8, 3]})
    sequence = begun([7, 8, 1, 9])
    assert proposal(drafter, sequence) is None
    sequence.append([7, 8])
    assert proposal(drafter, sequence) == ("recall", [2, 0, 7, 8])


def test_others_answers_help_where_there_is_none() -> None:
    drafter = drafter_over({"a": [1, 2, 3], "b": [1, 2, 4], "c": [1, 2, 4]})
    sequence = begun([1, 2], name="new")
    assert proposal(drafter, sequence) == ("recall_global", [4])
    drafter.end(sequence)
    assert not drafter._memories


@given(answer=st.lists(st.integers(0, 4), max_size=12), output=st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_drafts_are_pieces_of_the_old_answer_or_of_any(answer: list[int], output: list[int]) -> None:
    drafter = drafter_over({"a": answer})
    sequence = begun(output[:1])
    for token in [*output[1:], None]:
        found = proposal(drafter, sequence)
        if found is not None and found[0] == "recall":
            pieces = [answer[i : i + len(found[1])] for i in range(len(answer))]
            assert found[1] in pieces
        if token is not None:
            sequence.append([token])


def test_an_unchanged_job_is_recalled_with_every_draft_accepted() -> None:
    model = TableModel.random(seed=5, scale=3.0)
    requests = [ask([i, i + 1, i], index=i, max_tokens=41, temperature=0.7, seed=i) for i in range(5)]
    plain = [token_ids_of(record) for record in serve(checked_engine(model=model), requests)]
    answers = {f"r{i}": ids[0] for i, ids in enumerate(plain) if not isinstance(ids, str)}
    engine = checked_engine(model=model, drafter=drafter_over(answers), level=Level.DETAILED)
    records = serve(engine, requests)
    assert [token_ids_of(record) for record in records] == plain
    for record, ids in zip(records, answers.values(), strict=True):
        found = spec_of(record)
        assert found["num_accepted_draft_tokens"] == found["num_draft_tokens"]
        assert found["num_decode_steps"] == -(-(len(ids) - 1) // 5)
    assert set(engine.sources.totals()) == {"recall"}
