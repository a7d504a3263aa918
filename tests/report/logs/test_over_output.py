from pathlib import Path

from batchspec.ingest import Acceptance
from batchspec.report.logs.over_output import OverOutput

from .made import line, report_of, request


def test_steps_are_put_where_they_began(tmp_path: Path) -> None:
    own = {"num_decode_steps": 40, "num_discarded_tokens": 0, "per_step_position": [1, 15, 16, 40]}
    rows = [line([(4, 4), (4, 2), (4, 0), (4, 1)], tokens=1 + 40 + 7, batchspec=own)]
    over_output = report_of(tmp_path, rows)["over_output"]
    assert (over_output["num_requests"], over_output["num_requests_with_estimated_positions"]) == (1, 0)
    assert [(one["num_spec_steps"], one["num_accepted_draft_tokens"]) for one in over_output["bins"]] == [
        (2, 6),
        (1, 0),
        (1, 1),
    ]
    assert [one["mean_acceptance_length"] for one in over_output["bins"]] == [4.0, 1.0, 2.0]


def test_positions_that_are_not_told_are_estimated_and_said_to_be(tmp_path: Path) -> None:
    over_output = report_of(tmp_path, [request([4, 4, 4, 0])])["over_output"]
    assert over_output["num_requests_with_estimated_positions"] == 1
    assert [(one["first_position"], one["num_spec_steps"]) for one in over_output["bins"]] == [(0, 3), (16, 1)]


def test_long_outputs_get_wider_bins_and_keep_every_step() -> None:
    over_output = OverOutput()
    for start in range(0, 100_000, 1000):
        positions = list(range(start, start + 1000))
        over_output.add(Acceptance(per_step_accepted=[1] * 1000, per_step_position=positions))
    document = over_output.document()
    assert document is not None
    assert len(document["bins"]) <= 32
    assert sum(one["num_spec_steps"] for one in document["bins"]) == 100_000
    assert {one["mean_acceptance_length"] for one in document["bins"]} == {2.0}


def test_absurd_positions_cost_no_memory() -> None:
    over_output = OverOutput()
    over_output.add(Acceptance(per_step_accepted=[1, 1], per_step_position=[2**31 - 1, 2**31 + 5]))
    document = over_output.document()
    assert document is not None
    assert document["bins"][-1]["num_spec_steps"] == 2


def test_bins_without_a_step_have_no_length(tmp_path: Path) -> None:
    own = {"num_decode_steps": 60, "num_discarded_tokens": 0, "per_step_position": [1, 40]}
    bins = report_of(tmp_path, [line([(4, 1), (4, 1)], tokens=63, batchspec=own)])["over_output"]["bins"]
    assert [one["mean_acceptance_length"] for one in bins] == [2.0, None, 2.0]
