"""One word of every prompt is changed, and nothing else."""

from typing import Any

from batchspec.bench.changed import with_a_word_changed
from batchspec.prompt import ChatPrompt, Prompt, TextPrompt, TokenPrompt
from batchspec.request import Endpoint, Request


def request(index: int, *prompts: Prompt) -> Request:
    return Request(
        index=index, line=index + 1, custom_id=f"r{index}", endpoint=Endpoint.COMPLETIONS, prompts=tuple(prompts)
    )


def chat(*messages: tuple[str, str]) -> ChatPrompt:
    return ChatPrompt(messages=tuple({"role": role, "content": content} for role, content in messages))


def last_user(prompt: Any) -> str:
    return str(prompt.messages[-1]["content"])


def test_the_last_word_of_a_chat_becomes_that_of_the_next() -> None:
    asks = ["a story about Lucy.", "sport: chess; floor 12", "name: Lucy (1)"]
    requests = [request(i, chat(("system", "Be short"), ("user", text))) for i, text in enumerate(asks)]
    changed, num_changed = with_a_word_changed(requests)
    asked = [last_user(each.prompts[0]) for each in changed]
    assert asked == ["a story about floor.", "sport: chess; Lucy 12", "name: floor (1)"]
    assert num_changed == 3
    assert [each.prompts[0].messages[0]["content"] for each in changed if isinstance(each.prompts[0], ChatPrompt)] == [
        "Be short"
    ] * 3
    assert [each.custom_id for each in changed] == ["r0", "r1", "r2"]


def test_only_what_the_user_said_last_is_changed() -> None:
    first = chat(("user", "What is red"), ("assistant", "a colour"), ("user", "and green"), ("tool", "yes"))
    changed, _ = with_a_word_changed([request(0, first), request(1, chat(("user", "and blue")))])
    prompt = changed[0].prompts[0]
    assert isinstance(prompt, ChatPrompt)
    assert [message["content"] for message in prompt.messages] == ["What is red", "a colour", "and blue", "yes"]


def test_of_a_plain_prompt_it_is_the_last_word_but_one() -> None:
    requests = [
        request(0, TextPrompt(text="Record: sport chess\nJSON:"), TextPrompt(text="hobby one\nJSON:")),
        request(1, TextPrompt(text="subject history JSON:")),
        request(2, TextPrompt(text="alone")),
    ]
    changed, _ = with_a_word_changed(requests)
    texts = [[each.text for each in one.prompts if isinstance(each, TextPrompt)] for one in changed]
    assert texts == [["Record: sport history\nJSON:", "hobby history\nJSON:"], ["subject alone JSON:"], ["chess"]]


def test_what_has_no_word_or_no_other_stays_as_it_is() -> None:
    bare = [request(0, TokenPrompt(token_ids=(1, 2))), request(1, TextPrompt(text="1 + 1 = ")), request(2, chat())]
    same = [request(3, TextPrompt(text="same")), request(4, TextPrompt(text="same"))]
    assert with_a_word_changed(bare + same) == (bare + same, 0)
    changed, num_changed = with_a_word_changed([*bare, *same, request(5, TextPrompt(text="other"))])
    assert num_changed == 3
    assert [each.text for one in changed for each in one.prompts if isinstance(each, TextPrompt)][1:] == [
        "other",
        "other",
        "same",
    ]
