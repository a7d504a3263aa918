"""What a run is asked to do, resolved and checked before anything heavy is imported or anything is written."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from batchspec.drafting import SpeculativeConfig
from batchspec.drafting.values import named
from batchspec.errors import UsageError
from batchspec.files import Columns, RowDefaults
from batchspec.job.shard import Shard
from batchspec.settings import LARGEST, EngineSettings

__all__ = ["JobSettings", "default_run_dir", "parse_bytes", "parse_speculative"]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "t": 10**12}
_MAGIC = frozenset("*?[")
_DEFAULT_LOOKUP = {"prompt_lookup_min": 1, "prompt_lookup_max": 3}


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Everything about a run but its progress.

    Attributes:
        input: path of the requests: a file, "-", a directory of part files, a pattern, or a URL of any of these.
        run_dir: where responses, counters, manifest and reports go.
        output: further file for the responses, a path or a URL, JSONL or Parquet by its extension; None for none.
        overwrite: start afresh whatever the run directory holds.
        model: directory, hub id or GGUF file; None for the embedded model.
        dtype: auto, float32, bfloat16 or float16.
        device: auto, cpu or cuda.
        model_impl: whose layers run the model: auto, batchspec or transformers.
        trust_remote_code: whether Python files of the model's repository may be run.
        allow_pickle: whether weights may be pickle files.
        generation_config: where sampling defaults come from behind ``defaults``: auto for the model's own, openai for
            none, or a directory with a generation_config.json.
        engine: how large the engine is, how it drafts and what it records.
        in_order: records in the order of the lines; otherwise as they are done.
        columns: names of the prompt and id columns.
        defaults: sampling parameters for rows that do not give them.
        shard: which share of the rows to serve; None for all.
        metrics_port: TCP port to serve the counters on while the run goes on; None for none.
        metrics_host: address to serve them on.
    """

    input: str
    run_dir: Path
    output: str | Path | None = None
    overwrite: bool = False
    model: str | None = None
    dtype: str = "auto"
    device: str = "auto"
    model_impl: str = "auto"
    trust_remote_code: bool = False
    allow_pickle: bool = False
    generation_config: str = "auto"
    engine: EngineSettings = field(default_factory=EngineSettings)
    in_order: bool = True
    columns: Columns = field(default_factory=Columns)
    defaults: RowDefaults = field(default_factory=RowDefaults)
    shard: Shard | None = None
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"

    def parameters(self) -> dict[str, Any]:
        """Return everything that must stay the same for an interrupted run to be continued, by flag name."""
        engine, defaults = self.engine, asdict(self.defaults)
        return {
            "dtype": self.dtype,
            "device": self.device,
            "model_impl": self.model_impl,
            "max_num_seqs": engine.max_num_seqs,
            "max_num_batched_tokens": engine.max_num_batched_tokens,
            "max_model_len": engine.max_model_len,
            "kv_cache_memory": engine.kv_cache_memory,
            "enable_prefix_caching": engine.prefix_caching,
            **engine.speculative.document(),
            "level": str(engine.level),
            "timing": engine.timing,
            "order": "input" if self.in_order else "completion",
            "prompt_column": self.columns.prompt,
            "id_column": self.columns.id,
            "generation_config": self.generation_config,
            "seed": defaults.pop("run_seed"),
            "enable_force_include_usage": defaults.pop("force_include_usage"),
            **defaults,
            **({} if self.shard is None else {"shard": str(self.shard)}),
        }

    def check(self) -> None:
        """Raise UsageError for settings that cannot work, whatever the model and the input."""
        self.engine.check()
        if self.metrics_port is not None and not 1 <= self.metrics_port <= 65535:
            raise UsageError(f"--metrics-port must be from 1 to 65535, not {self.metrics_port}.")
        _check_name("device", self.device, ("auto", "cpu", "cuda"))
        _check_name("dtype", self.dtype, ("auto", "float32", "bfloat16", "float16"))
        _check_name("model-impl", self.model_impl, ("auto", "batchspec", "transformers"))
        if self.output is not None and Path(self.output).suffix.lower() not in {".jsonl", ".ndjson", ".parquet"}:
            raise UsageError(f"--output {self.output}: give its name the extension .jsonl or .parquet.")
        _check_generation_config(self.generation_config)
        _check_defaults(self.defaults)


