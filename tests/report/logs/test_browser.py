"""The page in a real browser: its pictures are drawn, nothing is asked for, names stay text."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from batchspec.report.logs import Grouping
from batchspec.report.logs.formats import ReportFormat, log_text
from tests.report.browser import BROWSERS, OpenPage, find_browser, opened

from .hostile import HOSTILE, everything
from .made import report_of

BROWSER = find_browser()
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"none of {', '.join(BROWSERS)} is installed")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenPage]:
    directory = tmp_path_factory.mktemp("page")
    file = directory / "report.html"
    file.write_text(
        log_text(report_of(directory, everything(), by=Grouping.CATEGORY), ReportFormat.HTML), encoding="utf-8"
    )
    assert BROWSER is not None
    with opened(BROWSER, Path(file), profile=directory / "profile") as page:
        yield page


def test_the_pictures_are_drawn(page: OpenPage) -> None:
    sizes = page.evaluate("[...document.querySelectorAll('svg')].map(one => one.getBoundingClientRect().height)")
    assert len(sizes) == 5
    assert min(sizes) > 100
    for marks, least in (("rect.bar", 5), ("circle.dot", 20), ("line.reach", 10), ("polyline.curve", 3)):
        boxes = page.evaluate(
            f"[...document.querySelectorAll('{marks}')].map(one => one.getBoundingClientRect())"
            ".filter(box => box.width + box.height > 0 && box.left >= 0 && box.right <= innerWidth).length"
        )
        assert boxes >= least, marks
    colours = page.evaluate("[...document.querySelectorAll('rect.bar')].map(one => getComputedStyle(one).fill)")
    assert set(colours) == {"rgb(37, 99, 168)"}


def test_no_mark_leaves_its_picture(page: OpenPage) -> None:
    outside = page.evaluate(
        """[...document.querySelectorAll('svg rect, svg circle, svg line, svg text')].filter(one => {
            const mark = one.getBoundingClientRect(), svg = one.closest('svg').getBoundingClientRect();
            return mark.left < svg.left - 1 || mark.right > svg.right + 1
                || mark.top < svg.top - 1 || mark.bottom > svg.bottom + 1;
        }).map(one => one.outerHTML)"""
    )
    assert outside == []


def test_nothing_leaves_the_file(page: OpenPage) -> None:
    urls = [event["request"]["url"] for event in page.named("Network.requestWillBeSent")]
    assert [url.rsplit("/", 1)[-1] for url in urls] == ["report.html"]
    assert page.named("Log.entryAdded") == []
    assert page.named("Runtime.exceptionThrown") == []


def test_names_stay_text(page: OpenPage) -> None:
    assert page.evaluate("document.title") == "Acceptance report"
    assert page.evaluate("document.scripts.length + document.images.length") == 0
    assert HOSTILE in page.evaluate("document.body.innerText")
    assert "onerror=alert(1)" in page.evaluate("document.body.innerText")


def test_the_policy_would_stop_what_asked_for_something(page: OpenPage) -> None:
    stopped_by = page.evaluate(
        """new Promise(resolve => {
            document.addEventListener('securitypolicyviolation', event => resolve(event.effectiveDirective));
            document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:9/x.png'}));
        })"""
    )
    assert stopped_by == "img-src"
