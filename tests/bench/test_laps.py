"""Every moment of an engine's work is given to one station, and the work stays the same."""

from itertools import count

import pytest
import torch

from batchspec.bench.job import Job, serve
from batchspec.bench.laps import FORWARD, Laps, watch
from batchspec.testing import ScriptedDrafter, TableModel, make_engine

JOB = Job(prompts=[[1, 2, 3], [7, 8]], max_tokens=6, max_num_seqs=2)


def drafter() -> ScriptedDrafter:
    return ScriptedDrafter(
        num_spec_tokens=2, script=lambda sequence: [int(sequence.tokens[sequence.num_tokens - 1]) + 1]
    )


def test_the_stations_add_up_to_the_whole() -> None:
    ticks = count()
    laps = Laps(clock=lambda: float(next(ticks)))
    core = make_engine(model=TableModel.counting(), drafter=drafter())
    watch(core, laps, device=torch.device("cpu"))
    measured = serve(core, JOB)
    num_steps = core.progress.num_steps
    assert measured.output_tokens == 12
    assert set(laps.seconds) == {"records", "draft", "schedule", "verify", FORWARD, "commit", "account"}
    assert laps.seconds[FORWARD] == num_steps  # one tick each: the clock is read at every boundary and nowhere else
    assert sum(laps.seconds.values()) == 14 * num_steps


def test_watching_changes_no_token() -> None:
    watched, plain = (make_engine(model=TableModel.counting(), drafter=drafter()) for _ in range(2))
    watch(watched, Laps(), device=torch.device("cpu"))
    texts = [
        [record["response"]["body"]["choices"][0]["text"] for record in core.run(JOB.requests())]
        for core in (watched, plain)
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("max_tokens", [1, 5])
def test_a_job_is_done_to_its_full_length(max_tokens: int) -> None:
    job = Job(prompts=[[256], [1]], max_tokens=max_tokens, max_num_seqs=1)
    measured = serve(make_engine(), job)
    assert measured.output_tokens == 2 * max_tokens
    assert measured.seconds > 0
    assert measured.cpu_seconds is not None
