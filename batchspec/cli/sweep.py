"""``batchspec sweep``: which drafter, which k and which batch for this input, measured."""

from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchspec.cli import options
from batchspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from batchspec.job.watch import Watcher
    from batchspec.requirements import Requirement
    from batchspec.sweep.settings import SweepSettings

__all__ = ["grid_hint", "sweep"]


class Grouping(StrEnum):
    """How requests are told apart."""

    category = "category"


def sweep(
    input: Annotated[str, typer.Argument(help="Requests, in a file such as run takes.")],
    grid: Annotated[
        list[str],
        typer.Option(
            help="Keys with their values, like 'method=none,ngram,suffix k=1..5 max_num_seqs=1,32': every combination "
            "is run. May be repeated, to run several grids. All that drafts and sizes are set here, not by flags."
        ),
    ],
    run_dir: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the comparison and the runs' directories.", show_default="reports/<input>-sweep"
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    by: Annotated[Grouping | None, typer.Option(help="Show the acceptance by category, too.")] = None,
    prompt_column: options.PromptColumn = None,
    id_column: options.IdColumn = None,
    model: options.ModelName = None,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    model_impl: options.ModelImpl = "auto",
    trust_remote_code: options.TrustRemoteCode = False,
    allow_pickle: options.AllowPickle = False,
    max_model_len: options.MaxModelLen = None,
    kv_cache_memory: options.KvCacheMemory = None,
    level: options.LevelOption = options.Level.summary,
    timing: options.Timing = False,
    max_tokens: options.MaxTokens = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    top_k: options.TopK = None,
    min_p: options.MinP = None,
    repetition_penalty: options.RepetitionPenalty = None,
    generation_config: options.GenerationConfig = "auto",
    seed: options.Seed = 0,
    ignore_eos: options.IgnoreEos = False,
    enable_force_include_usage: options.EnableForceIncludeUsage = False,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with status 1 unless this holds at every point that drafts, may be repeated: "
            "'acceptance_length>=2.1', 'category:code:acceptance_rate>=0.5'."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as one JSON document.")] = False,
) -> int:
    """Run a file at every point of a grid of settings, compare the runs, and check that all outputs are the same.

    Example: batchspec sweep prompts.jsonl --grid 'method=none,ngram,suffix k=1,3,5 max_num_seqs=1,32'
    """
    from batchspec.acceptance import Level as AcceptanceLevel
    from batchspec.files import Columns, RowDefaults
    from batchspec.job.settings import JobSettings, parse_bytes
    from batchspec.settings import EngineSettings
    from batchspec.sweep.gate import parse_sweep_requirements
    from batchspec.sweep.settings import SweepSettings, default_sweep_dir

    job = JobSettings(
        input=input,
        run_dir=run_dir or default_sweep_dir(input),
        overwrite=overwrite,
        model=model,
        dtype=dtype,
        device=device,
        model_impl=model_impl,
        trust_remote_code=trust_remote_code,
        allow_pickle=allow_pickle,
        generation_config=generation_config,
        engine=EngineSettings(
            max_model_len=max_model_len,
            kv_cache_memory=parse_bytes(kv_cache_memory),
            level=AcceptanceLevel(level.value),
            timing=timing,
        ),
        columns=Columns(prompt=prompt_column, id=id_column),
        defaults=RowDefaults(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            run_seed=seed,
            ignore_eos=ignore_eos,
            force_include_usage=enable_force_include_usage,
        ),
    )
    settings = SweepSettings.for_grids(grid, job)
    requirements = parse_sweep_requirements(require or (), settings)
    return show(settings, requirements, by_category=by is not None, as_json=as_json)


def show(settings: "SweepSettings", requirements: "Sequence[Requirement]", *, by_category: bool, as_json: bool) -> int:
    """Sweep with its progress on stderr and the comparison on stdout; return the exit status."""
    from batchspec.cli.lines import remark
    from batchspec.cli.output import print_result
    from batchspec.sweep.sweeping import run_sweep
    from batchspec.sweep.tables import sweep_parts

    outcome = run_sweep(settings, requirements=requirements, by_category=by_category, watch=_watching())
    if outcome.document is not None:
        print_result(outcome.document, sweep_parts(outcome.document, by_category=by_category), as_json=as_json)
    for sentence in outcome.sentences:
        remark(sentence)
    return int(outcome.status)


def grid_hint(option: str, arguments: "Sequence[str]") -> str | None:
    """Return what to write in --grid instead of a flag of run; None where there is no such key.

    Args:
        option: the flag, like ``--max-num-seqs``.
        arguments: of the command line, where its value is.
    """
    from batchspec.sweep.keys import find_key

    name = option.removeprefix("--").replace("-", "_")
    try:
        key = find_key(name.removeprefix("no_"))
    except UsageError:
        return None
    given = next((one.partition("=")[2] for one in arguments if one.startswith(f"{option}=")), None)
    if given is None:
        given = next((after for one, after in pairwise([*arguments, "-"]) if one == option), "-")
    if given.startswith("-"):
        given = "false" if name.startswith("no_") else "true"
    return f"{option} is a grid key: write {key.name}={given} in --grid"


def _watching() -> "Callable[[], Watcher]":
    """Return what makes a display for each run; what was said about the model once is not said again."""
    from batchspec.cli.progress import Display

    said: set[str] = set()

    class PointDisplay(Display):
        def say(self, text: str) -> None:
            if text not in said:
                super().say(text)
            said.add(text)

    return PointDisplay
