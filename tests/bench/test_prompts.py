"""Prompts of an input as token ids, whatever the input wants done with them."""

from pathlib import Path

import pytest

from batchspec.bench.prompts import read_prompts
from batchspec.errors import RequestError, UsageError
from batchspec.request import ChatPrompt, Prompt
from batchspec.testing import ByteTokenizer

LINES = """{"prompt": "abc", "temperature": 1.5, "n": 2}
not json
{"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]}
{"prompt": [1, 2, 3, 4, 5, 6, 7]}
"""


class WithoutChats(ByteTokenizer):
    def encode(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, ChatPrompt):
            raise RequestError("no template", code="unsupported_model")
        return super().encode(prompt)


def test_prompts_are_read_cut_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(LINES)
    prompts = read_prompts(str(path), column=None, tokenizer=WithoutChats(), most_tokens=5)
    assert prompts.token_ids == [list(b"abc"), list(b"x\ny"), [3, 4, 5, 6, 7]]
    assert (prompts.num_left_out, prompts.num_cut, prompts.num_plain) == (1, 1, 1)


def test_chats_are_rendered_where_they_can_be(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(LINES)
    prompts = read_prompts(str(path), column=None, tokenizer=ByteTokenizer(), most_tokens=50)
    assert bytes(prompts.token_ids[1]) == b"system: x\nuser: y\n"
    assert prompts.num_plain == 0


def test_an_input_without_a_prompt_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text("not json\n")
    with pytest.raises(UsageError, match="holds no prompt"):
        read_prompts(str(path), column=None, tokenizer=ByteTokenizer(), most_tokens=5)
