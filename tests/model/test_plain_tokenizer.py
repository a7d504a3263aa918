"""A tokenizer read without transformers does what transformers' does, or is left to it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from batchspec.errors import RequestError
from batchspec.model.locate import EMBEDDED_TARGET, locate
from batchspec.model.plain_tokenizer import NotPlain, PlainTokenizer
from batchspec.model.tokenizer import Tokenizer
from batchspec.model.tokenizer_files import read_tokenizer
from batchspec.request import ChatPrompt

from .saved import byte_tokenizer

TEXTS = ["", " ", "Tell a story.", "naïve café — ☃ 🦉", "<|user|>hi<|end|>", "a\nb\t c  d", "<|end|", "0123456789" * 9]
CHATS: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": "hi"}],
    [{"role": "system", "content": "be <b>brief</b>"}, {"role": "user", "content": "ho\n"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "☃"}],
]
TEMPLATES = [
    "{{ bos_token }}{% for m in messages %}\n  {% if m.role == 'user' %}\n[u]{{ m.content | trim }}{% endif %}\n"
    "{% endfor %}",
    "{% for m in messages %}{{ m | tojson }}{% if loop.last %}{% break %}{% endif %}{% endfor %}{{ eos_token }}",
    "{% for m in messages %}{% generation %}{{ m['content'] }}{% endgeneration %}{% endfor %}"
    "{% if add_generation_prompt %}[a]{% endif %}",
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
    "{{ documents }}{{ messages | length }}",
    "{{ strftime_now('%Y') }}{{ messages | length }}",
    "{% if tools %}{{ tools | tojson }}{% endif %}{{ messages | length }}",
]


@pytest.fixture(scope="module")
def pair() -> tuple[PlainTokenizer, Any]:
    return PlainTokenizer(EMBEDDED_TARGET), AutoTokenizer.from_pretrained(EMBEDDED_TARGET)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("special", [True, False])
def test_the_same_ids_and_texts(pair: tuple[PlainTokenizer, Any], text: str, special: bool) -> None:
    plain, whole = pair
    ids = plain(text, add_special_tokens=special).input_ids
    assert ids == whole(text, add_special_tokens=special).input_ids
    options = {"skip_special_tokens": special, "clean_up_tokenization_spaces": False}
    assert plain.decode(ids, **options) == whole.decode(ids, **options)


def test_the_same_vocabulary(pair: tuple[PlainTokenizer, Any]) -> None:
    plain, whole = pair
    assert len(plain) == len(whole)
    assert plain.eos_token_id == whole.eos_token_id
    assert plain.special_tokens_map == whole.special_tokens_map
    assert {i: str(token) for i, token in plain.added_tokens_decoder.items()} == {
        i: str(token) for i, token in whole.added_tokens_decoder.items()
    }
    tokens = [plain.convert_ids_to_tokens(i) for i in range(len(plain))]
    assert tokens == [whole.convert_ids_to_tokens(i) for i in range(len(plain))]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize("prompted", [True, False])
def test_the_same_chats(tmp_path: Path, template: str, chat: list[dict[str, Any]], prompted: bool) -> None:
    byte_tokenizer(chat_template=template).save_pretrained(tmp_path)
    plain, whole = PlainTokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    options = {"add_generation_prompt": prompted, "tokenize": False}
    assert plain.apply_chat_template(chat, **options) == whole.apply_chat_template(chat, **options)


def test_tools_and_open_endings_are_rendered_by_transformers(tmp_path: Path) -> None:
    template = "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ m.content }}.{% endfor %}"
    byte_tokenizer(chat_template=template).save_pretrained(tmp_path)
    tokenizer = Tokenizer(read_tokenizer(locate_tokenizer(tmp_path)))
    tool = {"type": "function", "function": {"name": "look", "parameters": {}}}
    message = {"role": "user", "content": "hi"}
    ids = tokenizer.encode(ChatPrompt(messages=(message,), tools=(tool,)))
    assert tokenizer.decode(ids, prompt_ids=[]).startswith('[{"type": "function"')
    ids = tokenizer.encode(ChatPrompt(messages=(message,), add_generation_prompt=False, continue_final_message=True))
    assert tokenizer.decode(ids, prompt_ids=[]) == "hi"


def test_a_template_that_refuses() -> None:
    tokenizer = Tokenizer(PlainTokenizer(EMBEDDED_TARGET))
    with pytest.raises(RequestError, match=r"refuses these messages \(Roles are system, user and assistant\.\)"):
        tokenizer.encode(ChatPrompt(messages=({"role": "pirate", "content": "arr"},)))


def locate_tokenizer(directory: Path) -> Any:
    """Return the source of a directory that needs a config.json to be one."""
    (directory / "config.json").write_text("{}")
    return locate(directory)


@pytest.mark.parametrize(
    "changes",
    [
        {"add_bos_token": True},
        {"tokenizer_class": "LlamaTokenizer"},
        {"added_tokens_decoder": {}},
        {"chat_template": "{{ messages }}"},
        {"extra_special_tokens": ["<new>"]},
        {"pad_token": "<new>"},
        {"split_special_tokens": True},
    ],
)
def test_what_is_left_to_transformers(tmp_path: Path, changes: dict[str, Any]) -> None:
    byte_tokenizer().save_pretrained(tmp_path)
    PlainTokenizer(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(NotPlain):
        PlainTokenizer(tmp_path)


def test_the_embedded_model_is_run_without_importing_transformers() -> None:
    script = (
        "import sys; from batchspec import Engine\n"
        "engine = Engine(device='cpu')\n"
        "body = {'messages': [{'role': 'user', 'content': 'hi'}], 'max_tokens': 2}\n"
        "print(len(list(engine.run([{'custom_id': 'a', 'body': body}]))), 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "1 False\n"
