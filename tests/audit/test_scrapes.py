"""Reading a server's counters, and the difference of two scrapes."""

from pathlib import Path

import pytest

from batchspec.errors import UsageError
from batchspec.reconcile.between import counted_between
from batchspec.reconcile.scrapes import Scrape, read_scrape

from .scraping import ORACLE, exposition, series

STEPS = ("num_spec_steps", None)


def scrape(tmp_path: Path, text: str, name: str = "after.prom") -> Scrape:
    (tmp_path / name).write_text(text)
    return read_scrape(tmp_path / name)


def test_counters_by_engine_and_over_all(tmp_path: Path) -> None:
    text = exposition(steps=5, drafted=15, accepted=[4, 2, 1], engine="10", finished=2)
    text += exposition(steps=7, drafted=20, accepted=[3, 3, 0], engine="2", finished=4)
    counted = counted_between(None, scrape(tmp_path, text))
    assert list(counted.by_engine) == ["2", "10"]
    assert counted.by_engine["10"][STEPS] == 5
    assert counted.total == {
        STEPS: 12,
        ("num_draft_tokens", None): 35,
        ("num_accepted_draft_tokens", None): 13,
        ("num_accepted_tokens_per_pos", 0): 7,
        ("num_accepted_tokens_per_pos", 1): 5,
        ("num_accepted_tokens_per_pos", 2): 1,
    }
    assert counted.num_finished == 6


def test_models_of_one_engine_add_up(tmp_path: Path) -> None:
    name = "vllm:spec_decode_num_drafts_total"
    text = series(name, 3, {"engine": "0", "model_name": "m"}) + series(name, 4, {"engine": "0", "model_name": "n"})
    assert counted_between(None, scrape(tmp_path, text)).by_engine == {"0": {STEPS: 7}}


def test_created_times_are_no_counters(tmp_path: Path) -> None:
    """Not even when they change between the scrapes, or are the only series there."""
    labels = {"engine": "0", "model_name": "m"}
    only_created = series("vllm:spec_decode_num_drafts_created", 1.7e9, labels)
    assert scrape(tmp_path, only_created).counts == {}
    before = scrape(tmp_path, exposition(steps=5, drafted=5, accepted=[1]), "before.prom")
    later = exposition(steps=6, drafted=6, accepted=[1]).replace("1700000000.0", "1800000000.0")
    assert counted_between(before, scrape(tmp_path, later)).total[STEPS] == 1


def test_the_differences_of_a_real_server() -> None:
    folder = ORACLE / "ngram_k3_n1-3"
    counted = counted_between(read_scrape(folder / "edges.before.prom"), read_scrape(folder / "edges.after.prom"))
    assert counted.total[STEPS] == 1449 - 1294
    assert counted.total["num_accepted_tokens_per_pos", 2] == 495 - 449
    assert counted.num_finished == 17


@pytest.mark.parametrize("prefix", ["vllm", "llamacpp"])
def test_engines_that_count_alike(tmp_path: Path, prefix: str) -> None:
    text = exposition(steps=5, drafted=15, accepted=[4, 2], prefix=prefix, engine=None)
    assert counted_between(None, scrape(tmp_path, text)).by_engine[""][STEPS] == 5


@pytest.mark.parametrize("number", ["5", "5.0", "5e0", "+5", "5 1795976550000"])
def test_a_whole_number_however_it_is_written(tmp_path: Path, number: str) -> None:
    """Servers that are not written in Python leave the point out; a federated scrape has times behind the values."""
    text = f'vllm:spec_decode_num_drafts_total{{engine="0"}} {number}\n'
    assert counted_between(None, scrape(tmp_path, text)).total[STEPS] == 5


def test_a_byte_order_mark_and_the_other_line_ends_are_no_fault(tmp_path: Path) -> None:
    text = exposition(steps=5, drafted=15, accepted=[4, 2]).replace("\n", "\r\n")
    (tmp_path / "after.prom").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert counted_between(None, read_scrape(tmp_path / "after.prom")).total[STEPS] == 5


