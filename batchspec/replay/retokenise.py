"""Token ids of texts, for logs without ids; a model may have spelt a text otherwise: what comes of it is marked."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from batchspec.errors import UsageError
from batchspec.files import Columns, RowDefaults, open_source, read_requests
from batchspec.replay.choices import Unfit, choices_of
from batchspec.replay.recorded import Cause, Tokens
from batchspec.replay.texts import Text, some
from batchspec.request import ChatPrompt, Request, TextPrompt, TokenPrompt

__all__ = ["Retokeniser", "read_prompts"]


def read_prompts(path: str) -> dict[str, Request]:
    """Return the requests of an input file by id; lines that cannot be served are passed over.

    Raises:
        UsageError: the file cannot be read.
    """
    lines = read_requests(open_source(path), columns=Columns(), defaults=RowDefaults())
    return {line.custom_id: line for line in lines if isinstance(line, Request)}


class Retokeniser:
    """Encodes prompts and outputs anew.

    Args:
        directory: of a tokenizer.json.
        prompts: the requests that the responses answer, by id.

    Raises:
        UsageError: there is no tokenizer.json, or it cannot be read.
    """

    def __init__(self, directory: str, *, prompts: Mapping[str, Request]):
        path = Path(directory) / "tokenizer.json"
        try:
            self._tokenizer: Any = Tokenizer.from_file(str(path))
        except Exception as error:  # that is what tokenizers raises
            reason = " ".join(str(error).split())
            raise UsageError(
                f"--tokenizer {directory} has no tokenizer.json that can be read ({reason}): give the directory of the "
                "model that wrote the texts, with its tokenizer.json"
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._prompts = prompts

    def encode_plain(self, text: str) -> list[int]:
        """Return the token ids of a text, with no special tokens added."""
        return self._ids(text, add_special_tokens=False)

    def texts_of(self, body: Any, *, custom_id: str | None) -> list[Text]:
        """Return every output of a response that holds texts; a stopping token is in no text, and so is missing.

        Raises:
            Unfit: a chat, whose prompt only its template knows; no prompt; an echoed prompt; or no text.
        """
        choices = choices_of(body)
        if "text" not in choices[0]:
            raise Unfit(Cause.CHAT if "message" in choices[0] else Cause.NO_TOKEN_IDS)
        request = self._prompts.get(custom_id or "")
        if request is None or len(choices) % len(request.prompts):
            raise Unfit(Cause.NO_PROMPT)
        if request.echo:
            raise Unfit(Cause.ECHO)
        prompts = [self._prompt(prompt, most=request.truncate_prompt_tokens) for prompt in request.prompts]
        num_samples = len(choices) // len(prompts)
        return some(
            Text(
                prompt=prompts[number // num_samples],
                output=self._output(choice),
                sample_index=number,
                is_retokenised=True,
            )
            for number, choice in enumerate(choices)
        )

    def _prompt(self, prompt: TextPrompt | TokenPrompt | ChatPrompt, *, most: int | None) -> Tokens:
        """Return a prompt's last ``most`` tokens; how many the context left cannot be told from here."""
        if isinstance(prompt, ChatPrompt):
            raise Unfit(Cause.CHAT)
        if most == -1:
            raise Unfit(Cause.NO_PROMPT)
        if isinstance(prompt, TokenPrompt):
            ids = list(prompt.token_ids)
        else:
            ids = self._ids(prompt.text, add_special_tokens=prompt.add_special_tokens)
        return np.array(ids if most is None else ids[-most:], dtype=np.int64)

    def _output(self, choice: Mapping[str, Any]) -> Tokens:
        text = choice.get("text")
        if not isinstance(text, str):
            raise Unfit(Cause.NO_TOKEN_IDS)
        return np.array(self.encode_plain(text), dtype=np.int64)

    def _ids(self, text: str, *, add_special_tokens: bool) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids
        return ids
