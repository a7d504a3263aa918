import io
import json
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from batchspec.report import (
    Aggregate,
    report_document,
    report_markdown,
    report_renderable,
    throughput_document,
)
from batchspec.report.layout import Column, Table, bar, count, decimal, percentage, printable
from batchspec.report.plain import parts_text

from .example import example_document
from .records import failed, recorder_of, served


def document_of(*records: dict[str, Any], totals: Mapping[str, Any] | None = None) -> dict[str, Any]:
    aggregate = Aggregate()
    for record in records:
        aggregate.add(record)
    return report_document(aggregate.document(), reconciliation=None, totals=totals, run={}, throughput=None)


def as_text(document: Mapping[str, Any], *, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(report_renderable(document))
    return out.getvalue()


def test_keys_stand_in_a_fixed_order() -> None:
    expected = [
        "run",
        "requests",
        "tokens",
        "throughput",
        "acceptance",
        "categories",
        "counters",
        "sources",
        "reconciliation",
        "definitions",
    ]
    assert list(example_document()) == expected
    assert list(document_of()) == expected


def test_the_document_is_json_and_renders_the_same_after_a_round_trip() -> None:
    document = example_document()
    restored = json.loads(json.dumps(document))
    assert restored == document
    assert as_text(restored) == as_text(document)
    assert report_markdown(restored) == report_markdown(document)


def test_floats_are_not_rounded_in_the_document() -> None:
    document = document_of(served(recorder_of([(3, 1), (3, 0), (3, 0)], num_spec_tokens=3)))
    assert document["acceptance"]["pooled"]["mean_acceptance_length"] == 1 + 1 / 3


def test_no_record_and_no_counter() -> None:
    text = as_text(document_of())
    assert "No acceptance numbers" in text
    assert "reconciled" not in text


def test_absent_ratios_are_dashes() -> None:
    text = as_text(document_of(served(recorder_of([], num_spec_tokens=2))))
    assert "\N{EN DASH}" in text
    assert "0.00 %" not in text
    assert "Not reconciled: there are no Prometheus totals." in text


def test_one_category_is_not_told_apart() -> None:
    assert "copy" not in as_text(document_of(served(recorder_of([(3, 1)], num_spec_tokens=3), category="copy")))


def test_categories_whose_records_carry_no_metrics_are_not_shown() -> None:
    with_metrics = served(recorder_of([(3, 1)], num_spec_tokens=3), category="copy")
    text = as_text(document_of(with_metrics, failed(category="prose")))
    assert "copy" in text
    assert "prose" not in text


def test_contradictory_records_are_mentioned() -> None:
    record = served(recorder_of([(3, 1)], num_spec_tokens=3))
    record["response"]["body"]["metrics"]["speculative_decoding"]["num_draft_tokens"] = 99
    assert "Records whose metrics contradict each other: 1" in as_text(document_of(record))


def test_names_from_the_input_cannot_steer_the_terminal_or_break_the_markdown() -> None:
    hostile = "[red]a|b\n\x1b[31m*c*"
    records = [
        served(recorder_of([(3, 1)], num_spec_tokens=3), category=hostile),
        served(recorder_of([(3, 1)], num_spec_tokens=3), category="plain"),
    ]
    document = document_of(*records)
    text, markdown = as_text(document), report_markdown(document)
    assert "\x1b" not in text
    assert "\x1b" not in markdown
    assert "[red]a|b" in text
    (row,) = [line for line in markdown.splitlines() if "red]" in line]
    assert row.replace("\\|", "").count("|") == 10


def test_wide_names_stay_aligned() -> None:
    records = [
        served(recorder_of([(3, 1)], num_spec_tokens=3), category=name) for name in ("抽出と要約", "plain", "x" * 60)
    ]
    for width in (100, 80):
        assert max(len(line.rstrip()) for line in as_text(document_of(*records), width=width).splitlines()) <= width


def test_throughput_without_time_is_absent() -> None:
    throughput = throughput_document(num_prompt_tokens=5, num_output_tokens=5, elapsed_seconds=0.0)
    assert throughput == {
        "elapsed_seconds": 0.0,
        "prompt_tokens_per_second": None,
        "output_tokens_per_second": None,
    }


def test_cells() -> None:
    assert (count(None), decimal(None), percentage(None)) == ("\N{EN DASH}",) * 3
    assert (count(12345), decimal(20 / 11), percentage(20 / 44)) == ("12,345", "1.8182", "45.45 %")
    assert (bar(1.0, width=4), bar(0.5, width=4), bar(0.0), bar(None)) == ("████", "██", "", "")
    assert bar(1e-9) == "▏"
    assert printable("a\tb\x1bc") == "a�b�c"


def test_text_is_broken_before_a_number_is() -> None:
    columns = (Column(header="", is_text=True, longest=60), *(Column(header=f"number {i}") for i in range(6)))
    table = Table(title="", columns=columns, rows=(("some words " * 6, *["12,345.6789"] * 6),))
    lines = parts_text([table], width=100).splitlines()
    assert sum("  ".join(["12,345.6789"] * 6) in line for line in lines) == 1
