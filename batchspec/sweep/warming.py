"""The first steps of a process, which take longer than those after them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from batchspec.api import Engine, Model
from batchspec.errors import UsageError
from batchspec.files import open_source, read_requests
from batchspec.job.settings import JobSettings, parse_speculative
from batchspec.request import Request
from batchspec.sweep.settings import SweepSettings

__all__ = ["warm_up"]

_NUM_REQUESTS = 8
_MAX_TOKENS = 16


def warm_up(model: Model, settings: SweepSettings) -> None:
    """Serve the beginnings of a few answers, so that compiling and first allocations are not counted to any point.

    Args:
        model: in memory.
        settings: of the sweep, with the requests.
    """
    job = settings.job
    try:
        engine = Engine(
            model,
            max_num_seqs=_NUM_REQUESTS // 2,
            max_model_len=job.engine.max_model_len,
            kv_cache_memory=job.engine.kv_cache_memory,
            speculative_config=parse_speculative(None, {}),
            defaults=job.defaults,
        )
        for _ in engine.run(_beginnings(job, engine)):
            pass
    except UsageError:
        return  # what is wrong shows at the points


def _beginnings(job: JobSettings, engine: Engine) -> Iterator[Request]:
    rows = read_requests(open_source(job.input), columns=job.columns, defaults=engine.defaults)
    for request in islice((row for row in rows if isinstance(row, Request)), _NUM_REQUESTS):
        max_tokens = min(request.sampling.max_tokens or _MAX_TOKENS, _MAX_TOKENS)
        yield replace(request, turns=(), sampling=replace(request.sampling, max_tokens=max_tokens, min_tokens=0, n=1))
