"""What is seen from outside is what the records say, and watching changes no token."""

from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.bench.job import Job, serve
from batchspec.bench.witness import Witness
from batchspec.testing import ScriptedDrafter, TableModel, make_engine

JOB = Job(prompts=[[1, 2, 3], [7, 8], [9]], max_tokens=6, max_num_seqs=2)


@pytest.mark.parametrize("num_spec_tokens", [0, 2])
def test_decode_steps_are_those_of_the_recorders(num_spec_tokens: int) -> None:
    drafter = ScriptedDrafter(
        num_spec_tokens=max(1, num_spec_tokens),
        script=lambda sequence: [int(sequence.tokens[sequence.num_tokens - 1]) + 1] * num_spec_tokens,
    )
    core = make_engine(model=TableModel.counting(), drafter=drafter, level=Level.SUMMARY)
    witness = Witness(core)
    records: list[dict[str, Any]] = []
    serve(core, JOB, on_record=records.append)
    stated = [record["response"]["body"]["metrics"]["batchspec"] for record in records]
    assert witness.num_decode_steps == sum(each["num_decode_steps"] for each in stated)
    assert witness.num_decoded_tokens == sum(JOB.max_tokens - 1 for _ in JOB.prompts)
    drafted = [record["response"]["body"]["metrics"]["speculative_decoding"] for record in records]
    assert witness.num_drafts == sum(each["num_spec_steps"] for each in drafted)
    assert set(witness.outputs) == {(0, 0, 3), (1, 0, 2), (2, 0, 1)}


def test_outputs_are_the_same_with_drafts_and_without() -> None:
    drafter = ScriptedDrafter(num_spec_tokens=2, script=lambda sequence: [int(sequence.tokens[0])])
    witnesses = []
    for core in (make_engine(model=TableModel.counting(), drafter=drafter), make_engine(model=TableModel.counting())):
        witnesses.append(Witness(core))
        serve(core, JOB)
    assert witnesses[0].outputs == witnesses[1].outputs
    assert all(len(output) == 8 * JOB.max_tokens for output in witnesses[0].outputs.values())
