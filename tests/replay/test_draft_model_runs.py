"""Runs with a draft model, replayed in one pass: the live trace, whatever was batched, cached, put back or sampled."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.cli import main
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.job.run import run_job
from batchspec.job.settings import JobSettings
from batchspec.replay.agreement import find_agreement
from batchspec.replay.grid import settings_for
from batchspec.replay.recorded import Recorded
from batchspec.replay.trace import Trace, take_steps
from batchspec.settings import EngineSettings
from batchspec.teacher import Teacher
from tests.core.draft_models import draft_model_over
from tests.core.paged import PagedModel
from tests.core.runs import ask, checked_engine, serve, spec_of

from .live import CONTEXT, Place, Served, assert_same, requests_of, serve_to
from .logs import recorded_in, write_log
from .teachers import DRAFT, TARGET, teacher_over

MOST = 6


def served_by(path: Path, requests: Any, *, k: int, **options: Any) -> Served:
    drafter = DraftModelDrafter(
        num_spec_tokens=k, draft_model=draft_model_over(DRAFT, context_length=CONTEXT, num_blocks=800)
    )
    return serve_to(path, requests, drafter, model=PagedModel(TARGET, block_size=4), block_size=4, **options)


def trace_of(one: Recorded, teacher: Teacher, *, k: int, without: frozenset[Place] = frozenset()) -> Trace:
    """The steps of a replay; in some places there is no draft."""
    drafted, agreed = find_agreement(one, teacher, most=MOST)
    for position in range(len(drafted)):
        if (one.custom_id, len(one.prompt), position) in without:
            drafted[position] = agreed[position] = 0
    return take_steps((drafted, agreed), num_spec_tokens=k, room=CONTEXT - len(one.prompt) - 1)


@pytest.mark.parametrize(
    "options", [{"max_num_seqs": 1}, {"max_num_seqs": 16, "prefix_caching": True}], ids=["one by one", "cached"]
)
def test_batches_and_cached_prefixes_change_no_step(tmp_path: Path, options: dict[str, Any]) -> None:
    served = served_by(tmp_path / "log.jsonl", requests_of(60), k=3, **options)
    teacher = teacher_over()
    assert_same(served, [(one, trace_of(one, teacher, k=3)) for one in recorded_in(served.path, keeps_sampling=True)])


def test_preemption_drops_the_draft_of_the_step_that_computes_again_and_nothing_else(tmp_path: Path) -> None:
    served = served_by(tmp_path / "log.jsonl", requests_of(80), k=3, preempt_every=5)
    outputs, teacher = recorded_in(served.path, keeps_sampling=True), teacher_over()
    assert len(served.again) > 20
    without = frozenset(served.again)
    assert_same(served, [(one, trace_of(one, teacher, k=3, without=without)) for one in outputs])
    names = {custom_id for custom_id, _, _ in without}
    kept = [record for record in served.records if record["custom_id"] not in names]
    assert len(kept) > 10
    assert_same(
        replace(served, records=kept),
        [(one, trace_of(one, teacher, k=3)) for one in outputs if one.custom_id not in names],
    )


def test_a_run_with_one_draft_length_tells_what_another_length_does(tmp_path: Path) -> None:
    """But for a last draft that reaches beyond what the shorter one's run wrote down."""
    short, long = (served_by(tmp_path / f"{k}.jsonl", requests_of(60), k=k) for k in (1, MOST))
    teacher, traces = teacher_over(), []
    for one in recorded_in(short.path, keeps_sampling=True):
        trace = trace_of(one, teacher, k=MOST)
        known = len(one.output) + len(one.cut)
        is_open = len(trace.position) > 0 and trace.position[-1] + trace.accepted[-1] == known
        traces.append((one, trace, is_open))
    opened = {one.custom_id for one, _, is_open in traces if is_open}
    kept = [record for record in long.records if record["custom_id"] not in opened]
    assert len(kept) > 20
    assert any(len(set(spec_of(record)["per_step_accepted"])) > 2 for record in kept)
    assert_same(replace(long, records=kept), [(one, trace) for one, trace, _ in traces if one.custom_id not in opened])


def test_every_sample_has_the_noise_of_its_own(tmp_path: Path) -> None:
    """Several samples carry no metrics, so their steps are held against the engine's counters."""
    requests = [ask([97 + i % 5, 98], index=i, n=3, max_tokens=25, temperature=0.8, seed=i) for i in range(12)]
    drafter = DraftModelDrafter(
        num_spec_tokens=3, draft_model=draft_model_over(DRAFT, context_length=CONTEXT, num_blocks=800)
    )
    engine = checked_engine(
        model=PagedModel(TARGET, block_size=4),
        block_size=4,
        drafter=drafter,
        level=Level.SUMMARY,
        max_model_len=CONTEXT,
    )
    path = write_log(tmp_path / "log.jsonl", serve(engine, requests))
    counted = engine.counters.totals()
    outputs, teacher = recorded_in(path, keeps_sampling=True), teacher_over()
    traces = [trace_of(one, teacher, k=3) for one in outputs]
    assert {one.sample_index for one in outputs} == {0, 1, 2}
    num_steps = sum(len(trace.drafted) for trace in traces)
    assert num_steps > 100
    assert num_steps == counted["num_spec_steps"]
    assert sum(int(trace.drafted.sum()) for trace in traces) == counted["num_draft_tokens"]
    alike = [trace_of(replace(one, sample_index=0), teacher, k=3) for one in outputs]
    assert sum(len(trace.drafted) for trace in alike) > num_steps


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the embedded models, half of it sampled."""
    directory = tmp_path_factory.mktemp("run")
    rows = [
        {"id": i, "prompt": f"{i} one two one", "max_tokens": 20, "temperature": 0.8 * (i % 2), "category": "ab"[i % 2]}
        for i in range(8)
    ]
    (speculative,) = settings_for(["draft_model"], [3], {})
    settings = JobSettings(
        input=str(write_log(directory / "input.jsonl", rows)),
        run_dir=directory / "run",
        engine=EngineSettings(level=Level.DETAILED, speculative=speculative, max_model_len=128),
    )
    assert run_job(settings).status == 0
    return directory / "run"


def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["batchspec", "replay", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def test_the_command_replays_a_run_beside_other_drafters(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    args = (str(run_dir), "--method", "ngram,draft_model", "--num-speculative-tokens", "1,3", "--cost", "0.01,0.001")
    status, out, err = call(monkeypatch, capsys, *args, "--json")
    assert (status, err) == (0, "")
    document = json.loads(out)
    cells = {(cell["method"], cell["num_spec_tokens"]): cell["pooled"] for cell in document["all"]["cells"]}
    assert set(cells) == {("ngram", 1), ("ngram", 3), ("draft_model", 1), ("draft_model", 3)}
    records = [json.loads(line) for line in (run_dir / "responses.jsonl").read_text().splitlines()]
    for name in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens", "num_decode_steps"):
        assert cells["draft_model", 3][name] == sum(spec_of(record)[name] for record in records)
    assert cells["draft_model", 3]["num_accepted_draft_tokens"] > 0
    assert list(document["categories"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("model", "expected"), [("nowhere/at/all", "nowhere/at/all"), ("", "model")], ids=["missing", "empty"]
)
def test_a_draft_model_that_is_none_is_one_sentence(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], model: str, expected: str
) -> None:
    status, out, err = call(monkeypatch, capsys, str(run_dir), "--method", "draft_model", "--draft-model", model)
    assert (status, out) == (2, "")
    assert expected in err
    assert err.count("\n") == 1
