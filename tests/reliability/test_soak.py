"""The short form of ``make soak``."""

from pathlib import Path

from tests.reliability.soak import Soak


def test_hundreds_of_requests_leave_nothing_behind(tmp_path: Path) -> None:
    soak = Soak(directory=tmp_path, number=600, seed=1)
    soak.run()
    assert soak.faults == []
    assert soak.facts["preemptions"] > 5
    assert soak.facts["served"] > 400
    assert {fact for fact in soak.facts if fact.startswith("error ")} >= {
        "error invalid_json_line",
        "error duplicate_custom_id",
        "error context_length_exceeded",
        "error engine_error",
    }
