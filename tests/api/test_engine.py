"""The engine for programs: what it takes, what it gives back, and that it survives being left half-way."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from batchspec import Engine
from batchspec.errors import UsageError
from batchspec.files import Columns, RowDefaults, parse_row
from batchspec.reconcile import AcceptanceSums
from batchspec.report import Aggregate
from batchspec.request import RejectedLine

from .conftest import MakeEngine, prompt, without_time


def run(engine: Engine, rows: Iterable[Any], **settings: Any) -> list[dict[str, Any]]:
    return list(engine.run(rows, **settings))


def num_positions(engine: Engine) -> int:
    counts = engine.counters.totals()["num_accepted_tokens_per_pos"]
    assert isinstance(counts, list)
    return len(counts)


def test_every_kind_of_row_gets_a_record_in_its_place(engine: Engine) -> None:
    rows = [
        prompt("a", temperature=0),
        {"prompt": "Once", "id": 7, "max_tokens": 3},
        {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3, "category": "talk"},
        {"turns": ["Say hello.", "Say it again."], "max_tokens": 3},
    ]
    records = run(engine, rows)
    assert [record["custom_id"] for record in records] == ["a", "7", "line-3", "line-4"]
    assert [record["error"] for record in records] == [None] * 4
    assert records[2]["category"] == "talk"
    assert len(records[3]["response"]["body"]["choices"]) == 2
    assert records[0]["response"]["body"]["metrics"]["speculative_decoding"]["num_spec_steps"] > 0


def test_what_cannot_be_served_is_a_record_that_says_why(engine: Engine) -> None:
    rows = [prompt("a"), prompt("a"), {"text": "?"}, prompt("b", temperature=9), {}]
    records = run(engine, rows)
    assert [record["response"]["status_code"] for record in records] == [200, 400, 400, 400, 400]
    for number, record in enumerate(records[1:], start=2):
        assert record["error"]["message"].startswith(f"request {number}: ")
    assert records[1]["error"]["code"] == "duplicate_custom_id"
    assert "already used on request 1" in records[1]["error"]["message"]
    (named,) = run(engine, [{}], where="row")
    assert named["error"]["message"].startswith("row 1: ")


def test_what_was_parsed_before_is_taken_as_it_is(engine: Engine) -> None:
    request = parse_row(prompt("p"), index=4, line=9, columns=Columns(), defaults=engine.defaults)
    rejected = RejectedLine(index=6, line=11, custom_id=None, message="no")
    records = run(engine, [request, rejected, prompt("q")])
    assert [record["id"] for record in records] == [f"batch_req_{index:08}" for index in (4, 6, 7)]
    assert records[1]["error"]["message"] == "no"


@pytest.mark.parametrize("item", ["a prompt", 3, None])
def test_an_item_of_another_kind_is_a_usage_error(engine: Engine, item: Any) -> None:
    with pytest.raises(UsageError, match=f"request 2 is a {type(item).__name__}"):
        run(engine, [prompt("a"), item])
    assert len(run(engine, [prompt("a")])) == 1


def test_an_index_that_does_not_grow_is_a_usage_error(engine: Engine) -> None:
    request = parse_row(prompt("p"), index=0, line=1, columns=Columns(), defaults=engine.defaults)
    with pytest.raises(UsageError, match="let the indices grow"):
        run(engine, [request, request])


def test_requests_are_read_only_as_there_is_room(engine: Engine) -> None:
    taken = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield prompt(f"{number}", max_tokens=4)

    records = engine.run(rows())
    assert taken == 0
    next(records)
    assert taken < 20


def test_a_second_run_is_a_run_like_the_first(engine: Engine) -> None:
    rows = [prompt(f"{number}", temperature=0.8) for number in range(6)]
    first, second = run(engine, rows), run(engine, rows)
    assert without_time(first) == without_time(second)
    assert engine.progress.num_done == 12


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("num_read", [0, 1, 5])
def test_a_run_that_was_left_lets_the_next_one_be_served(
    make_engine: MakeEngine, in_order: bool, num_read: int
) -> None:
    """Its counts stay in the counters, and the reconciliation names them, at every moment."""
    engine, aggregate = make_engine(level="detailed"), Aggregate()
    rows = [prompt(f"{number}", temperature=0, max_tokens=30 if number == 5 else 9) for number in range(12)]
    left = engine.run(rows, in_order=in_order)
    for _ in range(num_read):
        aggregate.add(next(left))
    assert is_exact(engine, aggregate)
    left.close()
    assert is_exact(engine, aggregate)
    for record in engine.run(rows):
        aggregate.add(record)
    assert is_exact(engine, aggregate)
    assert ("aborted" in engine.unreported()) == (num_read > 0)
    assert aggregate.document()["requests"]["num_served"] == num_read + len(rows)


def is_exact(engine: Engine, aggregate: Aggregate) -> bool:
    reconciliation = engine.reconcile(aggregate.sums())
    assert reconciliation is not None
    return reconciliation.is_exact


def test_beginning_a_run_ends_the_one_before(engine: Engine) -> None:
    rows = [prompt(f"{number}") for number in range(9)]
    first = engine.run(rows)
    next(first)
    assert len(run(engine, rows)) == 9
    assert list(first) == []


def test_input_that_fails_leaves_the_engine_usable(engine: Engine) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield prompt("a", max_tokens=20)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        run(engine, rows())
    assert len(run(engine, [prompt("a")])) == 1


def test_stop_ends_a_run_behind_its_step(engine: Engine) -> None:
    records = engine.run(prompt(f"{number}") for number in range(50))
    next(records)
    engine.stop()
    assert len(list(records)) < 20
    assert engine.is_stopped
    assert engine.in_flight() != AcceptanceSums()
    assert len(run(engine, [prompt("a")])) == 1
    assert not engine.is_stopped


def test_a_stop_before_the_run_holds_for_it(engine: Engine) -> None:
    engine.stop()
    assert run(engine, [prompt("a")]) == []
    assert engine.is_stopped
    assert len(run(engine, [prompt("a")])) == 1


def test_defaults_are_the_engines(make_engine: MakeEngine) -> None:
    engine = make_engine(defaults=RowDefaults(max_tokens=5, temperature=0.0, ignore_eos=True))
    short, longer = run(engine, [{"prompt": "Once"}, {"prompt": "Once", "max_tokens": 7}])
    assert short["response"]["body"]["usage"]["completion_tokens"] == 5
    assert longer["response"]["body"]["usage"]["completion_tokens"] == 7


def test_the_drafter_is_the_command_lines_unless_it_is_named(make_engine: MakeEngine) -> None:
    assert num_positions(make_engine()) == 3
    engine = make_engine(speculative_config={"method": "ngram", "num_speculative_tokens": 5})
    assert num_positions(engine) == 5
    engine = make_engine(speculative_config={"method": "none"}, level="none")
    (record,) = run(engine, [prompt("a")])
    assert record["response"]["body"]["metrics"] is None
    assert engine.reconcile(AcceptanceSums()) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": "most"}, "'most' is not known; choose one of none, summary, detailed"),
        ({"max_num_seqs": 0}, "at least 1"),
        ({"max_model_len": 10**6}, "beyond the model's context"),
        ({"speculative_config": {"k": 3}}, "unknown key 'k'"),
        ({"speculative_config": {"method": "none"}}, "switches it off"),
    ],
)
def test_a_wrong_setting_is_a_usage_error(make_engine: MakeEngine, settings: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_engine(**settings)


def test_what_the_settings_came_to_is_told(engine: Engine) -> None:
    assert engine.model_name == "target"
    assert engine.dimensions["max_model_len"] == 2048
    assert set(engine.dimensions) == {"max_model_len", "num_blocks", "block_size", "num_threads"}
    assert (engine.resolved["dtype"], engine.resolved["device"]) == ("float32", "cpu")
    assert engine.resolved["sampling"]["temperature"] == 1.0
