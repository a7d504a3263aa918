"""``batchspec run``: the main job."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchspec.cli import options

if TYPE_CHECKING:
    from batchspec.job.settings import JobSettings
    from batchspec.scaleout.on_ray import RaySettings

__all__ = ["run"]


class Order(StrEnum):
    """How records leave."""

    input = "input"
    completion = "completion"


def run(
    input: Annotated[
        str,
        typer.Argument(
            help="JSONL, .jsonl.gz, .jsonl.zst or Parquet: a file, a directory of part files, a pattern in quotes, or "
            "a URL (s3://, gs://, hf://) of any of these; - is standard input."
        ),
    ],
    run_dir: Annotated[
        Path | None, typer.Option(help="Directory for responses, counters and reports.", show_default="reports/<input>")
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", help="Write the responses here too: .jsonl or .parquet, a path or a URL."),
    ] = None,
    overwrite: options.Overwrite = False,
    shard: Annotated[
        str | None,
        typer.Option(
            help="Serve a share of the rows: i/n with 0 <= i < n, or env for what RANK and WORLD_SIZE or a SLURM array "
            "say; batchspec merge puts the shards together.",
            show_default="all rows",
        ),
    ] = None,
    ray: Annotated[
        bool,
        typer.Option("--ray", help="Serve with workers on the Ray cluster of RAY_ADDRESS, or on one started here."),
    ] = False,
    num_workers: Annotated[
        int | None,
        typer.Option(help="Workers on Ray.", show_default="as there are GPUs for them, else one on each machine"),
    ] = None,
    gpus_per_worker: Annotated[
        float | None, typer.Option(help="GPUs that a worker reserves.", show_default="1 where there are some, else 0")
    ] = None,
    order: Annotated[Order, typer.Option(help="Order of the records; completion needs least memory.")] = Order.input,
    prompt_column: options.PromptColumn = None,
    id_column: options.IdColumn = None,
    model: options.ModelName = None,
    dtype: options.Dtype = "auto",
    device: options.Device = "auto",
    model_impl: options.ModelImpl = "auto",
    trust_remote_code: options.TrustRemoteCode = False,
    allow_pickle: options.AllowPickle = False,
    max_num_seqs: Annotated[int, typer.Option(help="Most sequences in the running batch.")] = 64,
    max_num_batched_tokens: Annotated[int, typer.Option(help="Most tokens in one forward pass.")] = 2048,
    max_model_len: options.MaxModelLen = None,
    kv_cache_memory: options.KvCacheMemory = None,
    enable_prefix_caching: Annotated[
        bool, typer.Option(help="Compute beginnings that several prompts share once; changes only the speed.")
    ] = True,
    speculative_config: Annotated[
        str | None, typer.Option(help="The drafter as JSON with vLLM's keys; instead of the flags below.")
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="Drafter: ngram (repeats the sequence's own text), suffix (and that of earlier answers), recall (an "
            "earlier run's answers), draft_model (a small model), auto (the best of them, only where it pays), forced "
            "(what a grammar forces) or none.",
            show_default="ngram",
        ),
    ] = None,
    num_speculative_tokens: Annotated[
        int | None, typer.Option(help="Most tokens in a draft (k).", show_default="3; 8 for suffix, recall and auto")
    ] = None,
    prompt_lookup_min: Annotated[int | None, typer.Option(help="Shortest n-gram.", show_default="1")] = None,
    prompt_lookup_max: Annotated[int | None, typer.Option(help="Longest n-gram.", show_default="3")] = None,
    draft_model: Annotated[
        str | None,
        typer.Option(help="Small model of the same vocabulary, for draft_model and auto.", show_default="embedded one"),
    ] = None,
    recall_path: Annotated[
        str | None, typer.Option(help="An earlier run's responses.jsonl, for recall and auto.")
    ] = None,
    adaptive: Annotated[
        bool | None,
        typer.Option(
            "--adaptive/--no-adaptive", help="Draft only tokens that pay for their row.", show_default="only for auto"
        ),
    ] = None,
    forced_tokens: Annotated[
        bool, typer.Option("--forced-tokens", help="Where the drafter has nothing, draft what a grammar forces.")
    ] = False,
    level: options.LevelOption = options.Level.none,
    timing: options.Timing = False,
    metrics_port: Annotated[int | None, typer.Option(help="Serve the Prometheus counters while running.")] = None,
    metrics_host: Annotated[str, typer.Option(help="Address to serve them on.")] = "127.0.0.1",
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON document.")] = False,
) -> int:
    """Serve every request of a file with speculative decoding and report how well the drafts did.

    Example: batchspec run prompts.jsonl --level detailed
    """
    from batchspec.acceptance import Level as AcceptanceLevel
    from batchspec.files import Columns, RowDefaults
    from batchspec.job.settings import JobSettings, default_run_dir, parse_bytes, parse_speculative
    from batchspec.job.shard import parse_shard
    from batchspec.settings import EngineSettings

    speculative = parse_speculative(
        speculative_config,
        {
            "method": method,
            "num_speculative_tokens": num_speculative_tokens,
            "prompt_lookup_min": prompt_lookup_min,
            "prompt_lookup_max": prompt_lookup_max,
            "model": draft_model,
            "path": recall_path,
            "adaptive": adaptive,
            "forced_tokens": forced_tokens or None,
        },
    )
    share, remark = (None, "") if shard is None else parse_shard(shard, os.environ)
    if remark:
        print(f"batchspec: {remark}", file=sys.stderr)
    settings = JobSettings(
        input=input,
        run_dir=run_dir or default_run_dir(input, share),
        output=output,
        overwrite=overwrite,
        model=model,
        dtype=dtype,
        device=device,
        model_impl=model_impl,
        trust_remote_code=trust_remote_code,
        allow_pickle=allow_pickle,
        generation_config=generation_config,
        engine=EngineSettings(
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_num_batched_tokens,
            max_model_len=max_model_len,
            kv_cache_memory=parse_bytes(kv_cache_memory),
            prefix_caching=enable_prefix_caching,
            speculative=speculative,
            level=AcceptanceLevel(level.value),
            timing=timing,
        ),
        in_order=order is Order.input,
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
        shard=share,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
    )
    settings.check()
    if not ray:
        check_no_ray(num_workers=num_workers, gpus_per_worker=gpus_per_worker)
        return show(settings, as_json=as_json)
    from batchspec.scaleout.on_ray import RaySettings

    return show(settings, ray=RaySettings(num_workers=num_workers, gpus_per_worker=gpus_per_worker), as_json=as_json)


def check_no_ray(**flags: float | None) -> None:
    """Raise UsageError for flags that mean nothing without ``--ray``."""
    from batchspec.errors import UsageError

    for name, value in flags.items():
        if value is not None:
            raise UsageError(f"--{name.replace('_', '-')} is about workers on Ray: give --ray with it or drop it.")


def show(settings: "JobSettings", *, ray: "RaySettings | None" = None, as_json: bool) -> int:
    """Run the job with its progress on stderr and its report on stdout; return the exit status."""
    from batchspec.cli.outcome import show_outcome
    from batchspec.job.opening import OpenedJob, open_job

    outcome = open_job(settings)
    if isinstance(outcome, OpenedJob):
        from batchspec.cli.progress import Display

        if ray is None:
            from batchspec.job.run import serve_job

            outcome = serve_job(outcome, watcher=Display())
        else:
            from batchspec.scaleout.on_ray import serve_on_ray

            outcome = serve_on_ray(outcome, ray, watcher=Display())
    return show_outcome(outcome, as_json=as_json)
