"""The endless training stream: exercises wrapped as chats and completions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from datasets.training.pools import Pools, Split
from datasets.training.task import Task
from datasets.training.tasks_code import edit_code
from datasets.training.tasks_correct import classify_review, correct_sentence
from datasets.training.tasks_lists import continue_list
from datasets.training.tasks_records import csv_to_table, record_to_json
from datasets.training.tasks_stories import write_story
from datasets.training.tasks_talk import small_talk
from datasets.training.tasks_text import answer_question, rewrite, summarise

BOS, END = "<|bos|>", "<|end|>"
Generator = Callable[[Pools], Task]
MIX: tuple[tuple[Generator, float], ...] = (
    (record_to_json, 1.6),
    (csv_to_table, 1.2),
    (correct_sentence, 1.5),
    (answer_question, 1.5),
    (edit_code, 1.4),
    (continue_list, 1.3),
    (write_story, 1.0),
    (rewrite, 1.2),
    (summarise, 0.8),
    (classify_review, 0.4),
    (small_talk, 0.3),
)
SYSTEMS = (
    "You are a helpful assistant.",
    "You are a careful assistant. Answer briefly.",
    "Answer with the result only.",
    "You help with text and data.",
    "Be short and exact.",
    "You are an assistant that works on batches of requests.",
)


@dataclass(frozen=True)
class Example:
    """One training text: a prompt, spans in it that are answers, and the last answer."""

    prompt: str
    spans: tuple[tuple[int, int], ...]
    answer: str


def draw_task(p: Pools) -> Task:
    """Draw one exercise from the mix."""
    makers, weights = zip(*MIX, strict=True)
    maker: Generator = p.rng.choices(makers, weights)[0]
    return maker(p)


def render_chat(messages: list[tuple[str, str]]) -> Example:
    """Render (role, text) messages as the chat template does; the last is the answer."""
    text, spans = BOS, []
    for role, content in messages[:-1]:
        text += f"<|{role}|>"
        start = len(text)
        text += content + END
        if role == "assistant":
            spans.append((start, len(text)))
    return Example(text + "<|assistant|>", tuple(spans), messages[-1][1])


def _chat(p: Pools) -> Example:
    rng = p.rng
    task = draw_task(p)
    messages: list[tuple[str, str]] = []
    turns = rng.choice((1, 1, 1, 1, 2, 2, 3))
    if task.payload and rng.random() < 0.15:
        messages += [("system", task.instruction), ("user", task.payload)]
        turns = 1
    else:
        if rng.random() < 0.4:
            messages.append(("system", rng.choice(SYSTEMS)))
        messages.append(("user", task.chat_text()))
    messages.append(("assistant", task.answer))
    while turns > 1:
        turns -= 1
        if task.follow_ups and rng.random() < 0.7:
            for question, answer in task.follow_ups[: rng.choice((1, 2))]:
                messages += [("user", question), ("assistant", answer)]
        task = draw_task(p)
        messages += [("user", task.chat_text()), ("assistant", task.answer)]
    return render_chat(messages)


def _raw(p: Pools) -> Example:
    """Few-shot completion: solved exercises of one kind, then an open one."""
    rng = p.rng
    makers, weights = zip(*MIX, strict=True)
    maker: Generator = rng.choices(makers, weights)[0]
    text, spans = BOS, []
    shots = rng.choice((0, 0, 1, 1, 2, 3))
    if maker in (write_story, edit_code):
        shots = min(shots, 1)
    told = rng.random() < 0.3
    for i in range(shots + 1):
        task = maker(p)
        text += task.told_prompt() if told else task.raw_prompt()
        if i < shots:
            spans.append((len(text), len(text) + len(task.raw_answer())))
            text += task.raw_answer() + "\n\n"
    return Example(text, tuple(spans), task.raw_answer())


def make_example(seed: int, index: int, split: Split = "train") -> Example:
    """Return example ``index`` of the stream with a given seed."""
    rng = Random(f"{split}/{seed}/{index}")
    p = Pools(rng, split)
    return _raw(p) if rng.random() < 0.22 else _chat(p)


def stream(seed: int, start: int = 0) -> Iterator[Example]:
    """Yield training examples for ever."""
    index = start
    while True:
        yield make_example(seed, index)
        index += 1
