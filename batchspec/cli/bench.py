"""``batchspec bench``: how fast this machine runs this model, and how that compares."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from batchspec.bench.settings import BenchSettings

__all__ = ["bench"]

_WIDTH_OF_FILES = 100


def bench(
    input: Annotated[
        str, typer.Argument(help="Prompts, in a file such as run takes; - is standard input.")
    ] = "datasets/quickstart.jsonl",
    run_dir: Annotated[
        Path | None,
        typer.Option(help="Directory for bench.json and bench.md.", show_default="reports/bench-<model>-<time>"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a benchmark in that directory.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Measure this part, may be repeated: steps, overhead, throughput, prefix, start or drafters.",
            show_default="all but drafters",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="How often everything is measured; medians are shown.")] = 5,
    prompt_column: Annotated[str | None, typer.Option(help="Column that holds the prompt of a bare row.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Model directory, hub id or .gguf file.", show_default="embedded model")
    ] = None,
    dtype: Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    model_impl: Annotated[
        str, typer.Option(help="Whose layers run the model: batchspec (common families, CPU), transformers, or auto.")
    ] = "auto",
    max_num_seqs: Annotated[
        str, typer.Option(help="Sizes of the running batch to measure throughput with.")
    ] = "1,4,64",
    max_tokens: Annotated[int, typer.Option(help="Tokens to generate from every prompt.")] = 64,
    rows: Annotated[str, typer.Option(help="Sizes of the forward passes in the cost table.")] = "1,16,64,256",
    context: Annotated[str, typer.Option(help="Lengths of the sequences in the cost table, in tokens.")] = "128,512",
    prefix_requests: Annotated[int, typer.Option(help="Requests that share a header, in the prefix part.")] = 64,
    prefix_tokens: Annotated[int, typer.Option(help="Tokens of that header.")] = 600,
    max_num_batched_tokens: Annotated[int, typer.Option(help="Most tokens in one forward pass.")] = 2048,
    max_model_len: Annotated[
        int | None, typer.Option(help="Most tokens of prompt and output.", show_default="the model's context")
    ] = None,
    kv_cache_memory: Annotated[
        str | None, typer.Option(help="Memory for keys and values, like 512MiB.", show_default="by free memory")
    ] = None,
    speculative_config: Annotated[
        str | None, typer.Option(help="The drafter as JSON with vLLM's keys; instead of the flags below.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="Drafter to compare with none: ngram, or none.", show_default="ngram")
    ] = None,
    num_speculative_tokens: Annotated[
        int | None,
        typer.Option(help="Most tokens in a draft (k).", show_default="3; 8 for suffix, recall and auto"),
    ] = None,
    prompt_lookup_min: Annotated[int | None, typer.Option(help="Shortest n-gram.", show_default="1")] = None,
    prompt_lookup_max: Annotated[int | None, typer.Option(help="Longest n-gram.", show_default="3")] = None,
    drafters: Annotated[
        str, typer.Option(help="What the part drafters compares, on the whole input as it is.")
    ] = "none,ngram,suffix,draft_model,recall,auto",
    draft_model: Annotated[
        str | None,
        typer.Option(help="Small model of the same vocabulary, for draft_model and auto.", show_default="embedded one"),
    ] = None,
    peer: Annotated[
        list[str] | None,
        typer.Option(
            help="Give the same jobs to another engine, may be repeated: transformers, or openvino=PYTHON, vllm=PYTHON "
            "and vllm-compiled=PYTHON with the interpreter of an environment that has it."
        ),
    ] = None,
    peer_model: Annotated[
        list[str] | None,
        typer.Option(help="Where a peer reads another form of the model: openvino=DIR; may be repeated."),
    ] = None,
    peer_dtype: Annotated[
        list[str] | None,
        typer.Option(help="What a peer computes in where that is faster: vllm=float32; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the measurements as one JSON document.")] = False,
) -> int:
    """Measure step time, throughput with and without speculation, memory and start, and write them down.

    Example: batchspec bench datasets/quickstart.jsonl --only throughput --peer transformers
    """
    from datetime import datetime

    from batchspec.bench.peer_names import parse_peer_dtypes, parse_peer_models, parse_peers
    from batchspec.bench.settings import BenchSettings, default_run_dir, parse_counts, parse_drafters, parse_parts
    from batchspec.job.settings import parse_bytes, parse_speculative
    from batchspec.settings import EngineSettings

    sizes = parse_counts("--max-num-seqs", max_num_seqs)
    speculative = parse_speculative(
        speculative_config,
        {
            "method": method,
            "num_speculative_tokens": num_speculative_tokens,
            "prompt_lookup_min": prompt_lookup_min,
            "prompt_lookup_max": prompt_lookup_max,
        },
    )
    settings = BenchSettings(
        input=input,
        run_dir=run_dir or default_run_dir(model, now=datetime.now()),
        overwrite=overwrite,
        prompt_column=prompt_column,
        model=model,
        dtype=dtype,
        device=device,
        model_impl=model_impl,
        engine=EngineSettings(
            max_num_seqs=sizes[-1],
            max_num_batched_tokens=max_num_batched_tokens,
            max_model_len=max_model_len,
            kv_cache_memory=parse_bytes(kv_cache_memory),
            speculative=speculative,
        ),
        max_num_seqs=sizes,
        max_tokens=max_tokens,
        rows=parse_counts("--rows", rows),
        contexts=parse_counts("--context", context),
        prefix_requests=prefix_requests,
        prefix_tokens=prefix_tokens,
        rounds=rounds,
        peers=parse_peers(peer or []),
        peer_models=parse_peer_models(peer_model or []),
        peer_dtypes=parse_peer_dtypes(peer_dtype or []),
        drafters=parse_drafters(drafters),
        num_speculative_tokens=num_speculative_tokens,
        draft_model=draft_model,
        parts=parse_parts(only or []),
    )
    settings.check()
    return show(settings, as_json=as_json)


def show(settings: "BenchSettings", *, as_json: bool) -> int:
    """Measure with remarks on stderr, write the files, print the tables or the document; return the exit status."""
    from rich.console import Console
    from rich.text import Text

    from batchspec.bench.interruption import Interruption
    from batchspec.bench.suite import run_bench
    from batchspec.bench.tables import bench_parts
    from batchspec.bench.write import write_bench
    from batchspec.cli.output import print_document, writing_to_stdout
    from batchspec.cli.signals import status_of
    from batchspec.plain_text import printable
    from batchspec.report.render import parts_renderable

    remarks = Console(stderr=True, highlight=False)

    def say(text: str) -> None:
        remarks.print(Text(f"batchspec: {printable(text)}"), soft_wrap=True)

    interruption = Interruption()
    document = run_bench(settings, say=say, interruption=interruption)
    write_bench(document, settings.run_dir)
    with writing_to_stdout():
        if as_json:
            print_document(document)
        else:
            console = Console()
            console.width = console.width if console.is_terminal else _WIDTH_OF_FILES
            console.print(parts_renderable(bench_parts(document)))
    say(f"measurements are in {settings.run_dir}")
    if interruption.error is not None:
        say("interrupted: what was complete is kept")
        return status_of(interruption.error)
    return 0
