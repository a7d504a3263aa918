"""What is fed, and what must hold of what comes back: a record or a sentence for every input, and never a traceback."""

import gzip
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import orjson
import pyarrow as pa

from batchspec.acceptance import Level
from batchspec.audit.inputs import find_inputs
from batchspec.audit.reconciling import reconcile_logs
from batchspec.audit.tables import audit_parts
from batchspec.compare.comparing import compare_runs
from batchspec.compare.tables import comparison_parts
from batchspec.convert.batch_lines import ForeignFormat
from batchspec.convert.command import ConvertSettings, open_conversion
from batchspec.drafting.config import SpeculativeConfig
from batchspec.errors import RequestError, UsageError
from batchspec.files import Columns, RecordedAnswers, RowDefaults, open_for_resume, open_source, read_requests
from batchspec.files.manifest import read_manifest
from batchspec.grammar import GrammarCompiler, byte_tokenizer
from batchspec.grammar.trial import Trial
from batchspec.ingest import read_logs
from batchspec.model.locate import EMBEDDED_TARGET
from batchspec.model.plain_tokenizer import PlainTokenizer
from batchspec.model.tokenizer import Tokenizer
from batchspec.params import StructuredOutput
from batchspec.plain_text import escaped_json, printable
from batchspec.reconcile.scrapes import read_scrape
from batchspec.replay.reading import Reader
from batchspec.report.layout import Part
from batchspec.report.logs import Grouping, survey_logs
from batchspec.report.logs.formats import ReportFormat, log_text
from batchspec.report.markdown import parts_markdown
from batchspec.report.page import parts_page
from batchspec.report.plain import parts_text
from batchspec.request import ChatPrompt, Intake, RejectedLine, Request
from batchspec.testing import make_engine

from . import grammars
from .making import ROWS, TEXTS, json_text, mutated, spoiled, strange
from .tables import write_table

__all__ = ["TARGETS", "Target"]

DATA = Path(__file__).parents[1] / "data"
_DEFAULTS = RowDefaults(max_tokens=4)
_STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

Target = Callable[[Random, Path], None]
"""Makes one input of what the dice say in an empty directory, and raises if something does not hold."""


def _sentence(text: str, *, longest: int = 2000) -> None:
    assert text, "an empty sentence"
    assert "\n" not in text, text
    assert len(text) < longest, f"a sentence of {len(text)} characters"


def _harmless(text: str) -> None:
    found = _STEERING.search(text)
    assert found is None, f"{found[0]!r} reaches the terminal"


def _check_intake(lines: list[Intake]) -> None:
    for index, line in enumerate(lines):
        assert line.index == index
        if isinstance(line, RejectedLine):
            _sentence(line.message)
        else:
            assert line.custom_id


def _read(path: Path | str, columns: Columns | None = None) -> list[Intake]:
    return list(read_requests(open_source(path), columns=columns or Columns(), defaults=_DEFAULTS))


def _columns(dice: Random) -> Columns:
    if dice.random() < 0.7:
        return Columns()
    return Columns(prompt=dice.choice([None, "x", "messages", "turns"]), id=dice.choice([None, "prompt", "x"]))


