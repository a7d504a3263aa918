"""The same requests with one word of every prompt changed, as when a job is run again with other wording.

A word takes the place of the one that stands there: that of the next request in the file that has another. So the
prompts stay in the language, and the kind of text, that the file is written in.
"""

import re
from collections.abc import Sequence as Many
from dataclasses import replace

from batchspec.prompt import ChatPrompt, Prompt, TextPrompt
from batchspec.request import Request

__all__ = ["with_a_word_changed"]

_WORD = re.compile(r"[^\W\d_]{3,}")


def with_a_word_changed(requests: Many[Request]) -> tuple[list[Request], int]:
    """Return the requests with another word in their prompts, and how many that are.

    Of a chat it is the last word of the last user message, of at least three letters; of other prompts the last but
    one, since many end with a label before the answer. What has no such word stays as it is, and so do token ids.
    """
    words = [_word(request.prompts[0]) for request in requests]
    others = _others(words)
    changed = [
        request if other is None else replace(request, prompts=tuple(_with(each, other) for each in request.prompts))
        for request, other in zip(requests, others, strict=True)
    ]
    return changed, sum(new != old for new, old in zip(changed, requests, strict=True))


def _others(words: Many[str | None]) -> list[str | None]:
    """Return, for each word, the next after it that is another, going round; None where there is none."""
    found: list[str | None] = [None] * len(words)
    places = [place for place, word in enumerate(words) if word is not None]
    next_place: int | None = None
    for place in [*reversed(places), *reversed(places)]:
        if next_place is not None:
            follower = words[next_place]
            found[place] = found[next_place] if follower == words[place] else follower
        next_place = place
    return found


def _word(prompt: Prompt) -> str | None:
    match = _match(_text(prompt), is_chat=isinstance(prompt, ChatPrompt))
    return None if match is None else match[0]


def _with(prompt: Prompt, word: str) -> Prompt:
    """Return the prompt with the word in the place of its own, if it has one."""
    text = _text(prompt)
    match = _match(text, is_chat=isinstance(prompt, ChatPrompt))
    if match is None:
        return prompt
    changed = text[: match.start()] + word + text[match.end() :]
    if isinstance(prompt, ChatPrompt):
        messages = list(prompt.messages)
        place = _asked_at(prompt)
        messages[place] = {**messages[place], "content": changed}
        return replace(prompt, messages=tuple(messages))
    return replace(prompt, text=changed) if isinstance(prompt, TextPrompt) else prompt


def _text(prompt: Prompt) -> str:
    """Return the text in which a word is changed; empty for token ids, and for a chat in which no user speaks."""
    if isinstance(prompt, TextPrompt):
        return prompt.text
    if isinstance(prompt, ChatPrompt) and _asked_at(prompt) >= 0:
        return str(prompt.messages[_asked_at(prompt)].get("content") or "")
    return ""


def _asked_at(prompt: ChatPrompt) -> int:
    """Return the place of the last user message; -1 where there is none."""
    return max((place for place, each in enumerate(prompt.messages) if each.get("role") == "user"), default=-1)


def _match(text: str, *, is_chat: bool) -> "re.Match[str] | None":
    found = list(_WORD.finditer(text))
    return found[-1 if is_chat else max(-2, -len(found))] if found else None
