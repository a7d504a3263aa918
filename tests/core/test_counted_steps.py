"""Every row of "what counts as a step", driven through the engine with drafts known beforehand."""

from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.engine import EngineCore
from batchspec.request import Request
from batchspec.testing import ByteTokenizer, ScriptedDrafter, TableModel

from .runs import ask, body_of, checked_engine, plans_of, reconciliation_of, serve, spec_of, token_ids_of
from .scripts import EagerDrafter, FailingModel, count_on, counting_drafter, wrong_drafter

EOS = ByteTokenizer.eos_id


def counting_engine(drafter: Any, **kwargs: Any) -> EngineCore:
    return checked_engine(**{"model": TableModel.counting(), "drafter": drafter, "level": Level.DETAILED} | kwargs)


def served(engine: EngineCore, request: Request) -> dict[str, Any]:
    """Serve one request, see that both accounts agree, and return its record."""
    records = serve(engine, [request])
    assert reconciliation_of(engine, records).is_exact
    return records[0]


def test_first_output_token_is_never_a_step() -> None:
    drafter = counting_drafter(3)
    engine = counting_engine(drafter)
    spec = spec_of(served(engine, ask([10, 11], max_tokens=1)))
    assert spec["num_spec_steps"] == spec["num_decode_steps"] == spec["num_draft_tokens"] == 0
    assert spec["acceptance_histogram"] == [0, 0, 0, 0]
    assert spec["mean_acceptance_length"] == 1.0
    assert spec["draft_acceptance_rate"] == 0.0
    assert spec["per_step_accepted"] == spec["per_step_drafted"] == spec["per_step_position"] == []
    assert spec["tokens_per_decode_step"] is None


def test_decode_step_with_a_right_draft_is_one_step() -> None:
    record = served(counting_engine(counting_drafter(3)), ask([10, 11], max_tokens=9))
    spec = spec_of(record)
    assert token_ids_of(record) == [list(range(12, 21))]
    assert spec["per_step_drafted"] == spec["per_step_accepted"] == [3, 3]
    assert spec["per_step_position"] == [1, 5]
    assert spec["num_discarded_tokens"] == 0
    assert spec["tokens_per_decode_step"] == 4.0


def test_decode_step_with_a_wrong_draft_is_one_step() -> None:
    record = served(counting_engine(wrong_drafter(2)), ask([10, 11], max_tokens=4))
    spec = spec_of(record)
    assert token_ids_of(record) == [[12, 13, 14, 15]]
    assert spec["acceptance_histogram"] == [3, 0, 0]
    assert spec["per_step_drafted"] == [2, 2, 2]
    assert spec["mean_acceptance_length"] == 1.0


def test_accepted_counts_leading_matches_only() -> None:
    def script(sequence: Any) -> list[int]:
        right = count_on(sequence, 4)
        return [right[0], right[1], 5, right[3]]

    drafter = ScriptedDrafter(num_spec_tokens=4, script=script)
    spec = spec_of(served(counting_engine(drafter), ask([10], max_tokens=7)))
    assert spec["per_step_accepted"] == [2, 2]
    assert spec["num_draft_tokens"] == 8


def test_decode_step_without_a_draft_is_not_a_step() -> None:
    def script(sequence: Any) -> list[int]:
        return count_on(sequence, 2) if sequence.num_output_tokens in (2, 6) else []

    drafter = ScriptedDrafter(num_spec_tokens=2, script=script)
    spec = spec_of(served(counting_engine(drafter), ask([10], max_tokens=9)))
    assert spec["per_step_position"] == [2, 6]
    assert spec["num_spec_steps"] == 2
    assert spec["num_decode_steps"] == 4


def test_decode_step_with_room_for_no_draft_is_not_a_step() -> None:
    engine = counting_engine(EagerDrafter(num_spec_tokens=3), max_num_batched_tokens=1)
    spec = spec_of(served(engine, ask([10, 11], max_tokens=5)))
    assert spec["num_spec_steps"] == spec["num_draft_tokens"] == 0
    assert spec["num_decode_steps"] == 4


def test_prefill_chunks_are_never_steps_and_their_drafts_are_dropped_uncounted() -> None:
    drafter = EagerDrafter(num_spec_tokens=2)
    engine = counting_engine(drafter, max_num_batched_tokens=3)
    spec = spec_of(served(engine, ask(list(range(10, 20)), max_tokens=4)))
    chunks = [chunk for plan in plans_of(engine) for chunk in plan.chunks]
    assert [(chunk.start, len(chunk.token_ids)) for chunk in chunks] == [(0, 3), (3, 3), (6, 3), (9, 1), (10, 3)]
    assert drafter.num_proposed == len(chunks)
    assert spec["per_step_drafted"] == [2]
    assert spec["per_step_accepted"] == [2]


@pytest.mark.parametrize("temperature", [0.0, 1e-300])
def test_tokens_behind_end_of_sequence_still_count_as_accepted(temperature: float) -> None:
    record = served(counting_engine(counting_drafter(3)), ask([253], max_tokens=20, temperature=temperature))
    spec = spec_of(record)
    assert token_ids_of(record) == [[254, 255, EOS]]
    assert body_of(record)["choices"][0]["finish_reason"] == "stop"
    assert body_of(record)["choices"][0]["stop_reason"] is None
    assert spec["per_step_accepted"] == [3]
    assert spec["num_discarded_tokens"] == 2


def test_tokens_behind_a_stop_token_still_count_as_accepted() -> None:
    record = served(counting_engine(counting_drafter(3)), ask([10], max_tokens=20, stop_token_ids=(13,)))
    spec = spec_of(record)
    assert token_ids_of(record) == [[11, 12, 13]]
    assert body_of(record)["choices"][0]["stop_reason"] == 13
    assert spec["per_step_accepted"] == [3]
    assert spec["num_discarded_tokens"] == 2


