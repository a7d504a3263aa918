"""What bench.json looks like, as a JSON schema."""

from typing import Any

NUMBER: dict[str, Any] = {"type": "number"}
COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
TEXT: dict[str, Any] = {"type": "string"}


def record(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


def by_name(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values, "minProperties": 1}


def optional(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


SPREAD = record(median=NUMBER, min=NUMBER, max=NUMBER)
CELL = record(
    rows=COUNT,
    rows_per_sequence=COUNT,
    num_sequences=COUNT,
    context=COUNT,
    forward_seconds=SPREAD,
    judge_seconds=SPREAD,
    matmul_seconds=SPREAD,
    kv_seconds=NUMBER,
    over_floor=SPREAD,
)
WAY = record(n=COUNT, k=COUNT, count=COUNT, fastest=TEXT, seconds=by_name(NUMBER))
MODE = record(num_steps=COUNT, step_seconds=SPREAD, outside_share=SPREAD, seconds_by_station=by_name(SPREAD))
ENGINE = record(
    tokens_per_second=SPREAD, seconds=SPREAD, output_tokens=COUNT, counts=optional(by_name(COUNT)), rounds=array({})
)
RATIO = record(engine=TEXT, over=TEXT, tokens_per_second=SPREAD, cpu_seconds=optional(SPREAD))
SIZE = record(
    max_num_seqs=COUNT,
    num_prompts=COUNT,
    prompt_tokens=COUNT,
    max_tokens=COUNT,
    engines=by_name(ENGINE),
    ratios={"type": "array", "items": RATIO},
)
CACHED = record(prefill_tokens=COUNT, seconds=NUMBER)
PREFIX = record(
    num_requests=COUNT,
    header_tokens=COUNT,
    **{"with": CACHED, "without": CACHED},
    work_ratio=NUMBER,
    is_identical={"type": "boolean"},
)
ROW = record(
    method=TEXT,
    num_speculative_tokens=COUNT,
    is_adaptive={"type": "boolean"},
    is_changed={"type": "boolean"},
    is_recalling={"type": "boolean"},
    tokens_per_second=SPREAD,
    over_none=SPREAD,
    best_fixed=TEXT,
    over_best_fixed=SPREAD,
    output_tokens=COUNT,
    counts=record(
        num_steps=COUNT,
        num_decode_steps=COUNT,
        num_decoded_tokens=COUNT,
        num_drafts=COUNT,
        num_draft_tokens=COUNT,
        num_accepted_draft_tokens=COUNT,
    ),
    accepted_per_draft=optional(NUMBER),
    tokens_per_decode_step=optional(NUMBER),
    accepted_by_source={"type": "object", "additionalProperties": COUNT},
    num_different=COUNT,
    rounds=array({}),
)
DRAFTERS = record(
    num_requests=COUNT,
    num_left_out=COUNT,
    num_changed=COUNT,
    remarks={"type": "array", "items": TEXT},
    is_identical={"type": "boolean"},
    sizes=array(record(max_num_seqs=COUNT, rows=by_name(ROW))),
)
BENCH = record(
    version=TEXT,
    created=TEXT,
    settings={"type": "object"},
    interrupted=optional(record(num_rounds=COUNT)),
    model=record(
        name=TEXT,
        fingerprint=optional(TEXT),
        device=TEXT,
        dtype=TEXT,
        implementation=TEXT,
        weight_bytes=COUNT,
        kv_bytes_per_token=COUNT,
    ),
    prompts=record(input=TEXT, num_prompts=COUNT, num_left_out=COUNT, num_cut=COUNT, num_plain=COUNT),
    machine={"type": "object", "required": ["processor", "num_cores", "num_threads", "torch", "copy"]},
    steps=optional(record(cells=array(CELL), matmuls=by_name(array(WAY)))),
    overhead=optional(record(max_num_seqs=COUNT, modes=by_name(MODE))),
    throughput=optional(array(SIZE)),
    prefix=optional(PREFIX),
    start=optional(record(first_token={"type": "object"}, memory=by_name(COUNT))),
    drafters=optional(DRAFTERS),
)
