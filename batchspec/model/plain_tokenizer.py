"""A tokenizer that is one ``tokenizer.json``, read without importing transformers, which takes a second.

It offers what we use of a transformers tokenizer. Chats that need more than their roles and texts are rendered by
transformers' own, which is then imported.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from batchspec.model.template import GENERATION_EXTENSIONS, template_variables

__all__ = ["NotPlain", "PlainTokenizer"]

_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
_SAYS_NOTHING = {
    "backend",
    "clean_up_tokenization_spaces",  # never asked for
    "extra_special_tokens",
    "is_local",
    "local_files_only",
    "model_max_length",
    "padding_side",
    "tokenizer_class",
}
_CLASSES = {"PreTrainedTokenizerFast", "TokenizersBackend"}
_MOST_TOKENS = 100_000  # beyond, transformers may mend a pattern
_SIMPLE_MESSAGE = {"role", "content"}
_SIMPLE_VARIABLES = {"messages", "tools", "add_generation_prompt"}


class NotPlain(Exception):
    """The tokenizer's settings ask for more than its tokenizer.json."""


@dataclass(frozen=True, kw_only=True)
class _Ids:
    """Token ids under the name that transformers gives them."""

    input_ids: list[int]


class PlainTokenizer:
    """The tokenizer of a directory.

    Args:
        directory: with tokenizer.json, tokenizer_config.json and perhaps chat_template.jinja.

    Raises:
        NotPlain: there is more to it.
    """

    def __init__(self, directory: Path):
        settings = json.loads((directory / "tokenizer_config.json").read_bytes())
        self._directory = directory
        self.backend_tokenizer = _backend(directory / "tokenizer.json")
        self.special_tokens_map = {name: settings[name] for name in _NAMED if settings.get(name) is not None}
        self.model_max_length = settings.get("model_max_length")
        path = directory / "chat_template.jinja"
        self.chat_template = path.read_text(encoding="utf-8") if path.is_file() else None
        self._check(settings)
        self.backend_tokenizer.no_truncation()
        self.backend_tokenizer.no_padding()

    def _check(self, settings: Mapping[str, Any]) -> None:
        strange = set(settings) - _SAYS_NOTHING - set(_NAMED)
        extra = settings.get("extra_special_tokens") or []
        named = [*self.special_tokens_map.values(), *extra]
        known = {token.content for token in self.added_tokens_decoder.values()}
        if (
            strange
            or settings.get("tokenizer_class") not in _CLASSES
            or not isinstance(extra, list)
            or any(name not in known for name in named)
            or len(self) > _MOST_TOKENS
            or (self._directory / "additional_chat_templates").exists()
        ):
            raise NotPlain

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))

    def __call__(self, text: str, *, add_special_tokens: bool) -> _Ids:
        """Return the token ids of a text."""
        return _Ids(input_ids=self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens).ids)

    @property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """Added tokens by id."""
        added: dict[int, AddedToken] = self.backend_tokenizer.get_added_tokens_decoder()
        return added

    @property
    def eos_token_id(self) -> int | None:
        """The id of the token that ends a text."""
        token = self.special_tokens_map.get("eos_token")
        return None if token is None else self.backend_tokenizer.token_to_id(token)

    def convert_ids_to_tokens(self, token_id: int) -> str | None:
        """Return a token as the vocabulary writes it."""
        token: str | None = self.backend_tokenizer.id_to_token(token_id)
        return token

    def decode(
        self, token_ids: list[int], *, skip_special_tokens: bool = False, clean_up_tokenization_spaces: bool = False
    ) -> str:
        """Return the text of tokens; spaces are never cleaned up."""
        assert not clean_up_tokenization_spaces
        text: str = self.backend_tokenizer.decode(token_ids, skip_special_tokens=skip_special_tokens)
        return text

    def get_chat_template(self, *, tools: Any = None) -> str:
        """Return the template, which is the same with and without tools."""
        del tools
        if self.chat_template is None:
            raise ValueError("there is no chat template")
        return self.chat_template

    def apply_chat_template(self, messages: list[dict[str, Any]], **options: Any) -> str:
        """Return a chat as text; options as in transformers."""
        template = self.get_chat_template()
        variables = template_variables(template) - set(self.special_tokens_map)
        is_simple = (
            bool(messages)
            and variables <= _SIMPLE_VARIABLES
            and not any(options.get(name) for name in ("tools", "continue_final_message"))
            and set(options) <= {"tools", "add_generation_prompt", "continue_final_message", "tokenize"}
            and all(_is_simple(message) for message in messages)
        )
        if not is_simple:
            text: str = self._whole.apply_chat_template(messages, **options)
            return text
        return _compiled(template).render(
            messages=messages,
            tools=None,
            add_generation_prompt=options.get("add_generation_prompt", False),
            **self.special_tokens_map,
        )

    @cached_property
    def _whole(self) -> Any:
        """The same tokenizer in transformers."""
        from transformers import PreTrainedTokenizerFast

        return PreTrainedTokenizerFast.from_pretrained(self._directory, local_files_only=True)


def _backend(path: Path) -> Backend:
    try:
        return Backend.from_file(str(path))
    except Exception as error:  # that is what tokenizers raises
        raise NotPlain from error


def _is_simple(message: Mapping[str, Any]) -> bool:
    return set(message) == _SIMPLE_MESSAGE and all(type(value) is str for value in message.values())


@lru_cache
def _compiled(source: str) -> Template:
    """Return a chat template, compiled in the sandbox that transformers' documentation of chat templates describes."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=list(GENERATION_EXTENSIONS)
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = _now
    return environment.from_string(source)


def _to_json(value: Any, **options: Any) -> str:
    """Return JSON without the escapes for HTML of Jinja's own filter."""
    return json.dumps(value, **({"ensure_ascii": False} | options))


def _now(layout: str) -> str:
    return datetime.now().strftime(layout)


def _raise(message: str) -> None:
    raise TemplateError(message)
