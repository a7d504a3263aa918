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
EDGES = {"n1", "max1", "max2", "max3", "stoptok", "eos", "chat", "multiprompt"}  # the others need more parameters
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
    requests = [line for line in lines if isinstance(line, Request) and (group == "greedy" or line.custom_id in EDGES)]
    assert len(requests) == (24 if group == "greedy" else len(EDGES))
    expected = {}
    for text in (DATA / folder / f"{group}.responses.jsonl").read_text().splitlines():
        record = json.loads(text)
        expected[record["custom_id"]] = record["response"]["body"]
    for record in build_engine(gemma, settings).run(requests):
        body, wanted = record["response"]["body"], expected[record["custom_id"]]
        assert choices_of(body) == choices_of(wanted), record["custom_id"]
        assert metrics_of(body) == metrics_of(wanted), record["custom_id"]
        assert body["usage"]["completion_tokens"] == wanted["usage"]["completion_tokens"]
        assert body.get("prompt_token_ids") == wanted.get("prompt_token_ids")
