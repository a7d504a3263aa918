"""``batchspec convert``: between our lines and those of neighbours."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["convert"]


class Foreign(StrEnum):
    """As in ``batchspec.convert.batch_lines``, named here so that help needs no other import."""

    spec_bench = "spec-bench"
    sharegpt = "sharegpt"
    text = "text"


class Target(StrEnum):
    """What responses can be turned into."""

    aiperf = "aiperf"


def convert(
    input: Annotated[
        str, typer.Argument(help="The file, plain, .gz or .zst; - is standard input; or a run directory.")
    ],
    form: Annotated[
        Foreign | None, typer.Option("--from", help="Make batch lines of it: what the file holds.", show_default=False)
    ] = None,
    target: Annotated[
        Target | None, typer.Option("--to", help="Make records of the responses in it: what for.", show_default=False)
    ] = None,
    first_turn: Annotated[
        bool, typer.Option("--first-turn", help="Ask only the first question of a conversation.")
    ] = False,
    chat: Annotated[bool, typer.Option("--chat", help="Ask lines of text as chats, not as completions.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the lines here.", show_default="standard output")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Tell what became of the rows as one JSON document, not as a sentence.")
    ] = False,
) -> int:
    """Convert Spec-Bench questions, ShareGPT or plain text to batch lines, or responses to AIPerf's records.

    Example: batchspec convert question.jsonl --from spec-bench > prompts.jsonl
    """
    from batchspec.cli.lines import remark, write_lines
    from batchspec.convert.batch_lines import ForeignFormat
    from batchspec.convert.command import ConvertSettings, open_conversion

    settings = ConvertSettings(
        input=input,
        form=None if form is None else ForeignFormat(form.value),
        is_to_aiperf=target is not None,
        is_first_turn=first_turn,
        is_chat=chat,
        output=output,
    )
    with open_conversion(settings, say=remark) as conversion:
        is_whole = write_lines(conversion.lines(), output)
    if not conversion.num_rows and is_whole:
        remark(f"{input} holds no rows")
    if as_json:
        document = conversion.document() | {"is_whole": is_whole}
        print(json.dumps(document), file=sys.stderr if output is None else sys.stdout)
    else:
        remark(conversion.sentence(is_whole=is_whole))
    return int(conversion.num_failed > 0)