def test_labels_may_come_in_any_order(tmp_path: Path) -> None:
    before = scrape(tmp_path, 'vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 5\n', "before.prom")
    after = scrape(tmp_path, 'vllm:spec_decode_num_drafts_total{ model_name="m", engine="0" } 7\n')
    assert counted_between(before, after).total[STEPS] == 2


def test_a_series_that_appears_in_between_began_at_zero(tmp_path: Path) -> None:
    before = scrape(tmp_path, exposition(steps=5, drafted=15, accepted=[]), "before.prom")
    after = scrape(tmp_path, exposition(steps=8, drafted=24, accepted=[2, 1]))
    total = counted_between(before, after).total
    assert (total[STEPS], total["num_accepted_tokens_per_pos", 1]) == (3, 1)


def test_a_counter_that_fell_is_refused(tmp_path: Path) -> None:
    before = scrape(tmp_path, exposition(steps=9, drafted=27, accepted=[5]), "before.prom")
    after = scrape(tmp_path, exposition(steps=9, drafted=26, accepted=[5]))
    with pytest.raises(UsageError) as error:
        counted_between(before, after)
    sentence = str(error.value)
    assert 'vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} fell from 27' in sentence
    assert "before.prom to 26 in" in sentence
    assert "\n" not in sentence


def test_an_engine_that_vanished_is_refused(tmp_path: Path) -> None:
    both = exposition(steps=9, drafted=27, accepted=[5]) + exposition(steps=1, drafted=3, accepted=[0], engine="1")
    before = scrape(tmp_path, both, "before.prom")
    after = scrape(tmp_path, exposition(steps=19, drafted=57, accepted=[5]))
    with pytest.raises(UsageError, match=r'engine="1".* is in .*before.prom and not in'):
        counted_between(before, after)


BAD = {
    "twice": (exposition(steps=1, drafted=1, accepted=[0]) * 2, "twice: give one scrape of one server"),
    "fraction": (series("vllm:spec_decode_num_drafts_total", 1.5, {"engine": "0"}), "is 1.5: a counter of tokens"),
    "negative": (series("vllm:spec_decode_num_drafts_total", -1, {"engine": "0"}), "is -1.0: a counter"),
    "nan": ('vllm:spec_decode_num_drafts_total{engine="0"} NaN\n', "is nan: a counter"),
    "infinite": ('vllm:spec_decode_num_drafts_total{engine="0"} +Inf\n', "is inf: a counter"),
    "no position": (series("vllm:spec_decode_num_accepted_tokens_per_pos_total", 1, {"engine": "0"}), '"position"'),
    "odd position": (
        series("vllm:spec_decode_num_accepted_tokens_per_pos_total", 1, {"position": "-1"}),
        'its label "position" must be a whole number',
    ),
    "html": ("<html><body>404</body></html>\n", "not in Prometheus' text format"),
    "json": ('{"prompt": "a"}\n', "not in Prometheus' text format"),
    "empty": ("", "holds no metric"),
    "comments": ("# nothing here\n", "holds no metric"),
    "unclosed": ('vllm:x{engine="0\n', "not in Prometheus' text format"),
    "no value": ("vllm:spec_decode_num_drafts_total\n", "not in Prometheus' text format"),
}


@pytest.mark.parametrize(("text", "expected"), BAD.values(), ids=BAD)
def test_what_is_no_scrape_is_one_sentence(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(UsageError) as error:
        scrape(tmp_path, text)
    assert expected in str(error.value)
    assert "after.prom" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_or_binary_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read .*: check the path"):
        read_scrape(tmp_path / "nowhere.prom")
    (tmp_path / "binary.prom").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not in Prometheus' text format"):
        read_scrape(tmp_path / "binary.prom")
