"""A short walk over every target; ``make fuzz`` takes a long one."""

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .targets import TARGETS, Target

EXAMPLES = {"lines": 150, "parquet": 40, "requests": 60, "logs": 40, "comparisons": 30, "structures": 40}


@pytest.mark.parametrize("target", [pytest.param(target, id=name) for name, target in TARGETS.items()])
def test_a_record_or_a_sentence(target: Target, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id

    @settings(max_examples=EXAMPLES.get(name, 80), suppress_health_check=list(HealthCheck), database=None)
    @given(dice=st.randoms(use_true_random=False))
    def walk(dice: Random) -> None:
        with tempfile.TemporaryDirectory() as directory:
            target(dice, Path(directory))

    walk()
