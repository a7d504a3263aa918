"""Logs for the tests, and what is read from them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from batchspec.drafting import SpeculativeConfig
from batchspec.files.source import open_source
from batchspec.replay.lookups import find_lookups
from batchspec.replay.reading import Reader
from batchspec.replay.recorded import LeftOut, Recorded
from batchspec.replay.replaying import replay_logs
from batchspec.replay.settings import ReplaySettings
from batchspec.replay.trace import NO_LIMIT, Trace, take_steps

__all__ = ["ORACLE", "by_lookups", "config_of", "left_out_in", "recorded_in", "replayed", "write_log"]

ORACLE = Path(__file__).parents[1] / "data" / "oracle"


def write_log(path: Path, rows: Iterable[Any]) -> Path:
    """Write a JSONL file; a row that is text stays as it is."""
    path.write_bytes(b"".join((row.encode() if isinstance(row, str) else orjson.dumps(row)) + b"\n" for row in rows))
    return path


def recorded_in(path: Path, **options: Any) -> list[Recorded]:
    return [one for one in Reader(**options).read(open_source(path).rows()) if isinstance(one, Recorded)]


def left_out_in(path: Path, **options: Any) -> list[tuple[int, str, str | None]]:
    """Line, cause and id of every row that cannot be replayed."""
    found = Reader(**options).read(open_source(path).rows())
    return [(one.line, one.cause.value, one.custom_id) for one in found if isinstance(one, LeftOut)]


def config_of(method: str, k: int, **keys: Any) -> SpeculativeConfig:
    return SpeculativeConfig.from_mapping({"method": method, "num_speculative_tokens": k} | keys)


def by_lookups(one: Recorded, *, k: int, low: int, high: int, room: int = NO_LIMIT) -> Trace:
    """The steps of prompt lookup over an output."""
    lookups = find_lookups(
        np.concatenate([one.prompt, one.output, one.cut]),
        num_prompt_tokens=len(one.prompt),
        num_output_tokens=len(one.output),
        min_length=low,
        max_length=high,
        most=k,
    )
    return take_steps(lookups, num_spec_tokens=k, room=room)


def replayed(*paths: Path, configs: Iterable[SpeculativeConfig], **options: Any) -> dict[str, Any]:
    """The document of a replay."""
    settings = ReplaySettings(paths=tuple(map(str, paths)), configs=tuple(configs), **options)
    return replay_logs(settings)
