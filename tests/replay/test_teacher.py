"""A draft model's one pass over recorded texts gives the drafts that it made in the run, for every draft length."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from batchspec import Engine
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.errors import UsageError
from batchspec.params import SamplingParams
from batchspec.replay.agreement import find_agreement, sampling_from
from batchspec.replay.recorded import Recorded
from batchspec.replay.trace import take_steps
from batchspec.request import Request
from batchspec.teacher import NO_CHOICE, open_teacher
from tests.core.draft_models import draft_model_over
from tests.core.paged import PagedModel
from tests.core.runs import ask, spec_of
from tests.core.workloads import LETTERS

from .live import CONTEXT, assert_same, requests_of, serve_to
from .logs import config_of, recorded_in, replayed, write_log
from .teachers import DRAFT, TARGET, teacher_over


def constrained(number: int) -> list[Request]:
    """Requests with every parameter that has a say in which token is chosen."""
    ways: list[dict[str, Any]] = [
        {"temperature": 0.8, "top_k": 3, "top_p": 0.9, "min_p": 0.05},
        {"repetition_penalty": 1.3, "presence_penalty": 0.4, "frequency_penalty": 0.3},
        {"temperature": 1.1, "logit_bias": ((LETTERS[0], 2.0), (LETTERS[3], -3.5))},
        {"temperature": 0.7, "bad_words": ("ab", "c"), "min_tokens": 9},
        {"temperature": 0.9, "allowed_token_ids": tuple(LETTERS[:4]), "stop_token_ids": (LETTERS[1],), "min_tokens": 5},
        {"temperature": 0.5, "ignore_eos": True},
    ]
    prompts = [[LETTERS[(i + j * j) % 6] for j in range(1 + 11 * i % 150)] for i in range(number)]
    return [ask(prompt, index=i, seed=i, max_tokens=40, **ways[i % len(ways)]) for i, prompt in enumerate(prompts)]


@pytest.mark.parametrize("make_requests", [requests_of, constrained])
@pytest.mark.parametrize(("k", "context_length"), [(1, CONTEXT), (4, CONTEXT), (4, 60)])
def test_every_step_is_that_of_the_live_run(tmp_path: Path, k: int, context_length: int, make_requests: Any) -> None:
    """With pages that tell what stands in them, and a draft model whose context may end before the target's."""
    draft_model = draft_model_over(DRAFT, context_length=context_length, num_blocks=400)
    drafter = DraftModelDrafter(num_spec_tokens=k, draft_model=draft_model)
    served = serve_to(
        tmp_path / "log.jsonl", make_requests(48), drafter, model=PagedModel(TARGET, block_size=4), block_size=4
    )
    accepted = [number for record in served.records for number in spec_of(record)["per_step_accepted"]]
    assert {0, k} <= set(accepted)
    teacher = teacher_over(context_length=context_length)
    traces = []
    for one in recorded_in(served.path, keeps_sampling=True):
        lookups = find_agreement(one, teacher, most=7)
        traces.append((one, take_steps(lookups, num_spec_tokens=k, room=CONTEXT - len(one.prompt) - 1)))
    assert_same(served, traces)


def test_long_texts_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    prompt, text = (np.array([LETTERS[i % 5] for i in range(n)], dtype=np.int64) for n in (90, 120))
    sampling = SamplingParams(temperature=0.9, seed=3, frequency_penalty=0.2)
    whole = teacher_over().choices(prompt, text, sampling=sampling, sample_index=1)
    monkeypatch.setattr("batchspec.teacher._MOST_ROWS", 7)
    monkeypatch.setattr("batchspec.teacher._MOST_TOKENS", 11)
    teacher = teacher_over()
    assert teacher.choices(prompt, text, sampling=sampling, sample_index=1).tolist() == whole.tolist()
    assert teacher._pool.num_free == teacher._pool.num_blocks
    assert whole[0] == NO_CHOICE
    assert (whole[1:] != NO_CHOICE).all()


def test_behind_the_context_there_is_no_choice() -> None:
    tokens = np.array(LETTERS * 4, dtype=np.int64)
    teacher = teacher_over(context_length=12)
    found = teacher.choices(tokens[:9], tokens[9:], sampling=SamplingParams(temperature=0.0), sample_index=0)
    assert (found != NO_CHOICE).tolist() == [False, True, True, True] + [False] * 11
    found = teacher.choices(tokens[:20], tokens[20:], sampling=SamplingParams(temperature=0.0), sample_index=0)
    assert (found == NO_CHOICE).all()


