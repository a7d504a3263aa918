"""Ways to put bytes and rows in front of the reader."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from batchspec.errors import RequestError
from batchspec.files import Columns, RowDefaults, open_source, parse_row, read_requests
from batchspec.request import Intake, RejectedLine, Request


def read(path: Path | str, *, columns: Columns | None = None, defaults: RowDefaults | None = None) -> list[Intake]:
    return list(read_requests(open_source(path), columns=columns or Columns(), defaults=defaults or RowDefaults()))


def parse(row: dict[str, Any], *, columns: Columns | None = None, defaults: RowDefaults | None = None) -> Request:
    return parse_row(row, index=0, line=1, columns=columns or Columns(), defaults=defaults or RowDefaults())


def batch_line(custom_id: str = "a", url: str = "/v1/completions", **body: Any) -> dict[str, Any]:
    if not body.keys() & {"prompt", "messages"}:
        body |= {"prompt": "Hi"} if url.endswith("/completions") and "chat" not in url else {"messages": [user("Hi")]}
    return {"custom_id": custom_id, "method": "POST", "url": url, "body": body}


def chat_line(custom_id: str = "a", **body: Any) -> dict[str, Any]:
    return batch_line(custom_id, "/v1/chat/completions", **body)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def jsonl(*rows: Any) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def served(intake: Intake) -> Request:
    assert isinstance(intake, Request), intake
    return intake


def rejected(intake: Intake) -> RejectedLine:
    assert isinstance(intake, RejectedLine), intake
    return intake


def error_of(
    row: dict[str, Any], *, columns: Columns | None = None, defaults: RowDefaults | None = None
) -> RequestError:
    with pytest.raises(RequestError) as caught:
        parse(row, columns=columns, defaults=defaults)
    assert ": " in caught.value.message
    assert "\n" not in caught.value.message
    return caught.value
