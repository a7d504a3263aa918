"""The answers in an earlier run's responses, by request, as token ids."""

import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from batchspec.errors import UsageError
from batchspec.files.fields import MAX_TOKEN_ID
from batchspec.files.finding import find_parts, may_be_several
from batchspec.files.parts import Part, RemotePart
from batchspec.files.sequences import sequences_in

__all__ = ["RecordedAnswers"]


class RecordedAnswers:
    """Answers that stay in their file until they are asked for; of several to one request the last counts.

    Args:
        path: JSONL of OpenAI batch responses, such as a run's ``responses.jsonl``; also several files of them, or a
            URL, of which a copy is kept on disk meanwhile.
        encode: token ids of a text. The ids in the record are taken where there are some, with its choices or in our
            detailed metrics, since a text may be spelled in several ways.

    Raises:
        UsageError: the file cannot be read, or a line of it is not a JSON object; the last may be torn.
    """

    def __init__(self, path: str, *, encode: Callable[[str], list[int]]):
        self._path = path
        self._encode = encode
        self._places: dict[str, tuple[int, int]] = {}
        try:
            self._files = [self._on_disk(part) for part in (find_parts(path) if may_be_several(path) else [Part(path)])]
        except OSError as error:
            raise self._unreadable(error) from error
        for place, record in self._scan():
            name = record.get("custom_id")
            if isinstance(name, str) and _choices(record):
                self._places[name] = place

    def __len__(self) -> int:
        return len(self._places)

    def answer_to(self, custom_id: str, sample_index: int) -> NDArray[np.int64] | None:
        """Return the answer to a request, int64 (n,), or that of its first sample; None where there is none."""
        place = self._places.get(custom_id)
        if place is None:
            return None
        choices = _choices(self._record_at(place))
        return self._token_ids(choices[sample_index if sample_index < len(choices) else 0])

    def latest(self, most: int) -> Iterator[NDArray[np.int64]]:
        """Yield the last so many answers, in their order; -1 for all."""
        places = deque(sorted(self._places.values()), maxlen=None if most < 0 else most)
        for place in places:
            for choice in _choices(self._record_at(place)):
                yield self._token_ids(choice)

    def _token_ids(self, choice: Mapping[str, Any]) -> NDArray[np.int64]:
        token_ids = choice.get("token_ids")
        if not _are_ids(token_ids):
            message = choice.get("message")
            text = message.get("content") if isinstance(message, Mapping) else choice.get("text")
            token_ids = self._encode(text) if isinstance(text, str) else []
        return np.array(token_ids, dtype=np.int64)

    def _on_disk(self, part: Part) -> Path:
        """Return where a file can be read in any order; of a remote one, the path of a copy."""
        if not isinstance(part, RemotePart):
            return Path(part.path)
        descriptor, name = tempfile.mkstemp(prefix="batchspec-")
        weakref.finalize(self, Path(name).unlink, missing_ok=True)
        with part.open() as file, open(descriptor, "wb") as copy:
            shutil.copyfileobj(file, copy, length=2**20)
        return Path(name)

    def _record_at(self, place: tuple[int, int]) -> dict[str, Any]:
        number, offset = place
        try:
            with self._files[number].open("rb") as file:
                file.seek(offset)
                record: dict[str, Any] = orjson.loads(file.readline())
                return record
        except (OSError, orjson.JSONDecodeError) as error:
            raise UsageError(f"{self._path} changed while it was being recalled: leave it as it is") from error

    def _scan(self) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        """Yield the file and the offset in it, and the record, of every line."""
        for index, path in enumerate(self._files):
            offset = 0
            try:
                with path.open("rb") as file:
                    for number, line in enumerate(file, start=1):
                        record = _parse(line)
                        if record is None and line.endswith(b"\n") and line.strip():
                            raise self._no_record(index, number)
                        if record is not None:
                            yield (index, offset), record
                        offset += len(line)
            except OSError as error:
                raise self._unreadable(error) from error

    def _no_record(self, index: int, number: int) -> UsageError:
        name = self._path if len(self._files) == 1 else self._files[index].name
        return UsageError(
            f"{name} line {number} is not a record: recall from a file of responses, such as an earlier run's "
            "responses.jsonl"
        )

    def _unreadable(self, error: OSError) -> UsageError:
        return UsageError(
            f"{self._path} cannot be recalled ({error.strerror or error}): give an earlier run's responses.jsonl"
        )


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if type(index) is int else 0


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int and 0 <= one <= MAX_TOKEN_ID for one in value)


def _choices(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the choices of a response in the order of their numbers; none for an error, or a list of chunks.

    A choice without token ids gets those that detailed metrics tell of its sequence.
    """
    response = record.get("response")
    body = response.get("body") if isinstance(response, Mapping) else None
    choices = body.get("choices") if isinstance(body, Mapping) else None
    found = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    found.sort(key=_index)
    sequences = sequences_in(body)
    if not isinstance(sequences, list) or len(sequences) != len(found):
        return found
    return [
        choice | {"token_ids": sequence.get("token_ids")}
        if choice.get("token_ids") is None and isinstance(sequence, dict)
        else choice
        for choice, sequence in zip(found, sequences, strict=True)
    ]
