"""Prompts cut to fit, prompts scored in small pieces, and what is said when nothing can follow."""

from typing import Any

import pytest
import torch

from batchspec.acceptance import Level
from batchspec.drafting import NoDrafter
from batchspec.testing import TableModel
from tests.core.runs import body_of, reconciliation_of, sample_of, serve

from .serving import ContextModel, engine_of, parsed, serve_one


def asked(**fields: Any) -> dict[str, Any]:
    return {"prompt": "abcdefgh", "max_tokens": 4, "temperature": 0} | fields


@pytest.mark.parametrize(
    ("truncate", "num_kept"),
    [(3, 3), (8, 8), (20, 20), (-1, 12)],
)
def test_truncation_keeps_the_end_and_leaves_room_for_the_output(truncate: int, num_kept: int) -> None:
    body = asked(prompt=list(range(97, 117)), truncate_prompt_tokens=truncate, return_token_ids=True, max_tokens=4)
    choice = body_of(serve_one(engine_of(max_model_len=16 if truncate < 0 else 40), parsed(body)))["choices"][0]
    assert choice["prompt_token_ids"] == list(range(97, 117))[-num_kept:]


def test_few_prompt_rows_are_computed_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their logits are vocabulary wide, so that long prompts of many requests must take turns."""
    engine = engine_of(max_num_seqs=8, max_num_batched_tokens=2000, max_model_len=256)
    requests = [parsed(asked(prompt=[97] * 200, prompt_logprobs=0), index=index) for index in range(6)]
    rows: list[int] = []
    forward = engine.runner.forward

    def counted(plan: Any) -> Any:
        rows.append(sum(chunk.num_prompt_rows for chunk in plan.chunks))
        return forward(plan)

    monkeypatch.setattr(engine.runner, "forward", counted)
    records = serve(engine, requests)
    assert max(rows) == 256
    assert sum(rows) == 6 * 199
    assert all(len(body_of(record)["choices"][0]["prompt_logprobs"]) == 200 for record in records)


def test_a_prompt_put_back_while_it_is_scored_is_told_once() -> None:
    requests = [
        parsed({"prompt": "ab", "max_tokens": 50, "temperature": 0, "ignore_eos": True}),
        parsed(asked(prompt="abcd" * 10, prompt_logprobs=1), index=1),
    ]
    wide = engine_of(max_model_len=64)
    tight = engine_of(max_model_len=64, max_num_batched_tokens=2, block_size=1, num_blocks=64)
    _, expected = serve(wide, requests)
    _, found = serve(tight, requests)
    assert tight.scheduler.num_preemptions > 0
    assert body_of(found)["choices"] == body_of(expected)["choices"]


def test_constraints_that_leave_nothing_are_named() -> None:
    body = asked(structured_outputs={"regex": "[xy]+"}, allowed_token_ids=[97])
    record = serve_one(engine_of(), parsed(body))
    assert record["response"]["status_code"] == 400
    assert record["error"]["code"] == "no_token_left"
    assert "structured_outputs and allowed_token_ids together forbid all" in record["error"]["message"]


def test_a_broken_model_is_not_blamed_on_the_constraints() -> None:
    record = serve_one(engine_of(model=TableModel(torch.full((257, 257), torch.nan))), parsed(asked(min_tokens=2)))
    assert (record["response"]["status_code"], record["error"]["code"]) == (500, "invalid_logits")


def test_prompts_whose_scores_are_no_numbers_fail() -> None:
    table = ContextModel().table.clone()[:1].expand(257, 257).clone()
    table[98] = torch.nan
    record = serve_one(engine_of(model=TableModel(table)), parsed(asked(prompt="abc", prompt_logprobs=1)))
    assert record["error"]["code"] == "invalid_logits"
    assert serve_one(engine_of(model=TableModel(table)), parsed(asked(prompt="abc")))["error"] is None


class Forgetful(NoDrafter):
    """Fails behind the commit of the second step."""

    num_steps = 0

    def observe(self, outcomes: Any, *, num_rows: int) -> None:
        self.num_steps += 1
        if self.num_steps == 2:
            raise RuntimeError("out of memory")


def test_a_drafter_that_fails_behind_the_commit_fails_the_batch_and_not_the_run() -> None:
    engine = engine_of(Forgetful(), max_num_seqs=2)
    records = serve(engine, [parsed(asked(max_tokens=n), index=n - 1) for n in (1, 2, 3, 4)])
    errors = [record["error"] and record["error"]["code"] for record in records]
    assert errors.count("engine_error") == 2
    assert errors.count(None) == 2


def test_a_stream_that_is_left_is_an_abort() -> None:
    engine = engine_of(level=Level.SUMMARY)
    stream = engine.stream(parsed(asked(max_tokens=9, ignore_eos=True)))
    next(stream)
    stream.close()
    assert sample_of(engine, "request_success_total", finished_reason="abort") == 1
    assert "aborted" in engine.desk.unreported
    assert reconciliation_of(engine, []).is_exact
