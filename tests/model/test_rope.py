"""Frequencies that transformers recomputes from the longest text in the batch are fixed at load."""

from typing import Any

import pytest
import torch

from batchspec.model.gate import admit
from batchspec.model.rope import freeze_frequencies

from .generating import CPU, engine_for, generate_alone, generate_paged, prompts_of
from .tiny import build

LONGROPE = {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}


def frozen(model_type: str, **changes: Any) -> tuple[Any, Any]:
    """Return a model as transformers runs it, and the same one frozen and admitted."""
    plain, module = build(model_type, **changes), build(model_type, **changes)
    freeze_frequencies(module, max_length=128)
    admit(module, device=CPU)
    return plain, module


def test_long_texts_are_transformers_own() -> None:
    plain, module = frozen("phi3", rope_parameters=LONGROPE, original_max_position_embeddings=16)
    prompts = prompts_of(21, 30)
    assert generate_paged(engine_for(module), prompts, max_tokens=10) == generate_alone(plain, prompts, max_tokens=10)


@pytest.mark.parametrize("parameters", [LONGROPE, DYNAMIC])
def test_a_long_neighbour_changes_nothing(parameters: dict[str, Any]) -> None:
    model_type, changes = (
        ("phi3", {"original_max_position_embeddings": 16}) if parameters is LONGROPE else ("llama", {})
    )
    _, module = frozen(model_type, rope_parameters=parameters, **changes)
    short, long = prompts_of(5, 40)
    alone = generate_paged(engine_for(module), [short], max_tokens=8)[0]
    assert generate_paged(engine_for(module), [short, long], max_tokens=8)[0] == alone


def test_unfrozen_the_frequencies_would_move() -> None:
    plain = build("phi3", rope_parameters=LONGROPE, original_max_position_embeddings=16)
    rotary = plain.model.rotary_emb
    states = torch.zeros(1, 1, 32)
    near = rotary(states, torch.tensor([[3]]))[0]
    far = rotary(states, torch.tensor([[3, 100]]))[0]
    assert not torch.allclose(near[0, 0], far[0, 0])
