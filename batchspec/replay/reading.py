"""From the rows of a log to the outputs in them; a row without token ids is named, never guessed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from batchspec.errors import RequestError
from batchspec.files.decode import decode_row
from batchspec.files.finished import record_index
from batchspec.files.source import Row
from batchspec.ingest.streams import is_chunk
from batchspec.replay.choices import Unfit
from batchspec.replay.recorded import NO_INDEX, Cause, LeftOut, Recorded
from batchspec.replay.retokenise import Retokeniser
from batchspec.replay.texts import Text, texts_of

__all__ = ["Reader"]

_NESTED = ("response", "error", "sampling")  # kept as JSON text in Parquet files


class Reader:
    """Reads logs one after another and numbers the responses that can be replayed.

    Args:
        retokeniser: for responses that hold text alone; None to leave those out.
        keeps_sampling: whether outputs carry their request's parameters.
    """

    def __init__(self, retokeniser: Retokeniser | None = None, *, keeps_sampling: bool = False):
        self._retokeniser = retokeniser
        self._keeps_sampling = keeps_sampling
        self._num_rows = 0

    def read(self, rows: Iterable[Row]) -> Iterator[Recorded | LeftOut]:
        """Yield every output of a log, or what is missing of a row.

        Args:
            rows: of the log, as ``InputSource.rows`` yields them.
        """
        for line, content in rows:
            try:
                row = _Row.of(content)
            except Unfit as unfit:
                yield LeftOut(line=line, cause=unfit.cause)
                continue
            try:
                texts = self._texts(row)
            except Unfit as unfit:
                yield LeftOut(line=line, cause=unfit.cause, custom_id=row.custom_id)
                continue
            for text in texts:
                one = _recorded(text, row, line=line, number=self._num_rows)
                yield replace(one, sampling=row.sampling) if self._keeps_sampling else one
            self._num_rows += 1

    def _texts(self, row: "_Row") -> list[Text]:
        """Return the row's outputs, or raise Unfit."""
        if row.is_error:
            raise Unfit(Cause.ERROR)
        try:
            return texts_of(row.body, has_turns=row.has_turns)
        except Unfit as unfit:
            if unfit.cause is not Cause.NO_TOKEN_IDS or self._retokeniser is None:
                raise
            return self._retokeniser.texts_of(row.body, custom_id=row.custom_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Row:
    """A row, whatever stands around the response.

    Attributes:
        body: of the response.
        outer: the line around it; the body itself where there is none.
        is_error: whether the request was not served.
    """

    body: Any
    outer: Mapping[str, Any]
    is_error: bool

    @classmethod
    def of(cls, content: bytes | dict[str, Any] | RequestError | None) -> "_Row":
        """Return the row that a line or a Parquet row holds, or raise Unfit."""
        try:
            if isinstance(content, RequestError):
                raise content
            outer = _unpacked(content) if isinstance(content, dict) else decode_row(content)
        except RequestError:
            raise Unfit(Cause.MALFORMED) from None
        if "response" not in outer and is_chunk(outer):
            raise Unfit(Cause.CHUNK)
        response = outer.get("response", outer)
        if not isinstance(response, dict):
            return cls(body=None, outer=outer, is_error=bool(outer.get("error")))
        body = response.get("body", response)
        is_error = bool(outer.get("error")) or response.get("status_code", 200) != 200
        return cls(body=body, outer=outer, is_error=is_error or (isinstance(body, dict) and bool(body.get("error"))))

    @property
    def custom_id(self) -> str | None:
        """The request's name; that of the response where there is none."""
        inner = self.body.get("id") if isinstance(self.body, dict) else None
        found = self.outer.get("custom_id", inner)
        return found if isinstance(found, str) else None

    @property
    def sampling(self) -> Mapping[str, Any] | None:
        """What our own records tell of the request; None in those of others."""
        found = self.outer.get("sampling")
        return found if isinstance(found, dict) else None

    @property
    def has_turns(self) -> bool:
        """Whether several choices are the turns of a conversation: in our own records, unless it asked for samples."""
        return self.sampling is not None and self.sampling.get("n", 1) == 1


def _unpacked(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a Parquet file with what is kept as JSON text decoded."""
    return {name: _decoded(value) if name in _NESTED else value for name, value in row.items()}


def _decoded(value: Any) -> Any:
    try:
        return orjson.loads(value) if isinstance(value, str) else value
    except orjson.JSONDecodeError:
        return value


def _recorded(text: Text, row: _Row, *, line: int, number: int) -> Recorded:
    index, category = record_index(row.outer), row.outer.get("category")
    return Recorded(
        prompt=text.prompt,
        output=text.output,
        cut=text.cut,
        custom_id=row.custom_id or f"line {line}",
        index=NO_INDEX if index is None else index,
        line=line,
        row=number,
        sample_index=text.sample_index,
        category=category if isinstance(category, str) else None,
        is_retokenised=text.is_retokenised,
        has_grammar=row.sampling is not None and "structured" in row.sampling,
    )
