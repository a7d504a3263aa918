"""The main job on the embedded model: what it writes, and what its exit status says."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchspec import verify
from batchspec.acceptance import AcceptanceRecorder, Level
from batchspec.counters import Counters
from batchspec.drafting import SpeculativeConfig
from batchspec.errors import ModelError, UsageError
from batchspec.files import RowDefaults, read_responses
from batchspec.job.outcome import ExitStatus
from batchspec.model.locate import EMBEDDED_DRAFT
from tests.job.conftest import RunLines

QUESTION = "List the days of the week twice: Monday, Tuesday, Wednesday, Thursday, Friday. Monday, Tuesday,"


def chat(name: str, *, content: str = QUESTION, **body: Any) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 24, "temperature": 0} | body
    return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}


def prompt(name: str, *, text: str = QUESTION, **body: Any) -> dict[str, Any]:
    body = {"prompt": text, "max_tokens": 24, "temperature": 0, "ignore_eos": True} | body
    return {"custom_id": name, "method": "POST", "url": "/v1/completions", "body": body}


def text_of(record: dict[str, Any]) -> list[str]:
    choices = record["response"]["body"]["choices"]
    return [choice["text"] if "text" in choice else choice["message"]["content"] for choice in choices]


def test_a_run_leaves_responses_counters_manifest_and_reports(run_lines: RunLines, tmp_path: Path) -> None:
    outcome, records = run_lines([chat("a", temperature=0), prompt("b"), prompt("c", n=2, seed=3, temperature=0.9)])
    assert outcome.status is ExitStatus.DONE
    assert [record["custom_id"] for record in records] == ["a", "b", "c"]
    assert records[1]["response"]["body"]["metrics"]["speculative_decoding"]["num_spec_steps"] > 0
    assert records[2]["response"]["body"]["metrics"] is None
    assert len(records[2]["response"]["body"]["choices"]) == 2
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["status"] == "finished"
    assert manifest["parameters"]["num_speculative_tokens"] == 3
    assert (manifest["resolved"]["dtype"], manifest["resolved"]["device"]) == ("float32", "cpu")
    assert manifest["resolved"]["sampling"]["temperature"] == 1.0
    assert manifest["resolved"]["sampling_from"]["temperature"] == "openai"
    assert manifest["engine"]["max_model_len"] == 2048
    assert len(manifest["dataset"]["sha256"]) == 64
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["run"]["resolved"] == manifest["resolved"]
    assert report["reconciliation"]["num_differences"] == 0
    rows = {(row["quantity"], row["position"]): row for row in report["reconciliation"]["rows"]}
    assert rows["num_spec_steps", None]["unreported"]["n > 1"] > 0
    assert "vllm:spec_decode_num_drafts_total" in (tmp_path / "run" / "metrics.prom").read_text()
    assert "# " in (tmp_path / "run" / "report.md").read_text()


def test_text_does_not_depend_on_drafter_k_batch_or_level(run_lines: RunLines) -> None:
    rows = [prompt(f"{i}", temperature=0.8 * (i % 2), seed=i, text=f"{QUESTION} {i}, {i + 1},") for i in range(6)]
    _, plain = run_lines(rows, speculative=SpeculativeConfig.from_mapping({"method": "none"}), level=Level.NONE)
    for k in (1, 3, 8):
        config = SpeculativeConfig(num_speculative_tokens=k)
        for settings in ({"max_num_seqs": 1}, {"max_num_seqs": 32}, {"max_num_batched_tokens": 40}):
            _, records = run_lines(rows, speculative=config, overwrite=True, **settings)
            assert [text_of(record) for record in records] == [text_of(record) for record in plain]


def test_the_same_run_twice_gives_the_same_texts_and_metrics(run_lines: RunLines) -> None:
    rows = [prompt(f"{i}", temperature=0.7) for i in range(4)]
    _, first = run_lines(rows)
    _, second = run_lines(rows, overwrite=True)
    assert [(text_of(r), r["response"]["body"]["metrics"]) for r in first] == [
        (text_of(r), r["response"]["body"]["metrics"]) for r in second
    ]
    assert len({tuple(text_of(record)) for record in first}) > 1, "rows without a seed must not share one"


def test_bad_lines_become_records_and_the_exit_status_says_so(run_lines: RunLines) -> None:
    long = chat("long", content="word " * 4000)
    rows = ["{not json", chat("ok"), chat("ok"), long, prompt("hot", temperature=9), prompt("best", best_of=3)]
    outcome, records = run_lines([*rows, {"prompt": "bare"}])
    assert outcome.status is ExitStatus.FAILURES
    codes = [record["response"]["status_code"] for record in records]
    assert codes == [400, 200, 400, 400, 400, 400, 200]
    for number, record in enumerate(records, start=1):
        if record["response"]["status_code"] != 200:
            assert record["error"]["message"].startswith(f"input.jsonl line {number}: ")
    assert records[3]["error"]["code"] == "context_length_exceeded"
    assert outcome.report is not None
    assert outcome.report["requests"]["num_failed"] == 5


def test_turns_are_played_one_after_another(run_lines: RunLines) -> None:
    row = {"question_id": 7, "category": "chat", "turns": ["Say hello.", "Say it again."], "max_tokens": 12}
    outcome, (record,) = run_lines([row])
    body = record["response"]["body"]
    assert (record["custom_id"], record["category"]) == ("7", "chat")
    assert len(body["choices"]) == 2
    assert body["metrics"]["batchspec"]["num_turns"] == 2
    assert outcome.status is ExitStatus.DONE


def test_level_none_writes_no_metrics_but_reports_positions(run_lines: RunLines) -> None:
    outcome, (record,) = run_lines([prompt("a")], level=Level.NONE)
    assert record["response"]["body"]["metrics"] is None
    assert outcome.report is not None
    assert outcome.report["reconciliation"] is None
    assert outcome.report["acceptance"]["source"] == "counters"
    assert len(outcome.report["acceptance"]["per_position"]) == 3


def test_a_level_without_speculation_is_refused(run_lines: RunLines, tmp_path: Path) -> None:
    none = SpeculativeConfig.from_mapping({"method": "none"})
    with pytest.raises(UsageError, match="--method none"):
        run_lines([prompt("a")], speculative=none)
    assert not (tmp_path / "run").exists()


def test_parquet_output_holds_the_same_records(run_lines: RunLines, tmp_path: Path) -> None:
    _, records = run_lines([prompt("a"), "oops"], output=tmp_path / "out.parquet")
    assert list(read_responses(tmp_path / "out.parquet")) == records


def test_order_completion_writes_every_record_once(run_lines: RunLines) -> None:
    rows = [prompt(f"{i}", max_tokens=40 if i == 0 else 2) for i in range(12)]
    _, records = run_lines(rows, in_order=False, max_num_seqs=4)
    assert sorted(record["custom_id"] for record in records) == sorted(f"{i}" for i in range(12))
    assert records[0]["custom_id"] != "0"


@pytest.mark.parametrize("account", ["recorder", "counters", "mask"])
def test_a_fault_in_either_account_shows(run_lines: RunLines, monkeypatch: pytest.MonkeyPatch, account: str) -> None:
    """Each account is broken by itself; the reconciliation must not agree any more, and the exit status says so."""
    record, observe = AcceptanceRecorder.record, Counters.observe_drafts
    if account == "recorder":
        monkeypatch.setattr(AcceptanceRecorder, "record", lambda self, **kw: record(self, **(kw | {"num_accepted": 0})))
    elif account == "counters":
        monkeypatch.setattr(
            Counters, "observe_drafts", lambda self, **kw: observe(self, **(kw | {"accepted": kw["accepted"][:, ::-1]}))
        )
    else:
        mask = verify.acceptance_mask
        monkeypatch.setattr(verify, "acceptance_mask", lambda *args, **kw: np.zeros_like(mask(*args, **kw)))
    outcome, _ = run_lines([prompt(f"{i}") for i in range(3)])
    assert outcome.status is ExitStatus.FAILURES
    assert outcome.report is not None
    assert outcome.report["reconciliation"]["num_differences"] > 0
    assert any("do not trust" in sentence for sentence in outcome.sentences)


def test_defaults_apply_to_rows_that_do_not_say(run_lines: RunLines) -> None:
    defaults = RowDefaults(max_tokens=5, temperature=0.0, ignore_eos=True)
    _, (record, other) = run_lines([{"prompt": QUESTION}, {"prompt": QUESTION, "max_tokens": 7}], defaults=defaults)
    assert record["response"]["body"]["usage"]["completion_tokens"] == 5
    assert other["response"]["body"]["usage"]["completion_tokens"] == 7


def test_a_run_is_not_continued_with_another_draft_model(run_lines: RunLines, tmp_path: Path) -> None:
    draft = tmp_path / "draft"
    shutil.copytree(EMBEDDED_DRAFT, draft)
    drafts = SpeculativeConfig(method="draft_model", model=str(draft))
    assert run_lines([prompt("a", max_tokens=4)], speculative=drafts)[0].status is ExitStatus.DONE
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert len(manifest["model"]["draft_fingerprint"]) == 64
    with (draft / "config.json").open("a") as file:
        file.write(" ")
    with pytest.raises(UsageError, match="the model's draft_fingerprint was"):
        run_lines([prompt("a", max_tokens=4)], speculative=drafts)
    shutil.rmtree(draft)
    with pytest.raises(ModelError, match=f"^--draft-model {draft}: "):
        run_lines([prompt("a", max_tokens=4)], speculative=drafts)


def test_lines_of_text_are_told_how_to_become_requests(run_lines: RunLines) -> None:
    outcome, _ = run_lines(["Once upon a time", "Twice"])
    failed, hint, _ = outcome.sentences
    assert failed.startswith("2 lines have an error record, a non-null error in the responses; the first: ")
    assert "input.jsonl line 1: the line is not JSON" in failed
    assert "batchspec convert --from text" in hint


def test_responses_given_as_requests_are_recognised(run_lines: RunLines) -> None:
    responses = [{"id": "batch_req_0", "custom_id": name, "response": {"status_code": 200}} for name in "ab"]
    outcome, records = run_lines([prompt("c", max_tokens=1), *responses])
    failed, _ = outcome.sentences
    assert "the first: input.jsonl line 2: the row is a response, not a request: read responses with" in failed
    assert [record["error"] is None for record in records].count(True) == 1


def test_an_empty_input_is_told_of_and_no_failure(run_lines: RunLines) -> None:
    outcome, records = run_lines([])
    assert (outcome.status, records) == (ExitStatus.DONE, [])
    assert outcome.sentences[0] == "input.jsonl holds no rows"
