"""What is to be measured, checked before anything heavy is imported."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from batchspec.drafting.config import METHODS
from batchspec.errors import UsageError
from batchspec.settings import EngineSettings

__all__ = ["DRAFTERS", "BenchSettings", "Part", "default_run_dir", "parse_counts", "parse_drafters", "parse_parts"]

DRAFTERS = ("none", "ngram", "suffix", "draft_model", "recall", "auto")


class Part(StrEnum):
    """The parts of a benchmark, in the order in which they are measured."""

    STEPS = "steps"
    OVERHEAD = "overhead"
    THROUGHPUT = "throughput"
    PREFIX = "prefix"
    START = "start"
    DRAFTERS = "drafters"


_UNASKED = tuple(part for part in Part if part is not Part.DRAFTERS)  # serves whole files, again and again


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """Everything about a benchmark.

    Attributes:
        input: path of the requests whose prompts are taken.
        run_dir: where bench.json and bench.md go.
        overwrite: replace those of an earlier benchmark.
        prompt_column: column that holds the prompt of a bare row; None for ``prompt``.
        model: directory, hub id or GGUF file; None for the embedded model.
        dtype: auto, float32, bfloat16 or float16.
        device: auto, cpu or cuda.
        model_impl: whose layers run the model: auto, batchspec or transformers.
        engine: how large the engine is and how it drafts; its ``max_num_seqs`` is not used.
        max_num_seqs: sizes of the running batch to measure throughput with.
        max_tokens: tokens to generate for every prompt.
        rows: sizes of the forward passes to time.
        contexts: tokens of the sequences in them.
        prefix_requests: requests that share their beginning.
        prefix_tokens: of that beginning.
        rounds: how often everything is measured.
        peers: other engines by name, with the interpreter of their environment; None for our own process.
        peer_models: by peer, the model in the form that it reads, where that is another than ``model``.
        peer_dtypes: by peer, the dtype that it computes in, where that is another than our model's.
        drafters: names of those that are compared; none is one of them.
        num_speculative_tokens: of the drafters that are compared; None for each one's default.
        draft_model: for those of them that can use one; None for the embedded one.
        parts: what to measure.
    """

    input: str
    run_dir: Path
    overwrite: bool = False
    prompt_column: str | None = None
    model: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    model_impl: str = "auto"
    engine: EngineSettings = field(default_factory=EngineSettings)
    max_num_seqs: tuple[int, ...] = (1, 4, 64)
    max_tokens: int = 64
    rows: tuple[int, ...] = (1, 16, 64, 256)
    contexts: tuple[int, ...] = (128, 512)
    prefix_requests: int = 64
    prefix_tokens: int = 600
    rounds: int = 5
    peers: Mapping[str, str | None] = field(default_factory=dict)
    peer_models: Mapping[str, str] = field(default_factory=dict)
    peer_dtypes: Mapping[str, str] = field(default_factory=dict)
    drafters: tuple[str, ...] = DRAFTERS
    num_speculative_tokens: int | None = None
    draft_model: str | None = None
    parts: tuple[Part, ...] = _UNASKED

    def check(self) -> None:
        """Raise UsageError for settings that cannot work, whatever the model and the input."""
        self.engine.check()
        for name in ("max_tokens", "rounds", "prefix_requests", "prefix_tokens"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name.replace('_', '-')} must be at least 1, not {getattr(self, name)}.")
        _check_name("device", self.device, ("auto", "cpu", "cuda"))
        _check_name("dtype", self.dtype, ("auto", "float32", "bfloat16", "float16"))
        for flag, names in (("peer-model", self.peer_models), ("peer-dtype", self.peer_dtypes)):
            for name in names:
                if name not in self.peers:
                    raise UsageError(f"--{flag} {name}=… names no peer: give --peer {name}, too.")
        if Part.DRAFTERS in self.parts and self.input == "-":
            raise UsageError("--only drafters reads its input again, which standard input cannot: give a file.")
        existing = [name for name in ("bench.json", "bench.md") if (self.run_dir / name).exists()]
        if existing and not self.overwrite:
            raise UsageError(f"{self.run_dir} holds a benchmark already: use --overwrite or another --run-dir.")


def _check_name(flag: str, value: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise UsageError(f"--{flag} {value!r} is not known; choose one of {', '.join(names)}.")


def parse_counts(flag: str, text: str) -> tuple[int, ...]:
    """Return the numbers of a list such as ``1,4,64``, ascending and each once.

    Raises:
        UsageError: it is not a list of numbers of at least 1.
    """
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = [0]
    if numbers[0] < 1:
        raise UsageError(f"{flag} must be numbers of at least 1 with commas between them, like 1,4,64, not {text!r}.")
    return tuple(numbers)


def parse_parts(given: list[str]) -> tuple[Part, ...]:
    """Return the parts with these names, for no name all but the drafters; UsageError for a name that there is not."""
    for name in given:
        if name not in tuple(Part):
            raise UsageError(f"--only {name!r} is not known; choose from {', '.join(Part)}.")
    return tuple(part for part in Part if part in given) or _UNASKED


def parse_drafters(text: str) -> tuple[str, ...]:
    """Return the drafters of a list such as ``ngram,suffix``, each once, behind none, which all are compared with.

    Raises:
        UsageError: there is no such drafter.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in METHODS:
            raise UsageError(f"--drafters {name!r} is not known; choose from {', '.join(METHODS)}.")
    return tuple(dict.fromkeys(("none", *names)))


def default_run_dir(model: str | None, *, now: datetime) -> Path:
    """Return ``reports/bench-<model>-<date and time>``."""
    name = "embedded" if model is None else Path(model).resolve().name.removesuffix(".gguf")
    return Path("reports") / f"bench-{name}-{now:%Y-%m-%d-%H%M%S}"
