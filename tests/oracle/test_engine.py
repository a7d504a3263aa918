"""The engine with a real model against a real server's responses, token by token and count by count.

Needs the model the captures were made with, Gemma 3 270M as a Hugging Face directory, named by the environment variable
BATCHSPEC_GEMMA; without it these tests are skipped. tests/data/oracle/README.md says where the captures come from.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.drafting import SpeculativeConfig
from batchspec.files import Columns, RowDefaults, open_source, read_requests
from batchspec.files.rows import parse_row
from batchspec.launch import EngineSettings, build_engine
from batchspec.model.load import LoadedModel, load_model
from batchspec.request import Request

DATA = Path(__file__).parent.parent / "data" / "oracle"
MODEL = os.environ.get("BATCHSPEC_GEMMA", "")
DRAFTS = {
    "ngram_k1_n1-1": SpeculativeConfig(num_speculative_tokens=1, prompt_lookup_min=1, prompt_lookup_max=1),
    "ngram_k3_n1-3": SpeculativeConfig(num_speculative_tokens=3, prompt_lookup_min=1, prompt_lookup_max=3),
    "ngram_k5_n2-4": SpeculativeConfig(num_speculative_tokens=5, prompt_lookup_min=2, prompt_lookup_max=4),
    "none": SpeculativeConfig.from_mapping({"method": "none"}),
}
NOISE = "n2"  # the server's sampled text is corrupt in this build
NULL_BY_DEFECT = "stopstr"  # the server loses the metrics of a request that a stop text ended
GROUPS = [(folder, group) for folder in DRAFTS for group in ("greedy", "edges") if (folder, group) != ("none", "edges")]
CHAT_TEMPLATE = "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% endfor %}"

pytestmark = pytest.mark.skipif(not MODEL, reason="BATCHSPEC_GEMMA names no model directory")


@pytest.fixture(scope="module")
def gemma() -> LoadedModel:
    loaded = load_model(MODEL, device="cpu", dtype="float32")
    loaded.tokenizer._tokenizer.chat_template = CHAT_TEMPLATE
    return loaded


def choices_of(body: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return what each choice must have in common with the server's."""
    return [
        (
            choice["text"] if "text" in choice else choice["message"]["content"],
            choice["token_ids"],
            choice["finish_reason"],
            choice["stop_reason"],
            choice.get("prompt_token_ids"),
        )
        for choice in body["choices"]
    ]


def metrics_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the acceptance metrics; the server writes null where there was no step, we write empty lists."""
    metrics = (body["metrics"] or {}).get("speculative_decoding")
    return metrics and {key: [] if value is None else value for key, value in metrics.items()}


@pytest.mark.parametrize(("folder", "group"), GROUPS)
def test_the_engine_gives_what_the_server_gave(gemma: LoadedModel, folder: str, group: str) -> None:
    level = Level.NONE if folder == "none" else Level.DETAILED
    settings = EngineSettings(max_num_seqs=8, max_model_len=1024, speculative=DRAFTS[folder], level=level)
    source = open_source(DATA / folder / f"{group}.requests.jsonl")
    lines = read_requests(source, columns=Columns(), defaults=RowDefaults())
    requests = [line for line in lines if isinstance(line, Request)]
    assert len(requests) == (24 if group == "greedy" else 15)
    expected = {}
    for text in (DATA / folder / f"{group}.responses.jsonl").read_text().splitlines():
        record = json.loads(text)
        expected[record["custom_id"]] = record["response"]["body"]
    for record in build_engine(gemma, settings).run(requests):
        name, body = record["custom_id"], record["response"]["body"]
        wanted = expected[name]
        assert body["usage"].items() >= {key: wanted["usage"][key] for key in ("prompt_tokens", "total_tokens")}.items()
        assert len(body["choices"]) == len(wanted["choices"])
        if name != NOISE:
            assert choices_of(body) == choices_of(wanted), name
            assert body.get("prompt_token_ids") == wanted.get("prompt_token_ids")
            check_logprobs(body["choices"][0]["logprobs"], wanted["choices"][0]["logprobs"])
        if name == NULL_BY_DEFECT:
            assert wanted["metrics"]["speculative_decoding"] is None
            assert (metrics_of(body) or {})["num_spec_steps"] > 0
        else:
            assert metrics_of(body) == metrics_of(wanted), name


@pytest.mark.parametrize("folder", [folder for folder in DRAFTS if folder != "none"])
@pytest.mark.parametrize("name", ["no_usage", "usage", "chat_usage"])
def test_the_engine_streams_what_the_server_streamed(gemma: LoadedModel, folder: str, name: str) -> None:
    wanted = json.loads((DATA / folder / "stream.json").read_text())[name][:-1]  # behind the last chunk stands [DONE]
    prompt_ids = json.loads((DATA / folder / "stream.json").read_text())["usage"][0]["choices"][0]["prompt_token_ids"]
    is_chat = name == "chat_usage"
    asked: dict[str, Any] = {"max_tokens": 24, "temperature": 0, "stream": True}
    if is_chat:
        text = gemma.tokenizer.decode(prompt_ids[1:], prompt_ids=[])
        asked |= {"messages": [{"role": "user", "content": text}]}
    else:
        asked |= {"prompt": prompt_ids, "return_token_ids": True}
    if name != "no_usage":
        asked |= {"stream_options": {"include_usage": True}}
    row = {"custom_id": name, "method": "POST", "url": f"/v1/{'chat/' if is_chat else ''}completions", "body": asked}
    request = parse_row(row, index=0, line=1, columns=Columns(), defaults=RowDefaults())
    settings = EngineSettings(max_num_seqs=8, max_model_len=1024, speculative=DRAFTS[folder], level=Level.DETAILED)
    chunks = list(build_engine(gemma, settings).stream(request))
    assert [outline(chunk) for chunk in chunks] == [outline(chunk) for chunk in wanted]


def outline(chunk: dict[str, Any]) -> dict[str, Any]:
    """Return what a chunk must have in common with the server's: its tokens, and where usage and metrics stand."""
    usage, metrics = chunk.get("usage"), chunk.get("metrics")
    return {
        "object": chunk["object"],
        "choices": [
            (choice.get("text"), choice.get("delta"), choice["finish_reason"], choice.get("token_ids"))
            for choice in chunk["choices"]
        ],
        "usage": usage and {key: usage[key] for key in ("prompt_tokens", "total_tokens", "completion_tokens")},
        "has metrics": "metrics" in chunk,
        "metrics": metrics and metrics["speculative_decoding"],
    }


def check_logprobs(found: dict[str, Any] | None, wanted: dict[str, Any] | None) -> None:
    """Compare the log probabilities of a completion: the same tokens in the same places, numbers to 1e-4."""
    if wanted is None:
        assert found is None
        return
    assert found is not None
    assert found["tokens"] == wanted["tokens"]
    assert found["text_offset"] == wanted["text_offset"]
    assert found["token_logprobs"] == pytest.approx(wanted["token_logprobs"], abs=1e-4)
    for ours, theirs in zip(found["top_logprobs"], wanted["top_logprobs"], strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)
