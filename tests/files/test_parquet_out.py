from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from batchspec.errors import UsageError
from batchspec.files import parquet_out, read_responses, responses_to_parquet
from batchspec.records import Choice, Usage, error_record, response_record
from batchspec.request import ChatPrompt, Endpoint, RejectedLine, Request, TextPrompt

from .feeding import jsonl, user


def response(index: int, *, endpoint: Endpoint = Endpoint.CHAT, **fields: Any) -> dict[str, Any]:
    prompt = ChatPrompt(messages=(user("Hi"),)) if endpoint is Endpoint.CHAT else TextPrompt(text="Hi")
    return response_record(
        Request(index=index, line=index + 1, custom_id=f"r{index}", endpoint=endpoint, prompts=(prompt,), **fields),
        choices=[Choice(text=f"first \u2028 {index}", finish_reason="stop"), Choice(text="b", finish_reason="length")],
        usage=Usage(prompt_tokens=3, completion_tokens=4),
        metrics={"speculative_decoding": {"mean_acceptance_length": 1.2325581395348837}},
        model_name="m",
        created=0,
    )


RECORDS = [
    response(0, category="qa"),
    response(1, endpoint=Endpoint.COMPLETIONS),
    error_record(RejectedLine(index=2, line=3, custom_id=None, message="line 3: bad", param="n")),
]


@pytest.fixture
def paths(tmp_path: Path) -> dict[str, Path]:
    return {"jsonl_path": tmp_path / "responses.jsonl", "parquet_path": tmp_path / "responses.parquet"}


def test_records_survive_the_round_trip(paths: dict[str, Path]) -> None:
    paths["jsonl_path"].write_bytes(jsonl(*RECORDS))
    assert responses_to_parquet(jsonl_path=paths["jsonl_path"], parquet_path=paths["parquet_path"]) == 3
    back = list(read_responses(paths["parquet_path"]))
    assert [orjson.dumps(record) for record in back] == [orjson.dumps(record) for record in RECORDS]


def test_what_people_query_has_a_column(paths: dict[str, Path]) -> None:
    paths["jsonl_path"].write_bytes(jsonl(*RECORDS))
    responses_to_parquet(jsonl_path=paths["jsonl_path"], parquet_path=paths["parquet_path"])
    first, second, third = pq.read_table(paths["parquet_path"]).to_pylist()
    assert pq.read_schema(paths["parquet_path"]) == parquet_out.RESPONSE_SCHEMA
    assert (first["id"], first["custom_id"], first["category"]) == ("batch_req_00000000", "r0", "qa")
    assert (first["text"], first["finish_reason"], first["status_code"]) == ("first \u2028 0", "stop", 200)
    assert (first["prompt_tokens"], first["completion_tokens"], first["error"]) == (3, 4, None)
    assert (second["text"], second["category"], second["error_message"]) == ("first \u2028 1", None, None)
    assert (third["text"], third["status_code"], third["error_message"]) == (None, 400, "line 3: bad")
    assert orjson.loads(third["error"])["param"] == "n"


def test_no_records_make_a_file_with_the_schema(paths: dict[str, Path]) -> None:
    paths["jsonl_path"].write_bytes(b"")
    assert responses_to_parquet(jsonl_path=paths["jsonl_path"], parquet_path=paths["parquet_path"]) == 0
    assert pq.read_schema(paths["parquet_path"]) == parquet_out.RESPONSE_SCHEMA
    assert list(read_responses(paths["parquet_path"])) == []


@pytest.mark.parametrize(("limit", "value", "groups"), [("_GROUP_ROWS", 3, 4), ("GROUP_BYTES", 1, 10)])
def test_row_groups_are_bounded(
    paths: dict[str, Path], monkeypatch: pytest.MonkeyPatch, limit: str, value: int, groups: int
) -> None:
    monkeypatch.setattr(parquet_out, limit, value)
    paths["jsonl_path"].write_bytes(jsonl(*(response(i) for i in range(10))))
    responses_to_parquet(jsonl_path=paths["jsonl_path"], parquet_path=paths["parquet_path"])
    assert pq.ParquetFile(paths["parquet_path"]).num_row_groups == groups
    assert [record["custom_id"] for record in read_responses(paths["parquet_path"])] == [f"r{i}" for i in range(10)]


def test_a_failure_leaves_the_old_file_and_no_temporary_one(paths: dict[str, Path]) -> None:
    paths["parquet_path"].write_bytes(b"old")
    paths["jsonl_path"].write_bytes(jsonl(RECORDS[0]) + b"nonsense\n")
    with pytest.raises(UsageError, match="line 2 is not a record"):
        responses_to_parquet(jsonl_path=paths["jsonl_path"], parquet_path=paths["parquet_path"])
    assert paths["parquet_path"].read_bytes() == b"old"
    assert len(list(paths["parquet_path"].parent.iterdir())) == 2


def test_a_place_that_cannot_be_written_is_a_sentence(paths: dict[str, Path]) -> None:
    paths["jsonl_path"].write_bytes(jsonl(*RECORDS))
    with pytest.raises(UsageError, match="cannot be written"):
        responses_to_parquet(jsonl_path=paths["jsonl_path"], parquet_path=paths["jsonl_path"] / "x.parquet")


def test_a_file_of_another_kind_is_a_sentence(paths: dict[str, Path]) -> None:
    paths["parquet_path"].write_bytes(b"PAR1")
    with pytest.raises(UsageError, match="is not a Parquet file of responses"):
        list(read_responses(paths["parquet_path"]))
