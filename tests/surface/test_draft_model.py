"""For every parameter: a draft model that is the target once more is right to the last token.

Its tokens are chosen with the request's parameters as if the drafted ones before had been emitted. It knows nothing of
grammars, so there only the text is compared.
"""

from typing import Any

import pytest

from batchspec.acceptance import Level
from batchspec.drafting.draft_model import DraftModelDrafter
from batchspec.testing import make_draft_model
from tests.core.runs import reconciliation_of

from .bodies import check_shape, essence
from .cases import CASES, endpoint_of
from .serving import ContextModel, engine_of, parsed, serve_one
from .test_speculation_changes_nothing import TEMPERATURES, body_for, reference

GRAMMARS = {"response_format", "structured_outputs", "guided_regex"}


@pytest.mark.parametrize("temperature", TEMPERATURES)
@pytest.mark.parametrize("name", CASES)
def test_a_twin_of_the_target_is_always_right(name: str, temperature: float) -> None:
    case: dict[str, Any] = CASES[name]
    expected, _ = reference(name, temperature)
    draft_model = make_draft_model(model=ContextModel(), context_length=256, num_blocks=256)
    engine = engine_of(DraftModelDrafter(num_spec_tokens=4, draft_model=draft_model), level=Level.DETAILED)
    record = serve_one(engine, parsed(body_for(name, temperature), endpoint=endpoint_of(case)))
    assert record["error"] is None, record["error"]
    assert essence(record["response"]["body"]) == essence(expected)
    check_shape(record["response"]["body"])
    assert reconciliation_of(engine, [record]).is_exact
    if not GRAMMARS & set(case):
        assert engine.progress.num_draft_tokens > 0 or name.startswith("max_tokens")
        assert engine.progress.num_accepted_draft_tokens == engine.progress.num_draft_tokens
    assert draft_model.pages.shadows == []
