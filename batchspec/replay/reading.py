"""From the rows of a log to the outputs in them; a row without token ids is named, never guessed."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from batchspec.files.finished import record_index
from batchspec.files.source import Row
from batchspec.replay.choices import Unfit
from batchspec.replay.recorded import NO_INDEX, Cause, LeftOut, Recorded
from batchspec.replay.retokenise import Retokeniser
from batchspec.replay.rows import LogRow, whole_rows
from batchspec.replay.texts import Text, texts_of

__all__ = ["Reader"]


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
        for line, row in whole_rows(rows):
            if isinstance(row, Unfit):
                yield LeftOut(line=line, cause=row.cause)
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

    def _texts(self, row: LogRow) -> list[Text]:
        """Return the row's outputs, or raise Unfit."""
        if row.is_error:
            raise Unfit(Cause.ERROR)
        try:
            return texts_of(row.body, has_turns=row.has_turns)
        except Unfit as unfit:
            if unfit.cause is not Cause.NO_TOKEN_IDS or self._retokeniser is None:
                raise
            return self._retokeniser.texts_of(row.body, custom_id=row.custom_id)


def _recorded(text: Text, row: LogRow, *, line: int, number: int) -> Recorded:
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
