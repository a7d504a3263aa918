"""``batchspec replay``: what would other drafters have accepted on these outputs?"""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from batchspec.teacher import Teacher

__all__ = ["replay"]


def replay(
    logs: Annotated[
        list[str],
        typer.Argument(
            help="Responses with token ids (JSONL, .gz, .zst, Parquet), run directories, or - for standard input."
        ),
    ],
    method: Annotated[
        str, typer.Option(help="Drafters, with commas between them: ngram, suffix, recall, draft_model.")
    ] = "ngram",
    num_speculative_tokens: Annotated[str, typer.Option(help="Draft lengths (k), like 1..8 or 1,3,5.")] = "1..8",
    prompt_lookup_min: Annotated[int | None, typer.Option(help="Shortest n-gram.", show_default="1")] = None,
    prompt_lookup_max: Annotated[int | None, typer.Option(help="Longest n-gram.", show_default="3")] = None,
    recall_path: Annotated[str | None, typer.Option(help="An earlier run's responses.jsonl, for recall.")] = None,
    draft_model: Annotated[
        str | None,
        typer.Option(help="Small model of the same vocabulary, for draft_model.", show_default="embedded one"),
    ] = None,
    speculative_config: Annotated[
        str | None, typer.Option(help="Further keys of the drafters as JSON, with vLLM's names.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Directory of a tokenizer.json, for texts without token ids; the result is marked."),
    ] = None,
    prompts: Annotated[str | None, typer.Option(help="The requests of those texts, as for run.")] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            help="Step times, to predict the speed-up: a bench.json, or A,B: seconds of a step and of each of its rows."
        ),
    ] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(help="Most sequences in the running batch.", show_default="the run's, else 64")
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None, typer.Option(help="Most tokens in one forward pass.", show_default="the run's, else 2048")
    ] = None,
    max_model_len: Annotated[
        int | None,
        typer.Option(help="Most tokens of a sequence and its draft.", show_default="the run's, else no limit"),
    ] = None,
    histogram: Annotated[bool, typer.Option("--histogram", help="Also show the accepted tokens of steps.")] = False,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="Exit with status 1 unless this holds for every setting, may be repeated: 'acceptance_length>=2.1', "
            "'category:code:acceptance_rate>=0.5'."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")] = False,
) -> int:
    """Tell exactly what drafters would have accepted on recorded outputs, without running the model again.

    Example: batchspec replay reports/demo --method ngram,suffix --num-speculative-tokens 1..8
    """
    from batchspec.cli.lines import remark
    from batchspec.cli.output import print_result
    from batchspec.files.unfinished import unfinished_sentences
    from batchspec.replay.costs import read_costs
    from batchspec.replay.gate import judge_replay, parse_replay_requirements
    from batchspec.replay.grid import parse_config, parse_lengths, parse_methods, settings_for
    from batchspec.replay.remarks import left_out_sentences
    from batchspec.replay.replaying import replay_logs
    from batchspec.replay.settings import ReplaySettings
    from batchspec.replay.tables import replay_parts

    flags = {
        "prompt_lookup_min": prompt_lookup_min,
        "prompt_lookup_max": prompt_lookup_max,
        "path": recall_path,
        "model": draft_model,
    }
    given = parse_config(speculative_config) | {key: value for key, value in flags.items() if value is not None}
    settings = ReplaySettings(
        paths=tuple(logs),
        configs=tuple(settings_for(parse_methods(method), parse_lengths(num_speculative_tokens), given)),
        machine={
            "max_num_seqs": max_num_seqs,
            "max_num_batched_tokens": max_num_batched_tokens,
            "max_model_len": max_model_len,
        },
        tokenizer=tokenizer,
        prompts=prompts,
        costs=None if cost is None else read_costs(cost),
        open_draft_model=_open_draft_model,
    )
    requirements = parse_replay_requirements(require or ())
    document = replay_logs(settings)
    judged = judge_replay(requirements, document)
    document["requirements"] = [one.document() for one in judged]
    print_result(document, replay_parts(document, histograms=histogram), as_json=as_json)
    remarks = [*left_out_sentences(document), *(one.sentence() for one in judged if not one.holds)]
    unfinished = list(unfinished_sentences(logs))
    for sentence in [*unfinished, *remarks]:
        remark(sentence)
    return int(bool(remarks) or bool(requirements and unfinished))


def _open_draft_model(model: str | None) -> "Teacher":
    from batchspec.teacher import open_teacher

    return open_teacher(model)
