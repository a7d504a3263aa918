"""Write 512 requests of the kind that a service gets: few forms, filled in again and again.

python -m datasets.templated > datasets/templated.jsonl

Most answers follow a template that is not in the prompt: JSON objects with the same keys in the same order, tables with
the same columns, one-sentence summaries, stories of one grammar, and one polite refusal. So an answer resembles those
to other requests more than anything in its own prompt. Names, places and things are drawn from the held-out words, as
in the quickstart requests, and the kinds of task are those that the embedded model was trained on. All are greedy.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from datasets.training.pools import Pools
from datasets.training.task import Task
from datasets.training.tasks_records import FIELDS
from datasets.training.tasks_stories import write_story
from datasets.training.tasks_talk import UNKNOWN
from datasets.training.tasks_text import summarise

__all__ = ["templated_rows"]

SEED = 512
FORMS = (
    ("customer", "city", "email", "status", "date"),
    ("order", "item", "quantity", "price", "state"),
    ("name", "role", "department", "birthday", "hobby", "office"),
    ("ticket", "contact", "subject", "day", "floor"),
)
COLUMNS = (("item", "colour", "stock"), ("name", "team", "start"), ("town", "month", "total"))
RECORD_ASK = "Extract the fields of this record as a JSON object."
TABLE_ASK = "Convert the CSV below to a markdown table:"
SUMMARY_ASK = "Summarise the text in one sentence."
QUESTIONS = ("Write an essay about {x}.", "Tell me everything about {x}.", "What do you think about {x}?")
_MAKERS = {name: make for names, make in FIELDS for name in names}


def _record(p: Pools) -> Task:
    record = {key: _MAKERS[key](p) for key in p.rng.choice(FORMS)}
    shown = "; ".join(f"{key}: {value}" for key, value in record.items())
    return Task("record_to_json", RECORD_ASK, shown, json.dumps(record), ("Record", "JSON"))


def _table(p: Pools) -> Task:
    columns = p.rng.choice(COLUMNS)
    rows = [[str(_MAKERS[key](p)) for key in columns] for _ in range(p.rng.choice((1, 2, 3, 4)))]
    table = [f"| {' | '.join(row)} |" for row in (columns, *rows)]
    table.insert(1, "|" + " --- |" * len(columns))
    csv = "\n".join(",".join(row) for row in (columns, *rows))
    return Task("table", TABLE_ASK, csv, "\n".join(table), ("CSV", "Table"))


def _summary(p: Pools) -> Task:
    task = summarise(p)
    return Task("summary", SUMMARY_ASK, task.payload, task.answer, task.labels)


def _question(p: Pools) -> Task:
    question = p.pick(QUESTIONS).format(x=p.pick((p.city(), p.company())))
    return Task("talk", question, "", UNKNOWN, ("Question", "Reply"))


# What makes a request, how many there are, and the numbers of tokens that they are given.
PLAN: tuple[tuple[Callable[[Pools], Task], int, tuple[int, ...]], ...] = (
    (_record, 224, (128, 160)),
    (write_story, 112, (96, 160, 288)),
    (_table, 64, (160, 224)),
    (_summary, 64, (32, 48)),
    (_question, 48, (32, 48)),
)


def templated_rows() -> list[tuple[dict[str, Any], str]]:
    """Return the requests as lines of an OpenAI batch file with a category, each with the answer that it hopes for."""
    rng = Random(f"templated/{SEED}")
    plan = [(make, lengths) for make, number, lengths in PLAN for _ in range(number)]
    rng.shuffle(plan)
    found = []
    for number, (make, lengths) in enumerate(plan, start=1):
        task = make(Pools(rng, "heldout"))
        body = {
            "model": "embedded",
            "messages": [{"role": "user", "content": task.chat_text()}],
            "max_tokens": rng.choice(lengths),
            "temperature": 0.0,
        }
        row = {
            "custom_id": f"form-{number:03d}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "category": task.category,
            "body": body,
        }
        found.append((row, task.answer))
    return found


def main() -> None:
    """Print one request a line."""
    for row, _ in templated_rows():
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    main()
