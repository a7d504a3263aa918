"""Output lines for the tests: made by the real recorder and the real record shapes."""

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings

from batchspec.acceptance import AcceptanceRecorder, Level, make_recorder
from batchspec.records import Choice, Usage, error_record, metrics_document, response_record
from batchspec.request import Endpoint, RejectedLine, Request, TextPrompt

PROMPT_TOKENS = 90
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def recorder_of(
    steps: Sequence[tuple[int, int]], *, num_spec_tokens: int, level: Level = Level.DETAILED, num_discarded: int = 0
) -> AcceptanceRecorder:
    """Record (drafted, accepted) steps; the last one discards some of what it would emit."""
    recorder = make_recorder(level=level, num_spec_tokens=num_spec_tokens)
    assert recorder is not None
    position = 1
    for index, (num_drafted, num_accepted) in enumerate(steps):
        cut = num_discarded if index == len(steps) - 1 else 0
        num_emitted = num_accepted + 1 - cut
        recorder.record(num_drafted=num_drafted, num_accepted=num_accepted, num_emitted=num_emitted, position=position)
        position += num_emitted
    return recorder


def emitted_by(recorder: AcceptanceRecorder) -> int:
    """Output tokens of a request with one turn, by the identity of the two lengths."""
    return 1 + recorder.num_decode_steps + recorder.num_accepted_draft_tokens - recorder.num_discarded_tokens


def served(
    recorder: AcceptanceRecorder | None, *, index: int = 0, category: str | None = None, completion_tokens: int = 7
) -> dict[str, Any]:
    """Return a served request's line; without a recorder it carries no metrics."""
    num_tokens = completion_tokens if recorder is None else emitted_by(recorder)
    request = Request(
        index=index,
        line=index + 1,
        custom_id=f"r{index}",
        endpoint=Endpoint.COMPLETIONS,
        prompts=(TextPrompt(text="x"),),
        category=category,
    )
    metrics = metrics_document(
        timing=None,
        speculative_decoding=None if recorder is None else recorder.speculative_decoding(),
        batchspec=None if recorder is None else recorder.emitted(completion_tokens=num_tokens),
    )
    return response_record(
        request,
        choices=[Choice(text="y", finish_reason="length" if index % 3 else "stop")],
        usage=Usage(prompt_tokens=PROMPT_TOKENS, completion_tokens=num_tokens),
        metrics=metrics,
        model_name="m",
        created=0,
    )


def failed(*, index: int = 0, code: str = "invalid_value", category: str | None = None) -> dict[str, Any]:
    """Return a failed request's line."""
    line = RejectedLine(index=index, line=index + 1, custom_id=None, message="no", code=code, category=category)
    return error_record(line)


def random_recorders(
    *, seed: int, num: int, num_spec_tokens: int, rates: Sequence[float], level: Level = Level.DETAILED
) -> list[AcceptanceRecorder]:
    """Return recorders whose drafts match with the rates in turn; some have no step at all."""
    generator = random.Random(seed)
    recorders = []
    for index in range(num):
        steps = []
        for _ in range(generator.randrange(40)):
            num_drafted = generator.choice([0, num_spec_tokens, num_spec_tokens, num_spec_tokens - 1])
            num_accepted = 0
            while num_accepted < num_drafted and generator.random() < rates[index % len(rates)]:
                num_accepted += 1
            steps.append((num_drafted, num_accepted))
        cut = generator.randrange(steps[-1][1] + 1) if steps else 0
        recorders.append(recorder_of(steps, num_spec_tokens=num_spec_tokens, level=level, num_discarded=cut))
    return recorders
