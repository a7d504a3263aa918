"""``batchspec report``: the acceptance that logs of any engine tell, and a gate on it."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Logs of any engines (.jsonl, also .gz or .zst, .parquet), patterns in quotes, URLs, run directories, "
            "- is standard input."
        ),
    ],
    by: Annotated[str | None, typer.Option(help="Tell requests apart by category, engine or file.")] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="table, md, html, csv or json.", show_default="by the name of --output, or table"
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the report to this file.")] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with status 1 unless this holds, may be repeated: 'acceptance_length>=2.1', "
            "'position[0]>=0.6', 'category:code:acceptance_rate>=0.5'."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> int:
    """Report acceptance lengths and rates with their intervals from the logs of any engine.

    Example: batchspec report responses.jsonl --by category --require 'acceptance_length>=2.1'
    """
    from batchspec.cli.lines import remark, telling_new_directory
    from batchspec.cli.output import print_result, writing_to_stdout
    from batchspec.files.manifest import damaged_manifests
    from batchspec.files.unfinished import unfinished_sentences
    from batchspec.report.logs.formats import ReportFormat, log_text
    from batchspec.report.logs.remarks import empty_sentences, left_out_sentences
    from batchspec.report.logs.reporting import (
        check_report_file,
        choose_format,
        parse_grouping,
        report_logs,
        write_report,
    )
    from batchspec.report.logs.sections import log_parts
    from batchspec.requirements import parse_requirements

    requirements, grouping = parse_requirements(require or ()), parse_grouping(by)
    if output is not None:
        check_report_file(output, inputs=files)
    chosen = choose_format(form, as_json=as_json, output=output)
    document, judged = report_logs(files, by=grouping, requirements=requirements)
    if output is not None:
        with telling_new_directory(output):
            write_report(document, chosen, output)
    elif chosen is ReportFormat.TABLE:
        print_result(document, log_parts(document), as_json=False)
    else:
        with writing_to_stdout(remedy="free some room or use --output"):
            print(log_text(document, chosen), end="")
    remarks = [*left_out_sentences(document), *(one.sentence() for one in judged if not one.holds)]
    unfinished = list(unfinished_sentences(document["files"]))
    for sentence in [*empty_sentences(document), *damaged_manifests(files), *unfinished, *remarks]:
        remark(sentence)
    return int(bool(remarks) or bool(requirements and unfinished))
