"""Write the quickstart requests: python -m datasets.training.quickstart datasets."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from datasets.training.pools import Pools
from datasets.training.stream import SYSTEMS, Generator
from datasets.training.task import Task
from datasets.training.tasks_code import edit_code
from datasets.training.tasks_correct import classify_review, correct_sentence
from datasets.training.tasks_lists import continue_list
from datasets.training.tasks_records import csv_to_table, record_to_json
from datasets.training.tasks_stories import write_story
from datasets.training.tasks_text import answer_question, rewrite, summarise

SEED = 2024
# generator, plain chats, chats with two turns, completions, max_tokens
PLAN: tuple[tuple[Generator, int, int, int, int], ...] = (
    (record_to_json, 6, 2, 2, 160),
    (csv_to_table, 6, 0, 1, 224),
    (correct_sentence, 5, 1, 2, 80),
    (answer_question, 4, 3, 1, 48),
    (edit_code, 7, 0, 1, 160),
    (continue_list, 4, 1, 1, 64),
    (write_story, 12, 0, 0, 288),
    (rewrite, 5, 0, 0, 128),
)
MORE: tuple[Generator, ...] = (*(row[0] for row in PLAN), summarise, classify_review)


@dataclass(frozen=True)
class Request:
    """One request, the answer that is expected, and the held-out words in it."""

    custom_id: str
    category: str
    messages: list[dict[str, str]]
    prompt: str
    expected: str
    max_tokens: int
    temperature: float | None
    held_out: tuple[str, ...]

    def row(self) -> dict[str, Any]:
        """Return the request as a line of an OpenAI batch file, with its category."""
        body: dict[str, Any] = {"model": "embedded"}
        body |= {"messages": self.messages} if self.messages else {"prompt": self.prompt}
        body["max_tokens"] = self.max_tokens
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.temperature:
            body["seed"] = int(self.custom_id.rsplit("-", 1)[1])
        kind = "chat/completions" if self.messages else "completions"
        return {
            "custom_id": self.custom_id,
            "method": "POST",
            "url": f"/v1/{kind}",
            "category": self.category,
            "body": body,
        }


def _chat(task: Task, earlier: Task | None, system: str) -> tuple[list[dict[str, str]], str]:
    pairs: list[tuple[str, str]] = [("system", system)] if system else []
    if earlier:
        pairs += [("user", earlier.chat_text()), ("assistant", earlier.answer)]
    pairs.append(("user", task.chat_text()))
    expected = task.answer
    if earlier is None and task.follow_ups and not system:
        pairs += [("assistant", task.answer), ("user", task.follow_ups[0][0])]
        expected = task.follow_ups[0][1]
    return [{"role": role, "content": text} for role, text in pairs], expected


def _make(maker: Generator, form: str, name: str, limit: int, rng: Random) -> Request:
    """Draw until the last prompt holds a held-out word, then shape the request."""
    drawn: tuple[str, ...] = ()
    while True:
        p = Pools(rng, "heldout")
        task = maker(p)
        drawn = tuple(word for word in sorted(p.drawn) if re.search(rf"\b{re.escape(word)}\b", task.chat_text()))
        one_fact = form == "turns" and task.category == "question" and not task.follow_ups
        if (drawn or task.category == "list") and not one_fact:
            break
    story = task.category == "story"
    temperature = 0.8 if story else None if rng.random() < 0.15 else 0.0
    messages: list[dict[str, str]] = []
    prompt = ""
    if form == "completion":
        shots = [maker(p) for _ in range(2)]
        text = "".join(f"{shot.raw_prompt()}{shot.raw_answer()}\n\n" for shot in shots)
        prompt, expected = text + task.raw_prompt(), task.raw_answer()
    elif form == "turns":
        earlier = None if task.follow_ups else maker(p)
        messages, expected = _chat(task, earlier, "")
    else:
        system = rng.choice(SYSTEMS) if rng.random() < 0.4 else ""
        messages, expected = _chat(Task(**{**vars(task), "follow_ups": ()}), None, system)
    return Request(name, task.category, messages, prompt, expected, limit, temperature, drawn)


def quickstart_requests() -> list[Request]:
    """Return the requests of the quickstart file."""
    rng = Random(f"quickstart/{SEED}")
    plan = [
        (maker, form, limit)
        for maker, plain, turns, raw, limit in PLAN
        for form in ["chat"] * plain + ["turns"] * turns + ["completion"] * raw
    ]
    rng.shuffle(plan)
    return [_make(maker, form, f"quick-{i:03d}", limit, rng) for i, (maker, form, limit) in enumerate(plan, 1)]


def load_expected(more: int = 0) -> list[Request]:
    """Return the quickstart requests, or ``more`` other held-out chats instead."""
    if not more:
        return quickstart_requests()
    rng = Random(f"more/{SEED}")
    return [_make(MORE[i % len(MORE)], "chat", f"more-{i:04d}", 256, rng) for i in range(more)]


def write(folder: Path) -> None:
    """Write quickstart.jsonl and quickstart.parquet with the same rows."""
    rows = [request.row() for request in quickstart_requests()]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / "quickstart.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    flat = [{**row, "body": json.dumps(row["body"], ensure_ascii=False)} for row in rows]
    pq.write_table(pa.Table.from_pylist(flat), folder / "quickstart.parquet")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
