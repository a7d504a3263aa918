"""The report in all its forms; tables and Markdown character by character (``UPDATE_GOLDEN=1`` writes them anew)."""

import csv
import io
import json
import os
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from batchspec.report.layout import printable
from batchspec.report.logs import Grouping
from batchspec.report.logs.formats import ReportFormat, format_by_name, log_text
from batchspec.report.logs.sections import log_parts
from batchspec.report.plain import parts_text
from tests.ingest.logs import batch_line, body

from .hostile import HOSTILE, everything
from .made import report_of, request

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    document = report_of(Path(), everything(), by=Grouping.CATEGORY)
    judged = {"require": "acceptance_length>=9", "value": 2.5, "low": 2.0, "high": 3.0, "holds": False}
    return document | {"requirements": [judged]}


@pytest.mark.parametrize("form", [ReportFormat.TABLE, ReportFormat.MD])
def test_golden(document: dict[str, Any], form: ReportFormat) -> None:
    path, text = GOLDEN / f"logs.{form}", log_text(document, form)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_no_line_is_too_long(document: dict[str, Any]) -> None:
    assert max(map(len, log_text(document, ReportFormat.TABLE).splitlines())) <= 100
    assert max(map(len, parts_text(log_parts(document), width=80).splitlines())) <= 80


@pytest.mark.parametrize("form", ReportFormat)
def test_no_form_lets_a_name_steer_a_terminal_and_all_end_with_a_newline(
    document: dict[str, Any], form: ReportFormat
) -> None:
    text = log_text(document, form)
    assert "\x1b" not in text
    assert text.endswith("\n")


@pytest.mark.parametrize("form", [form for form in ReportFormat if form is not ReportFormat.JSON])
def test_no_form_lets_a_groups_name_steer_anything(tmp_path: Path, form: ReportFormat) -> None:
    rows = [request([1, 2], category=f"{name}end") for name in ("\x1b[31m", "\u202e", "a\nb", "\t=1")]
    text = log_text(report_of(tmp_path, rows, by=Grouping.CATEGORY), form)
    assert not set(text) & set("\x1b\u202e\t\r")
    assert text.count("a�bend") >= 1


@pytest.mark.parametrize("form", ReportFormat)
def test_every_form_can_say_that_there_is_nothing(tmp_path: Path, form: ReportFormat) -> None:
    assert log_text(report_of(tmp_path, [batch_line(body(None))]), form)
    assert log_text(report_of(tmp_path, []), form)


def test_requests_without_a_step_give_every_form(tmp_path: Path) -> None:
    for form in ReportFormat:
        assert log_text(report_of(tmp_path, [request([])]), form)


def test_json_is_the_document(document: dict[str, Any]) -> None:
    assert json.loads(log_text(document, ReportFormat.JSON)) == json.loads(json.dumps(document))
    assert list(document)[:6] == ["files", "rows", "left_out", "engines", "stated_lengths", "num_spec_tokens"]


def test_csv_has_a_line_for_each_number(document: dict[str, Any]) -> None:
    rows = list(csv.DictReader(io.StringIO(log_text(document, ReportFormat.CSV))))
    found = {(row["requests"], row["weighting"], row["quantity"]): row for row in rows}
    length = document["groups"]["code"]["pooled"]["mean_acceptance_length"]
    row = found["code", "pooled", "mean_acceptance_length"]
    assert [float(row[name]) for name in ("value", "low", "high")] == [
        length["value"],
        length["low"],
        length["high"],
    ]
    assert found["(all)", "pooled", "num_spec_steps"]["value"] == str(document["overall"]["pooled"]["num_spec_steps"])
    assert found["(all)", "pooled", "acceptance_histogram[4]"]["value"]
    assert found["(rows)", "", "num_contradictory"]["value"] == "1"
    assert found["(macro)", "pooled", "mean_acceptance_length"]["num_requests"] == "4"
    assert found[HOSTILE, "pooled", "num_spec_steps"]["value"]


def test_csv_gives_a_spreadsheet_no_formula(document: dict[str, Any]) -> None:
    text = log_text(document, ReportFormat.CSV)
    assert "\n'=1+1,pooled" in text
    assert "\n=1+1" not in text


class Page(HTMLParser):
    """Elements, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_holds_names_as_text_and_asks_for_nothing(document: dict[str, Any]) -> None:
    page = log_text(document, ReportFormat.HTML)
    found = Page(page)
    assert not {"script", "img", "link", "iframe", "object", "base", "form"} & set(found.elements)
    assert not {"src", "href", "srcset", "action", "xlink:href", "data"} & found.attributes
    assert not {name for name in found.attributes if name.startswith("on")}
    assert "url(" not in page
    assert "@import" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert any(printable(HOSTILE) in text for text in found.texts)
    assert "default-src &#x27;none&#x27;" in page


def test_the_page_has_its_pictures(document: dict[str, Any]) -> None:
    found = Page(log_text(document, ReportFormat.HTML))
    assert found.elements.count("svg") == found.elements.count("figure") == 5
    titles = [text for text in found.texts if text.startswith("Acceptance")]
    for title in ("histogram", "by position in the draft", "length by category", "over the output"):
        assert f"Acceptance {title}" in titles
    assert found.elements.count("rect") >= 5


def test_a_page_with_many_groups_shows_the_largest(tmp_path: Path) -> None:
    rows = [request([1] * (1 + index % 3), category=f"c{index}") for index in range(70)]
    page = log_text(report_of(tmp_path, rows, by=Grouping.CATEGORY), ReportFormat.HTML)
    assert "The 10 smallest are not shown." in page


FORMATS = [
    (".html", ReportFormat.HTML),
    (".HTM", ReportFormat.HTML),
    (".md", ReportFormat.MD),
    (".txt", ReportFormat.TABLE),
    ("", ReportFormat.TABLE),
]


@pytest.mark.parametrize(("suffix", "form"), FORMATS)
def test_a_files_extension_names_its_format(suffix: str, form: ReportFormat) -> None:
    assert format_by_name(f"report{suffix}") is form
