"""Which share of the rows a run serves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchspec.errors import UsageError
from batchspec.job.shard import RowsToPassOver, Shard, parse_shard


@given(count=st.integers(1, 40), num_rows=st.integers(0, 300))
def test_every_row_is_in_one_shard(count: int, num_rows: int) -> None:
    shards = [Shard(index=index, count=count) for index in range(count)]
    held = [[row for row in range(num_rows) if shard.holds(row)] for shard in shards]
    assert sorted(row for rows in held for row in rows) == list(range(num_rows))
    assert [len(rows) for rows in held] == [shard.num_rows(num_rows) for shard in shards]
    assert max(map(len, held)) - min(map(len, held)) <= 1


def test_rows_of_others_and_finished_rows_are_passed_over() -> None:
    others = RowsToPassOver(Shard(index=1, count=3), {4})
    assert [row for row in range(9) if row not in others] == [1, 7]
    assert [row for row in range(6) if row not in RowsToPassOver(None, {4})] == [0, 1, 2, 3, 5]


@pytest.mark.parametrize("text", ["3/3", "4/3", "0/0", "-1/3", "1", "a/b", "1/3/5", "", "1 / 3", "ENV"])
def test_what_is_no_shard_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"--shard .*write it like 0/4") as refusal:
        parse_shard(text, {"RANK": "0", "WORLD_SIZE": "2"})
    assert "\n" not in str(refusal.value)


SLURM = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "4"}


def test_a_shard_that_is_given_wins_over_the_environment() -> None:
    assert parse_shard("1/3", {"RANK": "0", "WORLD_SIZE": "2"}) == (Shard(index=1, count=3), "")


@pytest.mark.parametrize(
    ("environment", "shard"),
    [
        ({"RANK": "1", "WORLD_SIZE": "2"}, "1/2"),
        (SLURM, "3/4"),
        ({**SLURM, "SLURM_ARRAY_TASK_MIN": "1"}, "2/4"),
        ({**SLURM, "SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_STEP": "2"}, "3/4"),
        ({**SLURM, "RANK": "3", "WORLD_SIZE": "4"}, "3/4"),
        ({**SLURM, "RANK": "", "WORLD_SIZE": ""}, "3/4"),
    ],
)
def test_the_environment_names_a_shard(environment: dict[str, str], shard: str) -> None:
    found, sentence = parse_shard("env", environment)
    assert str(found) == shard
    assert f"serving shard {shard}" in sentence


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "found neither RANK"),
        ({"RANK": "1"}, "only one of them"),
        ({"SLURM_ARRAY_TASK_COUNT": "2"}, "only one of them"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "ranks count from 0"),
        ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK is 'one'"),
        ({**SLURM, "SLURM_ARRAY_TASK_ID": "4"}, "--array=0-3"),
        ({**SLURM, "SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_STEP": "4"}, "none of 4"),
        ({**SLURM, "RANK": "0", "WORLD_SIZE": "1"}, "ambiguous"),
    ],
)
def test_an_environment_that_names_no_shard_is_refused(environment: dict[str, str], expected: str) -> None:
    with pytest.raises(UsageError, match="--shard env") as refusal:
        parse_shard("env", environment)
    assert expected in str(refusal.value)