def test_logits_that_choose_nothing_are_no_choice() -> None:
    table = DRAFT.clone()
    table[LETTERS[2]] = torch.nan
    tokens = np.array(LETTERS, dtype=np.int64)
    found = teacher_over(table).choices(
        tokens[:1], tokens[1:], sampling=SamplingParams(temperature=0.0), sample_index=0
    )
    assert found[2] == NO_CHOICE
    assert found[1] != NO_CHOICE


def test_agreement_is_the_length_of_the_run_of_right_choices() -> None:
    class Chooser:
        context_length = 9

        def choices(self, prompt: Any, text: Any, **_: Any) -> Any:
            return np.array([-1, 6, 7, 0, 9, 10])

    numbers = np.arange(5, 11, dtype=np.int64)
    one = Recorded(prompt=numbers[:2], output=numbers[:5], cut=numbers[5:], custom_id="a", index=0)
    drafted, agreed = find_agreement(one, Chooser(), most=4)
    assert drafted.tolist() == [4, 4, 4, 4, 4]
    assert agreed.tolist() == [0, 2, 1, 0, 2]
    Chooser.context_length = 4
    assert find_agreement(one, Chooser(), most=4)[0].tolist() == [3, 2, 1, 0, 0]


DAMAGED: list[tuple[str, Any]] = [
    ("temperature", "hot"),
    ("seed", True),
    ("ignore_eos", 1),
    ("top_k", 1.5),
    ("logit_bias", []),
    ("logit_bias", {"x": 1}),
    ("logit_bias", {"5": "much"}),
    ("bad_words", [3]),
    ("stop_token_ids", ["a"]),
    ("allowed_token_ids", [True]),
]


def test_parameters_come_from_our_records_and_are_greedy_elsewhere() -> None:
    assert sampling_from(None) == SamplingParams(temperature=0.0)
    document = {"temperature": 0.5, "seed": 7, "logit_bias": {"3": 1.5}, "bad_words": ["x"], "stop": ["y"], "n": 4}
    assert sampling_from(document) == SamplingParams(
        temperature=0.5, seed=7, logit_bias=((3, 1.5),), bad_words=("x",), n=1
    )
    for name, value in DAMAGED:
        with pytest.raises(UsageError, match=f'"sampling" of a record says that {name} is '):
            sampling_from({name: value})


def test_another_vocabulary_is_refused() -> None:
    tokens = np.array([1, 2, 257], dtype=np.int64)
    with pytest.raises(UsageError, match="has 257 tokens, but the log holds token 257"):
        teacher_over().choices(tokens[:1], tokens[1:], sampling=SamplingParams(), sample_index=0)


def test_the_embedded_models(tmp_path: Path) -> None:
    """A run of the real engine, and its replay with the settings of the run and of others, all of them exact."""
    rows = [
        {"custom_id": f"{i}", "prompt": f"{i}: one, two, three, one,", "max_tokens": 30, "temperature": 0.8 * (i % 2)}
        for i in range(6)
    ]
    logs = {}
    for k in (2, 5):
        config = {"method": "draft_model", "num_speculative_tokens": k}
        records = list(Engine(level="detailed", device="cpu", speculative_config=config, max_model_len=128).run(rows))
        logs[k] = write_log(tmp_path / f"{k}.jsonl", records), records
    configs = [config_of("draft_model", k) for k in (2, 5)]
    options: dict[str, Any] = {"open_draft_model": open_teacher, "machine": {"max_model_len": 128}}
    for own, (path, _) in logs.items():
        document = replayed(path, configs=configs, **options)
        for cell in document["all"]["cells"]:
            k, pooled = cell["num_spec_tokens"], cell["pooled"]
            _, wanted = logs[k]
            for name in ("num_spec_steps", "num_draft_tokens", "num_decode_steps"):
                assert pooled[name] == sum(spec_of(record)[name] for record in wanted)
            accepted = sum(spec_of(record)["num_accepted_draft_tokens"] for record in wanted)
            assert 0 <= accepted - pooled["num_accepted_draft_tokens"] <= pooled["num_undecided_tokens"]
            assert pooled["num_undecided_tokens"] == 0 or k != own