def _check_name(flag: str, value: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise UsageError(f"--{flag} {value!r} is not known; choose one of {', '.join(names)}.")


def _check_generation_config(choice: str) -> None:
    if choice not in ("auto", "openai") and not (Path(choice) / "generation_config.json").is_file():
        raise UsageError(
            f"--generation-config {choice!r} is neither auto, openai nor a directory with a generation_config.json."
        )


def _check_defaults(defaults: RowDefaults) -> None:
    """Raise UsageError for a sampling default that would be refused in a request."""
    ranges = {"temperature": (0, 2), "top_p": (0, 1), "min_p": (0, 1), "repetition_penalty": (0, LARGEST)}
    for name, (low, high) in ranges.items():
        value, is_low_excluded = getattr(defaults, name), name in ("top_p", "repetition_penalty")
        if value is not None and (not low <= value <= high or (is_low_excluded and value == low)):
            bound = f"above {low}" if is_low_excluded else f"at least {low}"
            raise UsageError(f"--{name.replace('_', '-')} must be {bound} and at most {high}, not {value}.")
    if defaults.max_tokens is not None and defaults.max_tokens < 1:
        raise UsageError(f"--max-tokens must be at least 1, not {defaults.max_tokens}.")
    for name in ("max_tokens", "top_k"):
        if (getattr(defaults, name) or 0) > LARGEST:
            raise UsageError(f"--{name.replace('_', '-')} must be at most {LARGEST}, not {getattr(defaults, name)}.")
    if not -(2**63) <= defaults.run_seed < 2**63:
        raise UsageError(f"--seed must fit in 64 bits, from {-(2**63)} to {2**63 - 1}, not {defaults.run_seed}.")
    if defaults.top_k is not None and defaults.top_k < 0:
        raise UsageError(f"--top-k must be at least 1, or 0 to keep every token, not {defaults.top_k}.")


def default_run_dir(input: str, shard: Shard | None = None) -> Path:
    """Return ``reports/`` and the input's name without its extensions, and the shard's name in it, if there is one.

    For standard input the name is ``stdin``, for a pattern that of the directory it looks in.
    """
    whole = _default_run_dir(input)
    return whole if shard is None else whole / shard.directory


def _default_run_dir(input: str) -> Path:
    if input == "-":
        return Path("reports/stdin")
    plain = [name for name in Path(input.rpartition("://")[2]).parts if _MAGIC.isdisjoint(name)]
    name = plain[-1] if plain else ""
    for suffix in (".gz", ".zst", ".jsonl", ".ndjson", ".json", ".parquet"):
        name = name.removesuffix(suffix)
    return Path("reports") / (name or "run")


def parse_bytes(text: str | None) -> int | None:
    """Return a number of bytes from text such as ``512MiB`` or ``2GB``; None for None."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if match is None or match[2] not in _UNITS:
        raise UsageError(f"--kv-cache-memory {text!r} is not a size: write it like 512MiB or 2GB.")
    return int(float(match[1]) * _UNITS[match[2]])


def parse_speculative(config: str | None, flags: Mapping[str, Any]) -> SpeculativeConfig:
    """Return the drafter's configuration from ``--speculative-config`` or from plain flags, not from both.

    Args:
        config: a JSON object with vLLM's keys, or None.
        flags: the same keys from plain flags; None where a flag was not given.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    if config is None:
        useless = [named(key) for key in given if key != "method"] if given.get("method") == "none" else []
        if useless:
            raise UsageError(f"{', '.join(useless)} has no effect with --method none: drop one of them.")
        is_bare = given.get("method", "ngram") == "ngram" and not any(key in given for key in _DEFAULT_LOOKUP)
        return SpeculativeConfig.from_mapping(_DEFAULT_LOOKUP | given if is_bare else given)
    if given:
        flag = named(next(iter(given))).partition(" ")[0]
        raise UsageError(f"{flag} and --speculative-config both configure the drafter: give one of them.")
    try:
        document = json.loads(config)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"--speculative-config is not JSON ({error.msg} at character {error.pos + 1}): "
            """write it like '{"method": "ngram", "num_speculative_tokens": 3}'."""
        ) from None
    if not isinstance(document, dict):
        raise UsageError(f"--speculative-config must be a JSON object, not {config!r}.")
    return SpeculativeConfig.from_mapping(document)
