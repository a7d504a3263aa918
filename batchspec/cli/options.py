"""Flags that several commands share: what to run, how requests are sampled, what is recorded."""

from enum import StrEnum
from typing import Annotated

import typer

__all__ = [
    "AllowPickle",
    "Device",
    "Dtype",
    "EnableForceIncludeUsage",
    "GenerationConfig",
    "IdColumn",
    "IgnoreEos",
    "KvCacheMemory",
    "Level",
    "LevelOption",
    "MaxModelLen",
    "MaxTokens",
    "MinP",
    "ModelImpl",
    "ModelName",
    "Overwrite",
    "PromptColumn",
    "RepetitionPenalty",
    "Seed",
    "Temperature",
    "Timing",
    "TopK",
    "TopP",
    "TrustRemoteCode",
]

_MODELS = "the model's, else "


class Level(StrEnum):
    """As in ``batchspec.acceptance``, named here so that help needs no other import."""

    none = "none"
    summary = "summary"
    detailed = "detailed"


Overwrite = Annotated[bool, typer.Option("--overwrite", help="Start afresh, whatever the directory holds.")]
PromptColumn = Annotated[str | None, typer.Option(help="Column that holds the prompt of a bare row.")]
IdColumn = Annotated[str | None, typer.Option(help="Column that holds the id of a row.")]
ModelName = Annotated[
    str | None, typer.Option(help="Model directory, hub id or .gguf file.", show_default="embedded model")
]
Dtype = Annotated[str, typer.Option(help="auto, float32, bfloat16 or float16.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
ModelImpl = Annotated[
    str, typer.Option(help="Whose layers run the model: batchspec (common families, CPU), transformers, or auto.")
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option("--trust-remote-code", help="Run Python code that comes with the model; only if you have read it."),
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Also read weights from pickle files (.bin), which can run code.")
]
MaxModelLen = Annotated[
    int | None, typer.Option(help="Most tokens of prompt and output.", show_default="the model's context")
]
KvCacheMemory = Annotated[
    str | None, typer.Option(help="Memory for keys and values, like 512MiB.", show_default="by free memory")
]
LevelOption = Annotated[Level, typer.Option(help="Acceptance metrics in every record.")]
Timing = Annotated[bool, typer.Option("--timing", help="Timing fields in every record.")]
MaxTokens = Annotated[
    int | None,
    typer.Option(help="Most tokens to generate.", show_default=_MODELS + "16, for chats the context's end"),
]
Temperature = Annotated[float | None, typer.Option(help="0 is greedy.", show_default=_MODELS + "1.0")]
TopP = Annotated[
    float | None, typer.Option(help="Nucleus sampling; 1 keeps every token.", show_default=_MODELS + "1.0")
]
TopK = Annotated[
    int | None, typer.Option(help="Keep the k likeliest tokens; 0 keeps every token.", show_default=_MODELS + "0")
]
MinP = Annotated[
    float | None,
    typer.Option(help="Drop tokens less likely than this share of the likeliest.", show_default=_MODELS + "0.0"),
]
RepetitionPenalty = Annotated[
    float | None,
    typer.Option(help="Above 1, tokens that were there before get less likely.", show_default=_MODELS + "1.0"),
]
GenerationConfig = Annotated[
    str, typer.Option(help="The model's sampling defaults: auto, openai for none, or a directory with others.")
]
Seed = Annotated[int, typer.Option(help="From which, with its id, a row without a seed gets its own.")]
IgnoreEos = Annotated[bool, typer.Option("--ignore-eos", help="Generate on behind the end of sequence.")]
EnableForceIncludeUsage = Annotated[
    bool, typer.Option("--enable-force-include-usage", help="Streams end with their usage, asked for or not.")
]
