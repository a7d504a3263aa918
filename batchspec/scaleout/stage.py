"""A stage for the pipelines of Ray Data: lines in, records out, accounts beside them."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import orjson

from batchspec.api import Engine
from batchspec.files import Columns
from batchspec.files.decode import decode_row
from batchspec.files.intake import RowTaker
from batchspec.files.seen import SeenIds
from batchspec.reconcile import AcceptanceSums
from batchspec.report.bodies import body_facts
from batchspec.request import Intake
from batchspec.scaleout.worker import Given, Reply, Worker

__all__ = ["BatchSpecStage"]


class BatchSpecStage:
    """What ``Dataset.map_batches`` makes an actor of; calls overlap, so that the batch stays full from one to the next.

    A batch needs the columns ``text``, lines as ``batchspec run`` takes them, and ``index``, their places in the whole
    input, from which records get their ids. Each line keeps its columns and gets ``record``, the output line as JSON
    text, and ``account``, which ``batchspec.scaleout.StageTally`` adds up. That ids differ is not checked, and of two
    lines with one index only one may be in the dataset.

    Args:
        model: as in ``batchspec.Engine``.
        text_column: another name for ``text``, whose values are text or bytes.
        index_column: another name for ``index``.
        prompt_column: where a bare row keeps its prompt, if not under a usual name.
        id_column: where a row keeps its id, if not under a usual name.
        engine: further arguments of ``batchspec.Engine``.

    Raises:
        UsageError: as ``batchspec.Engine``.

    >>> lines = batchspec.scaleout.read_lines("prompts.jsonl")
    >>> workers = ray.data.ActorPoolStrategy(size=8, max_tasks_in_flight_per_actor=2)
    >>> served = lines.map_batches(
    ...     BatchSpecStage, fn_constructor_kwargs={"level": "detailed"}, batch_size=64, num_gpus=1, compute=workers,
    ...     max_concurrency=2,
    ... )
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        text_column: str = "text",
        index_column: str = "index",
        prompt_column: str | None = None,
        id_column: str | None = None,
        **engine: Any,
    ):
        self._text_column, self._index_column = text_column, index_column
        self._columns = Columns(prompt=prompt_column, id=id_column)
        self._name = uuid.uuid4().hex
        self._engine_thread = ThreadPoolExecutor(1, thread_name_prefix="batchspec-engine")
        self._worker = self._engine_thread.submit(lambda: Worker(Engine(model, **engine))).result()
        self._defaults = self._worker.facts().defaults
        self._turn = asyncio.Lock()
        self._inbox: list[Given] = []
        self._done: dict[int, dict[str, Any]] = {}
        self._handed = AcceptanceSums()
        self._num_replies = 0
        self._account: Mapping[str, Any] = {}

    async def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the batch with its records, in the order of its lines."""
        indices = [int(index) for index in batch[self._index_column]]
        self._inbox += map(self._given, indices, batch[self._text_column])
        while not all(index in self._done for index in indices):
            async with self._turn:
                if not all(index in self._done for index in indices):
                    given, self._inbox = self._inbox, []
                    loop = asyncio.get_running_loop()
                    self._take(await loop.run_in_executor(self._engine_thread, self._worker.exchange, given))
        records = [orjson.dumps(self._done.pop(index)).decode() for index in indices]
        accounts = [""] * max(0, len(records) - 1) + [self._document().decode()] * bool(records)
        return {**batch, "record": _column(records), "account": _column(accounts)}

    def _given(self, index: int, text: str | bytes) -> Given:
        line = text.encode() if isinstance(text, str) else bytes(text)
        where = f"line {index + 1}"
        return Given(line=self._parsed(line, index, where), where=where)

    def _parsed(self, line: bytes, index: int, where: str) -> Intake:
        with SeenIds() as seen:
            taker = RowTaker(
                where=lambda _: where,
                earlier=lambda _: where,
                columns=self._columns,
                defaults=self._defaults,
                seen=seen,
            )
            return taker.take(partial(decode_row, line), index=index, line=index + 1)

    def _take(self, reply: Reply) -> None:
        self._done |= reply.records
        for record in reply.records.values():
            stated = body_facts(record["response"]["body"]).speculative_decoding
            self._handed += AcceptanceSums() if stated is None else AcceptanceSums.from_document(stated)
        self._num_replies += 1
        self._account = reply.account

    def _document(self) -> bytes:
        return orjson.dumps(
            {"worker": self._name, "number": self._num_replies, "handed": self._handed.totals(), **self._account}
        )


def _column(values: Sequence[str]) -> Any:
    return np.array(values, dtype=object)
