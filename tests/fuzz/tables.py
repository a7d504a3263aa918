"""Parquet files of any types that a column can have."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from .making import TEXTS, json_text, mutated, strange

__all__ = ["write_table"]

_NAMES = ["prompt", "id", "custom_id", "messages", "turns", "body", "method", "url", "category", "max_tokens", "n"]
_NAMES += ["temperature", "stop", "logit_bias", "seed", "tools", "response", "error", "metrics", "x\x1b[31m", ""]
_NAMES += ["metadata", "chat_template_kwargs", "response_format", "logprobs", "stream", "model", "usage", "choices"]
_TIME = datetime(2020, 2, 3, 4, 5, 6, 789)
_MESSAGE = pa.struct([pa.field("role", pa.string()), pa.field("content", pa.string())])
_WHEN = pa.struct([pa.field("when", pa.timestamp("us"))])
_BARE = pa.struct([pa.field("prompt", pa.string()), pa.field("deep", _WHEN)])
_BODY = pa.struct([pa.field("messages", pa.list_(_MESSAGE)), pa.field("stop", pa.null())])
_CODECS: tuple[Literal["none", "snappy", "zstd", "gzip"], ...] = ("none", "snappy", "zstd", "gzip")


def _column(dice: Random, size: int) -> Any:
    """An array of some type, with nulls in it half of the time."""
    text = [dice.choice(TEXTS)[:200] for _ in range(size)]
    number = [dice.choice([0, 1, -1, 5, 2**31 - 1]) for _ in range(size)]
    made: list[tuple[list[Any], Any]] = [
        (text, pa.string()),
        (text, pa.large_string()),
        ([json_text(mutated(strange(dice), dice), dice).decode("utf-8", "replace") for _ in range(size)], pa.string()),
        ([one.encode() + bytes([dice.randrange(256)]) for one in text], pa.binary()),
        ([b"ab"] * size, pa.binary(2)),
        (number, pa.int32()),
        ([2**63 + abs(one) for one in number], pa.uint64()),
        ([dice.choice([0.5, float("nan"), float("inf"), -0.0, 1e300]) for _ in range(size)], pa.float64()),
        ([1.5] * size, pa.float16()),
        ([one > 0 for one in number], pa.bool_()),
        ([Decimal(one).scaleb(-3) for one in number], pa.decimal128(38, 3)),
        ([Decimal(10) ** 60 + one for one in number], pa.decimal256(76, 0)),
        ([_TIME] * size, pa.timestamp(dice.choice(["s", "ms", "us", "ns"]), tz=dice.choice([None, "UTC"]))),
        ([date(1, 1, 1)] * size, pa.date32()),
        ([time(1, 2, 3)] * size, pa.time64("ns")),
        ([timedelta(days=9)] * size, pa.duration("us")),
        ([datetime.now(UTC)] * size, pa.timestamp("ns", tz="Asia/Kolkata")),
        ([None] * size, pa.null()),
        ([[1, None, 3]] * size, pa.list_(pa.int64())),
        ([text[:2]] * size, pa.large_list(pa.string())),
        ([[1.0, 2.0]] * size, pa.list_(pa.float32(), 2)),
        ([[("a", 1), ("a", None)]] * size, pa.map_(pa.string(), pa.int64())),
        ([[("prompt", "x")]] * size, pa.map_(pa.string(), pa.string())),
        ([[{"role": "user", "content": one}] for one in text], pa.list_(_MESSAGE)),
        ([{"prompt": one, "deep": {"when": _TIME}} for one in text], _BARE),
        ([{"messages": [{"role": "user", "content": one}], "stop": None} for one in text], _BODY),
        ([[[b"x"], None]] * size, pa.list_(pa.list_(pa.binary()))),
    ]
    values, kind = dice.choice(made)
    values = [None if dice.random() < 0.3 else value for value in values] if dice.random() < 0.5 else values
    array = pa.array(values, type=kind)
    return array.dictionary_encode() if pa.types.is_string(kind) and dice.random() < 0.3 else array


def write_table(path: Path, dice: Random) -> int:
    """Write a table of a few columns and return its rows; now and then the file is damaged."""
    size = dice.choice([0, 1, 2, 5, 70])
    names = dice.sample(_NAMES, dice.randrange(1, 6))
    table = pa.table([_column(dice, size) for _ in names], names=names)
    codec = dice.choice(_CODECS)
    pq.write_table(
        table, path, compression=codec, use_dictionary=dice.random() < 0.5, row_group_size=dice.choice([1, 7, 64])
    )
    return size
