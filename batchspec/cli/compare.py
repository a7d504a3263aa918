"""``batchspec compare``: what changed between two runs of the same requests?"""

from typing import Annotated

import typer

__all__ = ["compare"]


def compare(
    run_a: Annotated[str, typer.Argument(help="The old run: its directory, or responses of any engine.")],
    run_b: Annotated[str, typer.Argument(help="The new run.")],
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with status 1 unless this holds for the new run, or behind ratio: for new over old; may be "
            "repeated: 'acceptance_length>=2.1', 'ratio:position[0]>=0.98'."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as one JSON document.")] = False,
) -> int:
    """Pair two runs of the same requests by id and compare acceptance, speed and texts.

    Example: batchspec compare reports/old reports/new --require 'ratio:acceptance_length>=0.98'
    """
    from batchspec.cli.lines import remark
    from batchspec.cli.output import print_result
    from batchspec.compare.comparing import compare_runs
    from batchspec.compare.gate import judge_comparison, parse_comparison_requirements, wanted_measures
    from batchspec.compare.remarks import left_out_sentences
    from batchspec.compare.tables import comparison_parts
    from batchspec.files.manifest import damaged_manifests
    from batchspec.files.unfinished import unfinished_sentences

    requirements = parse_comparison_requirements(require or ())
    document = compare_runs(run_a, run_b, wanted=wanted_measures(requirements))
    judged = judge_comparison(requirements, document)
    document["requirements"] = [one.document() for one in judged]
    print_result(document, comparison_parts(document), as_json=as_json)
    remarks = [*left_out_sentences(document), *(one.sentence() for one in judged if not one.holds)]
    unfinished = list(unfinished_sentences([run_a, run_b]))
    for sentence in [*damaged_manifests([run_a, run_b]), *unfinished, *remarks]:
        remark(sentence)
    return int(bool(remarks) or bool(requirements and unfinished))