def lines(dice: Random, scratch: Path) -> None:
    """Lines of requests, of which any may be anything."""
    rows = [json_text(mutated(dice.choice(ROWS), dice), dice) for _ in range(dice.randrange(4))]
    data = spoiled(dice.choice([b"\n", b"\r\n", b"\n\n"]).join(rows), dice)
    path = scratch / dice.choice(["a.jsonl", "a", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"])
    if path.suffix == ".gz" and dice.random() < 0.8:
        data = spoiled(gzip.compress(data, 1), dice) if dice.random() < 0.3 else gzip.compress(data, 1)
    if path.suffix == ".zst" and dice.random() < 0.8:
        data = pa.compress(data, codec="zstd", asbytes=True)
    path.write_bytes(data)
    try:
        _check_intake(_read(path, _columns(dice)))
    except UsageError as error:
        _sentence(str(error))


def parquet(dice: Random, scratch: Path) -> None:
    """Parquet files of any types, as requests and as logs; every row is a request, a rejection, or a record."""
    path = scratch / "a.parquet"
    size = write_table(path, dice)
    is_damaged = dice.random() < 0.15
    if is_damaged:
        path.write_bytes(spoiled(path.read_bytes(), dice))
    try:
        found = _read(path, _columns(dice))
        _check_intake(found)
        assert is_damaged or len(found) == size
        _serve(found)
        list(read_logs([path]))
    except UsageError as error:
        if not is_damaged:
            raise
        _sentence(str(error))


def _is_small(request: Request) -> bool:
    return request.sampling.n <= 3 and request.sampling.structured is None


def _serve(intake: list[Intake]) -> None:
    engine = make_engine(level=Level.DETAILED, timing=True)
    requests = [line for line in intake if isinstance(line, RejectedLine) or _is_small(line)]
    records = list(engine.run(requests, in_order=False))
    assert len(records) == len(requests)
    for record in records:
        orjson.loads(orjson.dumps(record))
        if record["error"] is not None:
            _sentence(record["error"]["message"])


def requests(dice: Random, scratch: Path) -> None:
    """Requests served by an engine: one record each that is JSON."""
    rows = [mutated(dice.choice(ROWS), dice) for _ in range(dice.randrange(1, 4))]
    for number, row in enumerate(rows):
        if isinstance(row, dict) and "custom_id" in row:
            row["custom_id"] = str(number)
    path = scratch / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _serve(_read(path))


@cache
def _known() -> tuple[Any, ...]:
    rows: list[Any] = []
    for path in sorted((DATA / "foreign").glob("*.jsonl")):
        lines = (line.removeprefix(b"data:") for line in path.read_bytes().splitlines())
        rows += [orjson.loads(line) for line in lines if line.strip() and b"[DONE]" not in line]
    return tuple(rows)


def _log(dice: Random, path: Path) -> Path:
    rows = []
    for _ in range(dice.randrange(1, 6)):
        row = mutated(dice.choice(_known()), dice)
        if isinstance(row, dict) and dice.random() < 0.4:
            row = {"custom_id": dice.choice(TEXTS), "category": dice.choice(TEXTS), "response": {"body": row}}
        text = json_text(row, dice) if dice.random() < 0.3 else json.dumps(row).encode()
        rows.append(b"data: " + text if dice.random() < 0.2 else text)
    path.write_bytes(spoiled(b"\n".join(rows), dice) if dice.random() < 0.2 else b"\n".join(rows))
    return path


def logs(dice: Random, scratch: Path) -> None:
    """Logs of any engine, and reports of them in every form."""
    path = _log(dice, scratch / dice.choice(["a.jsonl", "\x1b[31m.jsonl", "=cmd.jsonl"]))
    try:
        document = survey_logs([str(path)], by=dice.choice([None, *Grouping]))
    except UsageError as error:
        _sentence(printable(str(error)))
        return
    for form in ReportFormat:
        text = log_text(document, form)
        _harmless(text)
        if form is ReportFormat.HTML:
            assert "<script" not in text
            assert "<img" not in text
        if form is ReportFormat.CSV:
            assert not any(line.startswith(("=", "+", "-", "@", '"=', '"@')) for line in text.splitlines())


def comparisons(dice: Random, scratch: Path) -> None:
    """Two logs compared, replayed, recalled, converted and reconciled."""
    paths = [str(_log(dice, scratch / name)) for name in ("a.jsonl", "b.jsonl")]
    scrape = scratch / "a.prom"
    scrape.write_bytes(_exposition(dice))
    list(Reader().read(open_source(paths[0]).rows()))
    inputs = partial(find_inputs, paths[0], after=str(scrape), before=None)
    _shown(lambda: compare_runs(*paths), comparison_parts)
    _shown(lambda: reconcile_logs(inputs()), audit_parts)
    try:
        answers = RecordedAnswers(paths[0], encode=lambda text: list(text.encode()))
        for name in answers._places:
            answers.answer_to(name, 1)
        list(answers.latest(-1))
    except UsageError as error:
        _sentence(printable(str(error)))


def _shown(make: Callable[[], dict[str, Any]], parts: Callable[[dict[str, Any]], Iterable[Part]]) -> None:
    """Show a document in every form, or the sentence that there is none."""
    try:
        document = make()
    except UsageError as error:
        _sentence(printable(str(error)))
        return
    shown = list(parts(document))
    _harmless(parts_text(shown) + parts_markdown("x", shown) + parts_page("x", shown, ()))
    _harmless(escaped_json(json.dumps(document, indent=2, ensure_ascii=False)))


def conversions(dice: Random, scratch: Path) -> None:
    """Neighbours' files on their way to batch lines, which then are requests."""
    rows: list[Any] = [
        {"question_id": 1, "category": "x", "turns": ["a", "b"]},
        {"id": "a", "conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "ho"}]},
    ]
    found = [mutated(dice.choice(rows), dice) for _ in range(dice.randrange(1, 5))]
    form = dice.choice(list(ForeignFormat))
    path = scratch / "a.json"
    text = (
        json_text(found, dice) if form is ForeignFormat.SHAREGPT else b"\n".join(json_text(one, dice) for one in found)
    )
    path.write_bytes(spoiled(text, dice) if dice.random() < 0.3 else text)
    said: list[str] = []
    try:
        with open_conversion(ConvertSettings(input=str(path), form=form, is_to_aiperf=False), say=said.append) as one:
            made = [orjson.dumps(line) for line in one.lines()]
    except UsageError as error:
        _sentence(printable(str(error)))
        return
    for sentence in said:
        _sentence(sentence)
    out = scratch / "b.jsonl"
    out.write_bytes(b"\n".join(made))
    _check_intake(_read(out))
    with open_conversion(
        ConvertSettings(input=str(_log(dice, scratch / "c.jsonl")), form=None, is_to_aiperf=True), say=said.append
    ) as one:
        for line in one.lines():
            orjson.dumps(line)


_METRICS = [
    'vllm:spec_decode_num_drafts_total{engine="0",model_name="m"} 5.0',
    'vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="m"} 15.0',
    'vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="m"} 7.0',
    'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="m",position="0"} 4.0',
    'vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 2.0',
    "# TYPE vllm:spec_decode_num_drafts_total counter",
    "# HELP x a \\n b",
    "trtllm_spec_decode_num_draft_tokens_total 3",
    "# EOF",
]
_PIECES = [
    "NaN",
    "+Inf",
    "-1",
    "1e400",
    "{",
    "}",
    '"',
    "\\",
    "\x1b[31m",
    "0x10",
    'position="x"',
    'position="²"',
    "1_0",
    " 5 6 7",
]
_PIECES += ["٣", 'le="+Inf"', "# {} 1", "\x00", "9" * 400, ",", "=", "1.5"]


def _exposition(dice: Random) -> bytes:
    lines = [dice.choice(_METRICS) for _ in range(dice.randrange(8))]
    for _ in range(dice.randrange(3)):
        if lines:
            number = dice.randrange(len(lines))
            at = dice.randrange(len(lines[number]) + 1)
            lines[number] = lines[number][:at] + dice.choice(_PIECES) + lines[number][at + dice.randrange(4) :]
    return spoiled("\n".join(lines).encode(), dice)


def scrapes(dice: Random, scratch: Path) -> None:
    """Metrics of a server."""
    path = scratch / "a.prom"
    path.write_bytes(_exposition(dice))
    try:
        for series, count in read_scrape(path).counts.items():
            assert count >= 0
            str(series)
            assert series.position is None or series.position >= 0
    except UsageError as error:
        _sentence(printable(str(error)))


def settings(dice: Random, scratch: Path) -> None:
    """What a run directory can hold, and the drafter's configuration."""
    known = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1, "prompt_lookup_max": 3}
    config = mutated(known | {"adaptive": True}, dice)
    try:
        SpeculativeConfig.from_mapping(config if isinstance(config, dict) else {})
    except UsageError as error:  # about what the user typed, shown as it is
        _sentence(printable(str(error)), longest=20_000)
    manifest = {"batchspec_version": "1", "parameters": {}, "model": {}, "dataset": {"path": "x"}, "status": "running"}
    (scratch / "manifest.json").write_bytes(spoiled(json_text(mutated(manifest, dice), dice), dice))
    try:
        read_manifest(scratch / "manifest.json")
    except UsageError as error:
        _sentence(printable(str(error)))
    record = {"id": "batch_req_00000000", "custom_id": "a", "response": {"status_code": 200, "body": {}}, "error": None}
    journal, checkpoint = scratch / "responses.jsonl", scratch / "checkpoint.json"
    journal.write_bytes(spoiled(b"\n".join(json_text(mutated(record, dice), dice) for _ in range(3)) + b"\n", dice))
    checkpoint.write_bytes(spoiled(b'{"num_bytes": 10, "num_records": 1, "state": {}}', dice))
    one, recovery = open_for_resume(path=journal, checkpoint_path=checkpoint)
    with one:
        assert recovery.num_records == len(journal.read_bytes().splitlines())


@cache
def _tokenizer() -> Tokenizer:
    return Tokenizer(PlainTokenizer(EMBEDDED_TARGET))


def chats(dice: Random, scratch: Path) -> None:
    """Chats with anything in them, rendered and turned into tokens."""
    body = mutated(
        {
            "messages": [
                {"role": "user", "content": dice.choice(TEXTS)},
                {
                    "role": "assistant",
                    "content": "x",
                    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
            ],
            "chat_template_kwargs": {"thinking": strange(dice)},
        },
        dice,
    )
    path = scratch / "a.jsonl"
    path.write_text(json.dumps(body) + "\n")
    for line in _read(path):
        if isinstance(line, Request):
            for prompt in line.prompts:
                try:
                    ids = _tokenizer().encode(prompt)
                    _tokenizer().decode(ids[:50], prompt_ids=[])
                except RequestError as error:
                    _sentence(error.message)
                assert not isinstance(prompt, ChatPrompt) or prompt.messages


@cache
def _compiler() -> GrammarCompiler:
    return GrammarCompiler(byte_tokenizer, max_cached=4, trial=Trial(compile_seconds=2.0))


def structures(dice: Random, scratch: Path) -> None:
    """Schemas, regular expressions and grammars: compiled, or refused by a sentence, and in time."""
    given: StructuredOutput = grammars.structured(dice)
    try:
        grammar = _compiler().compile(given)
        for token in b"aB0{":
            grammar.accept(token)
            if grammar.error is not None:
                _sentence(grammar.error)
                break
    except RequestError as error:
        _sentence(error.message)


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "lines": lines,
        "parquet": parquet,
        "requests": requests,
        "logs": logs,
        "comparisons": comparisons,
        "conversions": conversions,
        "scrapes": scrapes,
        "settings": settings,
        "chats": chats,
        "structures": structures,
    }
)
