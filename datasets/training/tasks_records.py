"""Exercises over records: record to JSON, CSV to table and back."""

from __future__ import annotations

import json
from collections.abc import Callable

from datasets.training import words as w
from datasets.training.pools import Pools
from datasets.training.task import Task

Value = str | int | float
Maker = Callable[[Pools], Value]


def _email(p: Pools) -> Value:
    return f"{p.person().lower()}@{p.surname().lower()}.{p.pick(('com', 'org', 'net'))}"


def _date(p: Pools) -> Value:
    r = p.rng
    return f"{r.randrange(1990, 2030)}-{r.randrange(1, 13):02d}-{r.randrange(1, 29):02d}"


FIELDS: tuple[tuple[tuple[str, ...], Maker], ...] = (
    (("name", "first_name", "person", "contact"), lambda p: p.person()),
    (("full_name", "customer", "author", "manager"), lambda p: f"{p.person()} {p.surname()}"),
    (("city", "town", "location", "office"), lambda p: p.city()),
    (("role", "job", "title", "position"), lambda p: p.role()),
    (("age", "years", "floor", "room"), lambda p: p.rng.randrange(1, 100)),
    (("company", "employer", "supplier", "client"), lambda p: p.company()),
    (("item", "product", "article"), lambda p: p.item()),
    (("price", "cost", "total"), lambda p: p.rng.randrange(100, 20000) / 100),
    (("quantity", "count", "units", "stock"), lambda p: p.rng.randrange(1, 500)),
    (("id", "order", "code", "ticket"), lambda p: p.code()),
    (("date", "due", "start", "birthday"), _date),
    (("email", "mail"), _email),
    (("color", "colour"), lambda p: p.pick(w.COLOURS)),
    (("team", "department", "unit"), lambda p: p.pick(w.TEAMS)),
    (("status", "state"), lambda p: p.pick(w.STATUSES)),
    (("food", "dish"), lambda p: p.pick(w.FOODS)),
    (("hobby", "sport"), lambda p: p.pick(w.HOBBIES)),
    (("subject", "course"), lambda p: p.pick(w.SUBJECTS)),
    (("day", "weekday"), lambda p: p.pick(w.DAYS)),
    (("month",), lambda p: p.pick(w.MONTHS)),
)


def make_record(p: Pools, size: int) -> dict[str, Value]:
    """Draw a record with ``size`` different fields."""
    return {p.pick(names): make(p) for names, make in p.rng.sample(FIELDS, size)}


def _show(record: dict[str, Value], style: int) -> str:
    pairs = list(record.items())
    if style == 0:
        return "; ".join(f"{k}: {v}" for k, v in pairs)
    if style == 1:
        return ", ".join(f"{k}={v}" for k, v in pairs)
    if style == 2:
        return "\n".join(f"{k}: {v}" for k, v in pairs)
    if style == 3:
        return " | ".join(f"{k} {v}" for k, v in pairs)
    return ", ".join(f"{k}: {v}" for k, v in pairs)


JSON_ASKS = (
    "Convert this record to JSON.",
    "Turn the record into a JSON object:",
    "Write this record as JSON:",
    "Return the following fields as JSON.",
    "Extract the fields of this record as a JSON object.",
    "Record to JSON, please:",
    "Give me JSON for this record:",
    "Format this as JSON:",
    "Parse the record and answer with JSON only.",
)


def record_to_json(p: Pools) -> Task:
    """Record in one of five notations to a JSON object."""
    record = make_record(p, p.rng.choice((2, 3, 3, 4, 4, 5, 6)))
    key = p.pick(tuple(record))
    tag = key.replace("_", " ")
    follow = ((f"What is the {tag} in the record?", f"The {tag} is {record[key]}."),)
    return Task(
        "record_to_json",
        p.pick(JSON_ASKS),
        _show(record, p.rng.randrange(5)),
        json.dumps(record),
        ("Record", "JSON"),
        follow,
    )


def _grid(p: Pools) -> list[list[str]]:
    fields = p.rng.sample(FIELDS, p.rng.choice((2, 3, 3, 4)))
    rows = [[p.pick(names) for names, _ in fields]]
    count = min(p.rng.choice((1, 2, 2, 3, 3, 4, 5, 6)), 15 // len(fields))
    rows += [[str(make(p)) for _, make in fields] for _ in range(count)]
    return rows


def _csv(rows: list[list[str]]) -> str:
    return "\n".join(",".join(row) for row in rows)


def _markdown(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines)


TABLE_ASKS = (
    "Turn this CSV into a markdown table.",
    "Convert the CSV below to a markdown table:",
    "Make a markdown table from this CSV:",
    "Write the following CSV as a table in markdown.",
    "Show this data as a markdown table:",
    "CSV to markdown table:",
)
CSV_ASKS = (
    "Turn this markdown table into CSV.",
    "Convert the table below to CSV:",
    "Write the following table as CSV.",
    "Markdown table to CSV:",
    "Export this table as comma separated values:",
)


def csv_to_table(p: Pools) -> Task:
    """CSV to a markdown table, or the way back."""
    rows = _grid(p)
    table, csv = _markdown(rows), _csv(rows)
    if p.rng.random() < 0.65:
        return Task("table", p.pick(TABLE_ASKS), csv, table, ("CSV", "Table"))
    return Task("table", p.pick(CSV_ASKS), table, csv, ("Table", "CSV"))
