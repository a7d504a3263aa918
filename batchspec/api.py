"""The engine for Python programs; the command line is built on nothing else.

>>> from batchspec import Engine
>>> engine = Engine(level="summary")
>>> for record in engine.run([{"prompt": "Monday, Tuesday,", "temperature": 0}]):
...     print(record["response"]["body"]["choices"][0]["text"])

Nothing heavy is imported before an engine is made.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from batchspec.acceptance import AcceptanceRecorder, Level
from batchspec.counters import Counters
from batchspec.desk import Progress
from batchspec.drafting import SpeculativeConfig
from batchspec.drafting.generations import Generations
from batchspec.errors import UsageError
from batchspec.files import Columns, RowDefaults, parse_row
from batchspec.files.intake import plain_row, take_rows
from batchspec.reconcile import AcceptanceSums, Reconciliation, reconcile
from batchspec.report.bodies import body_facts
from batchspec.request import Intake, NotYet, Request, Where
from batchspec.settings import EngineSettings
from batchspec.shared_model import Model, loaded
from batchspec.source_counters import SourceCounters

__all__ = ["Engine", "Model", "Progress"]

_SAMPLING = ("max_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty")
_IN_GENERATION_CONFIG = {"max_tokens": "max_new_tokens"}


class Engine:
    """A model that serves requests with speculative decoding.

    One run or stream is served at a time: beginning another ends one that was not read to its end. What that one had
    begun stays in the counters and is named ``aborted`` in the reconciliation.

    Args:
        model: a directory, a hub id or a ``.gguf`` file; None for the embedded model. Or a ``Model``, which was loaded
            with a device, a dtype and so on already; engines that share one must not run at the same time.
        device: auto, cpu or cuda.
        dtype: auto, float32, bfloat16 or float16.
        max_num_seqs: the most sequences in the running batch.
        max_num_batched_tokens: the most tokens in one forward pass.
        max_model_len: the most tokens in a sequence; None for the model's context.
        kv_cache_memory: bytes for keys and values; None for enough for a full batch, within a share of free memory.
        enable_prefix_caching: compute beginnings that several requests share once; changes nothing but the speed.
        speculative_config: the drafter, as a mapping with vLLM's keys; None for n-grams of 1 to 3 tokens and k = 3.
        level: acceptance metrics in every record: none, summary or detailed.
        timing: timing fields in every record.
        generation_config: where sampling defaults come from behind ``defaults``: ``auto`` for the model's own
            generation_config.json, ``openai`` for no file, or a directory with such a file.
        model_impl: whose layers run the model: ``batchspec`` for our own, on the CPU and for the common families,
            ``transformers``, or ``auto`` for the former where they know the model.
        trust_remote_code: run Python files of the model's repository, if it has an architecture of its own.
        allow_pickle: also read weights from pickle files, which can run code; else only safetensors and GGUF.
        defaults: what requests are sampled with where they do not say.

    Raises:
        UsageError: a setting cannot work, or does not fit the model or the memory.
        ModelError: the model cannot be loaded or run.

    >>> engine = Engine("./my-model", speculative_config={"method": "ngram", "num_speculative_tokens": 5})
    >>> engine = Engine(defaults=RowDefaults(temperature=0.0, max_tokens=64))
    """

    def __init__(
        self,
        model: "str | Path | Model | None" = None,
        *,
        device: str = "auto",
        dtype: str = "auto",
        max_num_seqs: int = 64,
        max_num_batched_tokens: int = 2048,
        max_model_len: int | None = None,
        kv_cache_memory: int | None = None,
        enable_prefix_caching: bool = True,
        speculative_config: SpeculativeConfig | Mapping[str, Any] | None = None,
        level: Level | str = "none",
        timing: bool = False,
        generation_config: str = "auto",
        model_impl: str = "auto",
        trust_remote_code: bool = False,
        allow_pickle: bool = False,
        defaults: RowDefaults | None = None,
    ):
        settings = EngineSettings(
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            max_model_len=max_model_len,
            kv_cache_memory=kv_cache_memory,
            prefix_caching=enable_prefix_caching,
            speculative=_speculative(speculative_config),
            level=_level(level),
            timing=timing,
        )
        settings.check()
        of_model = {
            "device": device,
            "dtype": dtype,
            "generation_config": generation_config,
            "model_impl": model_impl,
            "trust_remote_code": trust_remote_code,
            "allow_pickle": allow_pickle,
        }
        launched = loaded(model, of_model).launch(settings)
        given = defaults or RowDefaults()
        self._core = launched.core
        self._dimensions = launched.dimensions
        self._defaults = given.over(launched.generation_defaults.values)
        self._resolved = {
            **launched.resolved,
            "sampling": {name: getattr(self._defaults, name) for name in _SAMPLING},
            "sampling_from": {name: _origin(name, given, launched.generation_defaults.values) for name in _SAMPLING},
            "generation_config_unused": list(launched.generation_defaults.unused),
        }
        self._notes = launched.notes
        self._work: Generator[dict[str, Any], None, None] | None = None
        self._aborted = AcceptanceSums()
        self._is_stopped = False

    def run(
        self,
        requests: Iterable[Mapping[str, Any] | Intake | NotYet],
        *,
        in_order: bool = True,
        where: Where = "request",
        between_steps: Callable[[], None] = lambda: None,
    ) -> Generator[dict[str, Any], None, None]:
        """Serve requests and yield an output record for each; they are read only as there is room for them.

        A mapping that cannot be served, or whose id was used before, gets an error record in its place.

        Args:
            requests: OpenAI batch lines, bare rows such as ``{"prompt": "…"}``, or what was parsed before, each with an
                index of its own, which grows if records leave in order. ``NotYet`` says that there is none just now.
            in_order: yield records in the order of the requests; otherwise as they are done.
            where: how error messages name a request: a function of its number, or what stands before the number.
            between_steps: called behind every step of the engine, when all records that are done have left that may.

        Raises:
            UsageError: an item is none of these.

        >>> rows = [{"custom_id": "a", "prompt": "Once"}, {"messages": [{"role": "user", "content": "Hello"}]}]
        >>> texts = {record["custom_id"]: record["response"]["body"]["choices"] for record in engine.run(rows)}
        """
        self._begin()
        intake = take_rows(requests, where=where, defaults=self._defaults, is_sorted=in_order)
        yield from self._serve(self._core.run(intake, in_order=in_order, where=where, between_steps=between_steps))

    def stream(self, request: Mapping[str, Any] | Request) -> Generator[dict[str, Any], None, None]:
        """Serve one request and yield the chunks that a server would send, each as soon as its step is done.

        Args:
            request: as in ``run``; it need not ask to be streamed.

        Raises:
            RequestError: it cannot be served; raised here if that shows in the request itself, else in the iteration.
            UsageError: it is neither a mapping nor a parsed request.

        >>> for chunk in engine.stream({"prompt": "Once upon a time", "max_tokens": 40}):
        ...     print(*(choice["text"] for choice in chunk["choices"]), end="", flush=True)
        """
        if not isinstance(request, Request):
            if not isinstance(request, Mapping):
                raise UsageError(f"the request is a {type(request).__name__}: give a mapping or a parsed request")
            row = _asking_for_a_stream(plain_row(request))
            request = parse_row(row, index=0, line=1, columns=Columns(), defaults=self._defaults)
        return self._stream(replace(request, stream=True))

    def stop(self) -> None:
        """End the run or stream behind its current step; may be called from a signal handler or another thread."""
        self._core.stop()

    @property
    def is_stopped(self) -> bool:
        """Whether ``stop`` ended the last run or stream."""
        return self._is_stopped

    @property
    def progress(self) -> Progress:
        """Counts of what was done so far; they grow while they are read."""
        return self._core.progress

    @property
    def counters(self) -> Counters:
        """The Prometheus account: ``registry``, ``exposition()``, ``totals()``."""
        return self._core.counters

    @property
    def sources(self) -> SourceCounters:
        """Draft tokens by the drafter that they are from: ``totals()``."""
        return self._core.sources

    @property
    def generations(self) -> Generations | None:
        """The outputs that the drafter learns from; None if it learns from none."""
        return self._core.drafter.generations

    @property
    def defaults(self) -> RowDefaults:
        """What requests are sampled with where they do not say, the model's own defaults included."""
        return self._defaults

    @property
    def model_name(self) -> str:
        """The model's name in records and counters."""
        return self._core.desk.limits.model_name

    @property
    def level(self) -> Level:
        """What is recorded for each request."""
        return self._core.desk.limits.level

    @property
    def resolved(self) -> dict[str, Any]:
        """What ``auto`` came to: dtype, device, model_impl, model_fingerprint, sampling.

        Of sampling also where each of its values is from.
        ``generation_config_unused`` names what the model's file states besides and what is not heeded.
        """
        return dict(self._resolved)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what ``auto`` came to and how it runs here, for whoever waits for the run."""
        return tuple(self._notes)

    @property
    def dimensions(self) -> dict[str, int]:
        """What the settings came to on this machine: max_model_len, num_blocks, block_size, num_threads."""
        return dict(self._dimensions)

    def unreported(self) -> dict[str, AcceptanceSums]:
        """Return what was counted for requests whose records carry no metrics, by cause."""
        found = {cause: _sums(recorder) for cause, recorder in self._core.desk.unreported.items()}
        return _with(found, "aborted", self._aborted)

    def in_flight(self) -> AcceptanceSums:
        """Return what was counted for requests whose records have not left: still served, or waiting for others."""
        return sum(map(_sums, self._core.desk.in_flight()), self._held())

    def reconcile(
        self, reported: AcceptanceSums, *, carried: Mapping[str, AcceptanceSums] | None = None
    ) -> Reconciliation | None:
        """Compare the records with the counters, integer by integer; None at level none, where records carry nothing.

        Args:
            reported: what all records of this engine state, as ``batchspec.report.Aggregate.sums`` returns it.
            carried: counts that were restored from before this engine and that no record states, by cause.

        >>> aggregate = Aggregate()
        >>> for record in engine.run(rows):
        ...     aggregate.add(record)
        >>> assert engine.reconcile(aggregate.sums()).is_exact
        """
        if self.level is Level.NONE:
            return None
        unreported = dict(carried or {})
        for cause, sums in self.unreported().items():
            unreported[cause] = unreported.get(cause, AcceptanceSums()) + sums
        unreported = _with(unreported, "in flight", self.in_flight())
        totals = AcceptanceSums.from_totals(self.counters.totals())
        return reconcile(reported=reported, unreported=unreported, totals=totals)

    def _stream(self, request: Request) -> Generator[dict[str, Any], None, None]:
        self._begin()
        yield from self._serve(self._core.stream(request))

    def _begin(self) -> None:
        """End what was not read to its end: what is in flight is given up, and records that have not left are lost."""
        if self._work is not None:
            self._work.close()
        self._core.desk.abort()
        self._aborted += self._held()
        self._core.desk.begin(in_order=True, where="request")

    def _serve(self, work: Generator[dict[str, Any], None, None]) -> Iterator[dict[str, Any]]:
        """Yield what the core yields; ``stop`` holds for this one only, even if it was called before it began."""
        self._work = work
        try:
            yield from self._work
        finally:
            self._is_stopped, self._core.is_stopping = self._core.is_stopping, False

    def _held(self) -> AcceptanceSums:
        """Return what the records state that are done and have not left."""
        stated = (body_facts(record["response"]["body"]).speculative_decoding for record in self._core.desk.held())
        return sum((AcceptanceSums.from_document(each) for each in stated if each is not None), AcceptanceSums())


def _speculative(config: SpeculativeConfig | Mapping[str, Any] | None) -> SpeculativeConfig:
    if isinstance(config, SpeculativeConfig):
        return config
    return SpeculativeConfig() if config is None else SpeculativeConfig.from_mapping(config)


def _level(level: Level | str) -> Level:
    try:
        return Level(level)
    except ValueError:
        raise UsageError(f"level {level!r} is not known; choose one of {', '.join(Level)}.") from None


def _asking_for_a_stream(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the row with ``stream`` set, so that the fields of streams are read from it, too."""
    body = row.get("body")
    return {**row, "body": {**body, "stream": True}} if isinstance(body, Mapping) else {**row, "stream": True}


def _origin(name: str, given: RowDefaults, model_defaults: Mapping[str, Any]) -> str:
    """Return who says what a request is sampled with that does not say: the caller, the model, or OpenAI."""
    if getattr(given, name) is not None:
        return "given"
    return "generation_config" if _IN_GENERATION_CONFIG.get(name, name) in model_defaults else "openai"


def _sums(recorder: AcceptanceRecorder) -> AcceptanceSums:
    return AcceptanceSums.from_histogram(recorder.acceptance_histogram, recorder.num_draft_tokens)


def _with(found: dict[str, AcceptanceSums], cause: str, sums: AcceptanceSums) -> dict[str, AcceptanceSums]:
    """Return the causes with one more, if anything was counted for it."""
    if not any(sums.counts().values()):
        return found
    return found | {cause: found.get(cause, AcceptanceSums()) + sums}