def test_drafts_are_not_shortened_to_the_tokens_that_max_tokens_leaves() -> None:
    """As the capture ``max2`` of a server has it: 2 tokens emitted, 3 of 3 accepted."""
    record = served(counting_engine(counting_drafter(3)), ask([10], max_tokens=2))
    spec = spec_of(record)
    assert token_ids_of(record) == [[11, 12]]
    assert body_of(record)["usage"]["completion_tokens"] == 2
    assert spec["per_step_drafted"] == spec["per_step_accepted"] == [3]
    assert spec["acceptance_histogram"] == [0, 0, 0, 1]
    assert spec["num_discarded_tokens"] == 3
    assert spec["tokens_per_decode_step"] == 1.0


def test_a_wrong_draft_behind_the_cut_counts_as_drafted_only() -> None:
    spec = spec_of(served(counting_engine(counting_drafter(3, right=1)), ask([10], max_tokens=2)))
    assert spec["per_step_drafted"] == [3]
    assert spec["per_step_accepted"] == [1]
    assert spec["num_discarded_tokens"] == 1


def test_shorter_drafts_count_with_their_real_length() -> None:
    def script(sequence: Any) -> list[int]:
        return count_on(sequence, {1: 1, 3: 4, 8: 2}.get(sequence.num_output_tokens, 0))

    engine = counting_engine(ScriptedDrafter(num_spec_tokens=4, script=script))
    spec = spec_of(served(engine, ask([10], max_tokens=11)))
    assert spec["per_step_drafted"] == spec["per_step_accepted"] == [1, 4, 2]
    assert spec["num_draft_tokens"] == 7
    assert engine.counters.totals()["num_accepted_tokens_per_pos"] == [3, 2, 1, 1]


@pytest.mark.parametrize("drafter", [counting_drafter(3, right=1), EagerDrafter(num_spec_tokens=3)])
def test_draft_near_the_context_limit_is_cut_to_what_fits(drafter: Any) -> None:
    engine = counting_engine(drafter, max_model_len=8)
    record = served(engine, ask([10, 11, 12]))
    spec = spec_of(record)
    assert token_ids_of(record) == [[13, 14, 15, 16, 17]]
    assert body_of(record)["choices"][0]["finish_reason"] == "length"
    assert all(
        3 + position + drafted + 1 <= 8
        for position, drafted in zip(spec["per_step_position"], spec["per_step_drafted"], strict=True)
    )
    assert spec["per_step_drafted"][0] == 3
    assert sum(spec["per_step_accepted"]) + spec["num_decode_steps"] == 4


def test_no_draft_fits_before_the_last_token_of_the_context() -> None:
    spec = spec_of(served(counting_engine(counting_drafter(3, right=0), max_model_len=6), ask([10, 11])))
    assert spec["per_step_drafted"] == [2, 1]
    assert spec["num_decode_steps"] == 3


def test_preemption_keeps_the_counts_and_drops_the_pending_draft() -> None:
    """Two sequences in a pool for one and a half: the younger is put back while it has a draft."""
    drafter = EagerDrafter(num_spec_tokens=2)
    engine = counting_engine(drafter, max_model_len=24, num_blocks=8, block_size=4)
    requests = [ask([10] * 3, index=0, max_tokens=20), ask([60] * 3, index=1, max_tokens=20)]
    young_counts: list[int] = []
    is_dropped = False
    records = serve(engine, requests)
    assert engine.scheduler.num_preemptions > 0
    plans = plans_of(engine)
    drafted = [chunk for plan in plans for chunk in plan.chunks if chunk.draft]
    for plan in plans:
        young = [chunk for chunk in plan.chunks if chunk.sequence.request_index == 1]
        young_counts += [len(chunk.draft) for chunk in young]
        is_dropped |= not young and plan is not plans[-1]
    spec = [spec_of(record) for record in records]
    assert is_dropped
    assert len(drafted) == sum(document["num_spec_steps"] for document in spec)
    assert spec[1]["num_draft_tokens"] == sum(young_counts)
    assert spec[1]["per_step_drafted"] == [count for count in young_counts if count]
    assert [token_ids_of(record) for record in records] == [[list(range(11, 31))], [list(range(61, 81))]]
    assert reconciliation_of(engine, records).is_exact


def test_counts_of_a_request_ended_by_an_error_are_unreported() -> None:
    model = FailingModel(TableModel.counting().table, failing=[3], error=lambda: RuntimeError("lost the device"))
    engine = counting_engine(counting_drafter(3), model=model)
    records = serve(engine, [ask([10], index=0, max_tokens=30)])
    assert records[0]["response"]["status_code"] == 500
    assert "metrics" not in records[0]["response"]["body"]
    assert engine.desk.unreported["error"].acceptance_histogram == [0, 0, 0, 2]
    assert engine.counters.totals()["num_spec_steps"] == 2
    reconciliation = reconciliation_of(engine, records)
    assert reconciliation.is_exact
    assert reconciliation.rows[0].unreported == {"error": 2}


@pytest.mark.parametrize(
    ("request_", "cause"), [(ask([10], max_tokens=6, n=2), "n > 1"), (ask([10], [20], max_tokens=6), "several prompts")]
)
def test_counts_of_several_samples_or_prompts_are_unreported(request_: Request, cause: str) -> None:
    engine = counting_engine(counting_drafter(4))
    record = served(engine, request_)
    assert body_of(record)["metrics"] is None
    assert engine.desk.unreported[cause].acceptance_histogram == [0, 0, 0, 0, 2]
