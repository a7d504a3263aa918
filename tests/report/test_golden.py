"""Both renderings, character by character. ``UPDATE_GOLDEN=1 pytest tests/report`` writes the files anew."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from batchspec.reconcile import AcceptanceSums
from batchspec.report import report_markdown, report_renderable

from .example import example_document

GOLDEN = Path(__file__).parent / "golden"
FAULT = AcceptanceSums(num_accepted_draft_tokens=1, num_accepted_tokens_per_pos=(0, 1))
DOCUMENTS = {
    "reconciled": example_document(),
    "fault": example_document(fault=FAULT),
    "level_none": example_document(with_metrics=False),
}


def as_text(document: Mapping[str, Any], *, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(report_renderable(document))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def check(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("width", [100, 80])
def test_text(name: str, width: int) -> None:
    check(f"{name}.{width}.txt", as_text(DOCUMENTS[name], width=width))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_markdown(name: str) -> None:
    check(f"{name}.md", report_markdown(DOCUMENTS[name]))


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("width", [100, 80])
def test_no_line_is_too_long(name: str, width: int) -> None:
    assert max(map(len, as_text(DOCUMENTS[name], width=width).splitlines())) <= width


def test_colour_adds_no_words() -> None:
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system="truecolor", record=True)
    console.print(report_renderable(DOCUMENTS["fault"]))
    assert "\x1b[" in out.getvalue()
    coloured = "".join(f"{line.rstrip()}\n" for line in console.export_text().splitlines())
    assert coloured == as_text(DOCUMENTS["fault"], width=100)
