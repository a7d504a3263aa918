"""Log probabilities in the shapes of OpenAI and vLLM."""

import json
import math
from pathlib import Path

import pytest
from openai.types.completion_choice import Logprobs

from batchspec.logprobs import chat_logprobs, completion_logprobs, prompt_logprobs_document, token_text
from batchspec.sequence import TokenLogprobs

from .making import entry, token_bytes

CAPTURE = Path(__file__).parent.parent / "data" / "oracle" / "ngram_k3_n1-3" / "edges.responses.jsonl"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        (" é漢👩".encode(), " é漢👩"),
        (b"\xe2\x82", r"bytes:\xe2\x82"),
        (b" \xe2", r"bytes:\x20\xe2"),
        (b"\xff", r"bytes:\xff"),
    ],
)
def test_half_a_character_is_written_in_bytes(content: bytes, text: str) -> None:
    assert token_text(content) == text


def test_chat() -> None:
    document = chat_logprobs([entry(ord("a"), -0.5, a=-0.5, b=-1.5), entry(0xE2, -math.inf)], token_bytes=token_bytes)
    assert document == {
        "content": [
            {
                "token": "a",
                "bytes": [97],
                "logprob": -0.5,
                "top_logprobs": [
                    {"token": "a", "bytes": [97], "logprob": -0.5},
                    {"token": "b", "bytes": [98], "logprob": -1.5},
                ],
            },
            {"token": r"bytes:\xe2", "bytes": [0xE2], "logprob": -9999.0, "top_logprobs": []},
        ],
        "refusal": None,
    }


def test_completion_with_an_echoed_prompt() -> None:
    entries = [None, entry(ord("b"), -3.0, rank=3, a=-0.5, c=-1.5), entry(ord("c"), -1e30, rank=9)]
    document = completion_logprobs(entries, offsets=[0, 1, 2], token_ids=list(b"abc"), token_bytes=token_bytes)
    assert document == {
        "text_offset": [0, 1, 2],
        "token_logprobs": [0.0, -3.0, -9999.0],
        "tokens": ["a", "b", "c"],
        "top_logprobs": [{}, {"a": -0.5, "c": -1.5, "b": -3.0}, {"c": -9999.0}],
    }
    Logprobs.model_validate(document, strict=True)


def test_of_two_tokens_with_the_same_text_the_likelier_is_told() -> None:
    one = TokenLogprobs(token_id=7, logprob=-4.0, rank=3, top=((5, -1.0), (6, -2.0)))
    document = completion_logprobs([one], offsets=[0], token_ids=[7], token_bytes=lambda token: b"same")
    assert document["top_logprobs"] == [{"same": -1.0}]


def test_completion_has_the_shape_that_a_server_writes() -> None:
    bodies = [json.loads(line) for line in CAPTURE.read_text().splitlines()]
    choice = next(body for body in bodies if body["custom_id"] == "logprobs")["response"]["body"]["choices"][0]
    theirs = choice["logprobs"]
    texts = sorted({text for likely in theirs["top_logprobs"] for text in likely} | set(theirs["tokens"]))
    entries = [
        TokenLogprobs(
            token_id=texts.index(text),
            logprob=logprob,
            rank=1,
            top=tuple((texts.index(other), value) for other, value in likely.items()),
        )
        for text, logprob, likely in zip(
            theirs["tokens"], theirs["token_logprobs"], theirs["top_logprobs"], strict=True
        )
    ]
    ours = completion_logprobs(
        entries,
        offsets=theirs["text_offset"],
        token_ids=[one.token_id for one in entries],
        token_bytes=lambda token: texts[token].encode(),
    )
    assert ours == theirs


def test_prompt() -> None:
    entries = [entry(ord("b"), -1.5, rank=2, a=-0.5, b=-1.5, c=-1.5), entry(ord("z"), -math.inf, rank=200)]
    assert prompt_logprobs_document(entries, token_bytes=token_bytes) == [
        None,
        {
            "97": {"logprob": -0.5, "rank": 1, "decoded_token": "a"},
            "98": {"logprob": -1.5, "rank": 2, "decoded_token": "b"},
            "99": {"logprob": -1.5, "rank": 2, "decoded_token": "c"},
        },
        {"122": {"logprob": -9999.0, "rank": 200, "decoded_token": "z"}},
    ]
