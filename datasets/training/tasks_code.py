"""Exercises over small Python functions: rename a variable or fix a bug."""

from __future__ import annotations

import re

from datasets.training.pools import Pools
from datasets.training.task import Task

BODIES = (
    "def {f}({a}, {b}):\n    return {a} + {b}",
    "def {f}({a}, {b}):\n    return {a} - {b}",
    "def {f}({a}, {b}):\n    return {a} * {b}",
    "def {f}({a}):\n    return {a} * {n}",
    "def {f}({a}):\n    {b} = {a} + {n}\n    return {b}",
    "def {f}({a}, {b}):\n    {c} = {a} * {b}\n    return {c} + {n}",
    "def {f}({a}):\n    if {a} > {n}:\n        return True\n    return False",
    "def {f}({a}, {b}):\n    if {a} > {b}:\n        return {a}\n    return {b}",
    "def {f}({a}):\n    {c} = 0\n    for {b} in {a}:\n        {c} += {b}\n    return {c}",
    "def {f}({a}):\n    {c} = []\n    for {b} in {a}:\n        {c}.append({b} * {n})\n    return {c}",
    "def {f}({a}):\n    {c} = 0\n    for {b} in {a}:\n        if {b} > {n}:\n            {c} += 1\n    return {c}",
    "def {f}({a}):\n    while {a} > {n}:\n        {a} -= 1\n    return {a}",
    "def {f}({a}, {b}):\n    print({a})\n    print({b})",
    "def {f}({a}):\n    {c} = len({a})\n    return {c}",
    "def {f}({a}, {b}):\n    {c} = {a} / {b}\n    return round({c}, {n})",
    "def {f}({a}):\n    return [{b} for {b} in {a} if {b} != {n}]",
)
MAKERS = ("get", "make", "find", "compute", "check", "update", "load", "show", "scale", "sum")


def _function(p: Pools) -> tuple[str, list[str]]:
    names = [p.ident() for _ in range(3)]
    body = p.pick(BODIES)
    used = [name for slot, name in zip("abc", names, strict=True) if f"{{{slot}}}" in body]
    f = f"{p.pick(MAKERS)}_{p.ident()}"
    a, b, c = names
    return body.format(f=f, a=a, b=b, c=c, n=p.rng.randrange(1, 100)), used


def rename_in(code: str, old: str, new: str) -> str:
    """Rename one Python identifier in a piece of code."""
    return re.sub(rf"\b{re.escape(old)}\b", new, code)


def _rename(p: Pools) -> tuple[str, str, str]:
    code, used = _function(p)
    old, new = p.rng.choice(used), p.ident()
    ask = p.pick((
        f"Rename the variable {old} to {new}:",
        f"Rename {old} to {new} in this function.",
        f"Change the variable name {old} to {new}.",
        f"In the code below, rename {old} to {new}:",
    ))  # fmt: skip
    return ask, code, rename_in(code, old, new)


BUGS = (
    (":\n", "\n"),
    ("return", "retrun"),
    ("return", "retun"),
    ("def ", "df "),
    ("def ", "define "),
    ("for ", "fro "),
    (" in ", " on "),
    ("):", ":"),
    ("while", "whlie"),
    ("if ", "fi "),
    ("print", "pritn"),
    ("append", "apend"),
    ("True", "true"),
    ("False", "false"),
    ("    ", "  "),
)
FIX_ASKS = (
    "Fix the bug in this function:",
    "This code has a syntax error. Fix it.",
    "Fix the code.",
    "Find and fix the mistake in this Python function:",
    "Correct the Python code below:",
)


def _fix(p: Pools) -> tuple[str, str, str]:
    code, _ = _function(p)
    good, bad = p.rng.choice([bug for bug in BUGS if bug[0] in code])
    return p.pick(FIX_ASKS), code.replace(good, bad, 1), code


def _rename_function(p: Pools) -> tuple[str, str, str]:
    code, _ = _function(p)
    old = code[4 : code.index("(")]
    new = f"{p.pick(MAKERS)}_{p.ident()}"
    ask = p.pick((f"Rename the function to {new}:", f"Rename the function {old} to {new}."))
    return ask, code, code.replace(f"def {old}(", f"def {new}(")


def edit_code(p: Pools) -> Task:
    """Function and a wish to the changed function."""
    roll = p.rng.random()
    make = _rename if roll < 0.5 else _fix if roll < 0.85 else _rename_function
    ask, code, answer = make(p)
    return Task("code", ask, code, answer, ("Code", "Fixed" if make is _fix else ask.rstrip(":.")))
