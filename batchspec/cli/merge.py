"""``batchspec merge``: the shards of an input as one run."""

from pathlib import Path
from typing import Annotated

import typer

from batchspec.cli import options

__all__ = ["merge"]


def merge(
    directories: Annotated[
        list[Path], typer.Argument(help="The run directories of all shards, or the directory that holds them.")
    ],
    run_dir: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the merged run.", show_default="the directory that holds the shards' directories"
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one JSON document.")] = False,
) -> int:
    """Put the shards of an input together: records in its order, counters added up and reconciled.

    Example: batchspec merge reports/prompts/shard-*
    """
    from batchspec.cli.outcome import show_outcome
    from batchspec.scaleout.merging import MergeSettings, merge_shards

    outcome = merge_shards(MergeSettings(directories=directories, run_dir=run_dir, overwrite=overwrite))
    return show_outcome(outcome, as_json=as_json)
