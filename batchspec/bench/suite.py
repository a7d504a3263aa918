"""The benchmark as a whole: load the model once, measure every part, return one document."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from batchspec import __version__
from batchspec.bench.drafters import measure_drafters
from batchspec.bench.interruption import Interruption
from batchspec.bench.machine import describe_machine, measure_bandwidth
from batchspec.bench.overhead import measure_overhead
from batchspec.bench.peers import open_peers
from batchspec.bench.prefix import measure_prefix
from batchspec.bench.prompts import read_prompts
from batchspec.bench.settings import BenchSettings, Part
from batchspec.bench.shapes import weight_bytes
from batchspec.bench.start import measure_memory, measure_start
from batchspec.bench.steps import measure_steps
from batchspec.bench.subject import Subject
from batchspec.bench.throughput import job_for, measure_throughput, our_contestants
from batchspec.errors import UsageError
from batchspec.files import check_writable, open_source
from batchspec.model.load import load_model
from batchspec.model.locate import EMBEDDED_TARGET

__all__ = ["run_bench"]

Say = Callable[[str], None]


def run_bench(settings: BenchSettings, *, say: Say, interruption: Interruption | None = None) -> dict[str, Any]:
    """Measure what was asked for and return the document of bench.json; nothing is written.

    Args:
        settings: what to measure.
        say: told what is going on, in half a line.
        interruption: keeps what is complete when a signal comes.

    Raises:
        UsageError: the settings do not fit the model, the input or the machine.
        KeyboardInterrupt: a signal came before anything was complete.
    """
    interruption = interruption or Interruption()
    settings.check()
    check_writable(settings.run_dir)
    open_source(settings.input)
    say("loading the model")
    subject = _load(settings)
    bandwidth = measure_bandwidth(subject.loaded.device, rounds=settings.rounds)
    parts = _measure(subject, settings, interruption, bytes_per_second=bandwidth["bytes_per_second"]["max"], say=say)
    return {
        "version": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": _settings_document(settings),
        "model": _model_document(subject),
        "prompts": _prompts_document(subject, settings),
        "machine": describe_machine(subject.loaded.device) | {"copy": bandwidth},
        "interrupted": None if interruption.error is None else {"num_rounds": interruption.num_rounds},
        **parts,
    }


def _load(settings: BenchSettings) -> Subject:
    """Load the model and read the prompts; torch then runs on as many threads as the engine gives this model."""
    loaded = load_model(
        settings.model or EMBEDDED_TARGET, device=settings.device, dtype=settings.dtype, impl=settings.model_impl
    )
    limit = settings.engine.max_model_len or loaded.context_length
    most = limit - settings.max_tokens
    if most < 1:
        raise UsageError(
            f"--max-tokens {settings.max_tokens} leaves no room for a prompt in {limit} tokens: give less."
        )
    prompts = read_prompts(settings.input, column=settings.prompt_column, tokenizer=loaded.tokenizer, most_tokens=most)
    subject = Subject(loaded=loaded, settings=settings.engine, prompts=prompts)
    subject.engine()
    return subject


def _measure(
    subject: Subject, settings: BenchSettings, interruption: Interruption, *, bytes_per_second: float, say: Say
) -> dict[str, Any]:
    """Return each part's document, None for what was not asked for or came behind a signal."""
    largest = job_for(subject, max_num_seqs=max(settings.max_num_seqs), max_tokens=settings.max_tokens)
    parts: dict[Part, Callable[[], Any]] = {
        Part.STEPS: lambda: measure_steps(subject, settings, bytes_per_second=bytes_per_second, say=say),
        Part.OVERHEAD: lambda: measure_overhead(
            subject, largest, rounds=settings.rounds, say=say, interruption=interruption
        ),
        Part.THROUGHPUT: lambda: _throughput(subject, settings, interruption, say=say),
        Part.PREFIX: lambda: measure_prefix(
            subject, num_requests=settings.prefix_requests, header_tokens=settings.prefix_tokens, say=say
        ),
        Part.START: lambda: {
            "first_token": measure_start(subject, settings, say=say),
            "memory": measure_memory(subject, settings, largest),
        },
        Part.DRAFTERS: lambda: measure_drafters(subject, settings, say=say, interruption=interruption),
    }
    wanted = [(part, measure) for part, measure in parts.items() if part in settings.parts]
    found = interruption.until(measure for _, measure in wanted)
    return dict.fromkeys(map(str, parts)) | {str(part): each for (part, _), each in zip(wanted, found, strict=False)}


def _throughput(
    subject: Subject, settings: BenchSettings, interruption: Interruption, *, say: Say
) -> list[dict[str, Any]]:
    """Return the document of each batch size."""
    with open_peers(settings, subject, say=say) as peers:

        def measure(size: int) -> dict[str, Any]:
            return measure_throughput(
                job_for(subject, max_num_seqs=size, max_tokens=settings.max_tokens),
                {**our_contestants(subject), **peers(size)},
                rounds=settings.rounds,
                say=say,
                interruption=interruption,
            )

        return interruption.until(partial(measure, size) for size in settings.max_num_seqs)


def _settings_document(settings: BenchSettings) -> dict[str, Any]:
    engine = settings.engine
    return {
        "max_num_seqs": list(settings.max_num_seqs),
        "max_tokens": settings.max_tokens,
        "rows": list(settings.rows),
        "contexts": list(settings.contexts),
        "rounds": settings.rounds,
        "prefix_requests": settings.prefix_requests,
        "prefix_tokens": settings.prefix_tokens,
        "max_num_batched_tokens": engine.max_num_batched_tokens,
        "max_model_len": engine.max_model_len,
        "kv_cache_memory": engine.kv_cache_memory,
        "speculative": engine.speculative.document(),
        "peers": list(settings.peers),
        "peer_dtypes": dict(settings.peer_dtypes),
        "drafters": list(settings.drafters),
        "draft_model": settings.draft_model,
        "parts": [str(part) for part in settings.parts],
    }


def _model_document(subject: Subject) -> dict[str, Any]:
    loaded = subject.loaded
    return {
        "name": loaded.name,
        "fingerprint": loaded.fingerprint,
        "device": loaded.device.type,
        "dtype": subject.dtype,
        "implementation": loaded.network.implementation,
        "weight_bytes": weight_bytes(loaded),
        "kv_bytes_per_token": loaded.bytes_per_token,
    }


def _prompts_document(subject: Subject, settings: BenchSettings) -> dict[str, Any]:
    prompts = subject.prompts
    return {
        "input": settings.input,
        "num_prompts": len(prompts.token_ids),
        "num_left_out": prompts.num_left_out,
        "num_cut": prompts.num_cut,
        "num_plain": prompts.num_plain,
    }
