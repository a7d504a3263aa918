"""Any drafter over a recorded output, step by step."""

import numpy as np

from batchspec.acceptance import DetailedRecorder
from batchspec.drafting import Drafter
from batchspec.params import SamplingParams
from batchspec.replay.recorded import Recorded
from batchspec.replay.trace import NO_LIMIT, Trace
from batchspec.sequence import Sequence
from batchspec.step import Draft, Outcome

__all__ = ["simulate"]


def simulate(one: Recorded, drafter: Drafter, *, context_limit: int = NO_LIMIT) -> Trace:
    """Return the steps that the drafter would have taken over an output, as the engine's own recorder notes them.

    A drafter that learns from other outputs sees what it would have seen in a run: that depends on indices alone.

    Args:
        one: the output; its index is at least that of every output before.
        drafter: which has seen those before.
        context_limit: the most tokens of a sequence and the drafts behind it.

    Raises:
        ValueError: the drafter would have had to see other outputs first.
    """
    recorder = DetailedRecorder(num_spec_tokens=drafter.num_spec_tokens)
    sequence = _begun(one, recorder, context_limit=context_limit)
    drafter.begin(sequence)
    if not drafter.is_ready(sequence):
        raise ValueError("outputs must come in the order of their indices")
    truth = np.concatenate([one.output, one.cut]).tolist()
    while sequence.finish_reason is None:
        _take_step(sequence, recorder, drafter, truth, num_output_tokens=len(one.output))
    drafter.end(sequence)
    return _trace(recorder, num_output_tokens=len(one.output))


def _begun(one: Recorded, recorder: DetailedRecorder, *, context_limit: int) -> Sequence:
    """Return the sequence behind its prefill."""
    sequence = Sequence.start(
        prompt=one.prompt.tolist(),
        max_num_tokens=len(one.prompt) + len(one.output),
        context_limit=context_limit,
        sampling=SamplingParams(temperature=0.0),
        stop_ids=frozenset(),
        queued=0.0,
        sample_index=one.sample_index,
        request_index=one.index,
        custom_id=one.custom_id,
        recorder=recorder,
    )
    sequence.append(one.output[:1].tolist())
    return sequence


def _take_step(
    sequence: Sequence, recorder: DetailedRecorder, drafter: Drafter, truth: list[int], *, num_output_tokens: int
) -> None:
    """Draft, compare with what was written, append and record, as ``Scheduler.commit`` does."""
    position = sequence.num_output_tokens
    sequence.num_computed_tokens = sequence.num_tokens - 1
    draft = next(iter(drafter.propose([sequence])), Draft(sequence=sequence, token_ids=[]))
    num_drafted, num_accepted = len(draft.token_ids), _num_equal(draft.token_ids, truth[position:])
    token_ids = truth[position : min(position + num_accepted + 1, num_output_tokens)]
    sequence.append(token_ids)
    recorder.record(num_drafted=num_drafted, num_accepted=num_accepted, num_emitted=len(token_ids), position=position)
    outcome = Outcome(
        sequence=sequence,
        token_ids=token_ids,
        num_drafted=num_drafted,
        num_accepted=num_accepted,
        seconds=0.0,
        source=draft.source,
    )
    drafter.observe([outcome], num_rows=1 + num_drafted)


def _num_equal(draft: list[int], truth: list[int]) -> int:
    number = 0
    while number < min(len(draft), len(truth)) and draft[number] == truth[number]:
        number += 1
    return number


def _trace(recorder: DetailedRecorder, *, num_output_tokens: int) -> Trace:
    lists = (recorder.per_step_position, recorder.per_step_drafted, recorder.per_step_accepted)
    position, drafted, accepted = np.array(lists, dtype=np.int32)
    return Trace(
        position=position,
        drafted=drafted,
        accepted=accepted,
        num_decode_steps=recorder.num_decode_steps,
        num_output_tokens=num_output_tokens,
    )
