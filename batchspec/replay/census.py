"""What is replayed: requests, categories and tokens; and which rows of the logs are left out, by cause."""

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batchspec.replay.recorded import Cause, LeftOut, Recorded

__all__ = ["Census"]

_MOST_NAMED = 8


class Census:
    """Counts outputs as they come by; memory grows with the number of requests."""

    def __init__(self) -> None:
        self.num_sequences = 0
        self.num_retokenised = 0
        self.num_with_grammar = 0
        self._num_prompt_tokens = 0
        self._num_output_tokens = 0
        self._num_later_tokens = array("q")  # by request, output tokens but the first of each output
        self._categories = array("q")  # by request, its category's number
        self._numbers: dict[str | None, int] = {}
        self._left_out: dict[Cause, tuple[int, list[str]]] = {}

    def pass_on(self, found: Iterable[Recorded | LeftOut], *, path: str) -> Iterator[Recorded]:
        """Yield the outputs and count everything.

        Args:
            found: what a reader yields.
            path: of the log, to name rows that have no id.
        """
        for one in found:
            if isinstance(one, Recorded):
                self._add(one)
                yield one
            else:
                number, named = self._left_out.get(one.cause, (0, []))
                if number < _MOST_NAMED:
                    named.append(one.custom_id or f"{path} line {one.line}")
                self._left_out[one.cause] = number + 1, named

    def _add(self, one: Recorded) -> None:
        self.num_sequences += 1
        self._num_prompt_tokens += len(one.prompt)
        self._num_output_tokens += len(one.output)
        if one.row == len(self._categories):
            self._categories.append(self._numbers.setdefault(one.category, len(self._numbers)))
            self._num_later_tokens.append(0)
            self.num_retokenised += one.is_retokenised
            self.num_with_grammar += one.has_grammar
        self._num_later_tokens[one.row] += len(one.output) - 1

    @property
    def num_requests(self) -> int:
        """Responses that are replayed."""
        return len(self._categories)

    @property
    def num_later_tokens(self) -> NDArray[np.int64]:
        """Output tokens but the first of each output, int64 (requests,): those that decode steps have to bring."""
        return np.array(self._num_later_tokens, dtype=np.int64)

    def members(self) -> dict[str, NDArray[np.bool_]]:
        """Return which requests belong to a category, bool (requests,), by name; nothing where all belong to one."""
        names = sorted(name for name in self._numbers if name is not None)
        if len(self._numbers) < 2:
            return {}
        numbers = np.array(self._categories, dtype=np.int64)
        return {name: numbers == self._numbers[name] for name in names}

    def left_out_in_words(self) -> str:
        """Return the causes with their numbers of rows and what helps, for a sentence."""
        return "; ".join(f"{cause}: {number} rows; {_REMEDIES[cause]}" for cause, (number, _) in self._left_out.items())

    def document(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        left_out = {
            str(cause): {"num_rows": number, "named": named, "remedy": _REMEDIES[cause]}
            for cause, (number, named) in self._left_out.items()
        }
        return {
            "num_requests": self.num_requests,
            "num_sequences": self.num_sequences,
            "num_prompt_tokens": self._num_prompt_tokens,
            "num_output_tokens": self._num_output_tokens,
            "num_retokenised_requests": self.num_retokenised,
            "num_requests_with_grammar": self.num_with_grammar,
            "num_rows_left_out": sum(number for number, _ in self._left_out.values()),
            "left_out": left_out,
        }


_REMEDIES = {
    Cause.ERROR: "the request was not served",
    Cause.MALFORMED: "give responses, as batch lines or as plain bodies, one a line",
    Cause.NO_TOKEN_IDS: "run with --level detailed, ask for return_token_ids, or give --tokenizer and --prompts",
    Cause.NO_PROMPT: "give the requests with --prompts",
    Cause.CHAT: "only its template knows the prompt's tokens: ask for return_token_ids",
    Cause.TURNS: "run with --level detailed, which records the prompt of every turn",
    Cause.EMPTY: "there is no step to replay",
    Cause.ECHO: "the text begins with the prompt: ask for return_token_ids",
}
