"""A token's logits have the same bits however it came into the batch; that makes the text independent of batching.

Dense models only: a mixture of experts multiplies as many rows at once as happen to choose an expert, so that its
last bits depend on the neighbours.
"""

import pytest
import torch

from batchspec.model.gate import admit
from batchspec.model.locate import locate
from batchspec.model.modules import ModuleNetwork
from batchspec.model.native.loading import load_native
from batchspec.model.network import Network
from batchspec.model.strips import can_pair

from .by_hand import Pages
from .generating import CPU, prompts_of
from .saved import byte_tokenizer
from .tiny import build

LONG = 40


@pytest.fixture(
    params=["llama", "gemma3_text", "gpt2", "gemma2", "qwen3", "ours in 16 bits", "ours in 32 bits", "ours in pairs"],
    scope="module",
)
def network(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Network:
    if request.param.startswith("ours"):
        directory = tmp_path_factory.mktemp("model")
        in_pairs = "pairs" in request.param
        if in_pairs and not can_pair():
            pytest.skip("this processor multiplies no pairs of bfloat16")
        dtype = torch.bfloat16 if "16" in request.param else torch.float32
        build("gemma3_text", hidden_size=40, intermediate_size=53).to(dtype).save_pretrained(directory)
        byte_tokenizer().save_pretrained(directory)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.cpu, "get_capabilities", dict)  # tiles would be preferred
            parts = load_native(locate(directory), dtype=torch.bfloat16 if in_pairs else torch.float32, device=CPU)
        return parts.network
    odd = request.param in ("llama", "gemma3_text")
    sizes = {"hidden_size": 40, "intermediate_size": 53} if odd else {}  # not multiples of lanes
    module = build(request.param, **sizes)
    admit(module, device=CPU)
    return ModuleNetwork(module)


@pytest.fixture(scope="module")
def tokens() -> list[int]:
    return prompts_of(LONG)[0]


@pytest.fixture(scope="module")
def one_by_one(network: Network, tokens: list[int]) -> list[torch.Tensor]:
    """Each position's logits (vocabulary,), computed alone."""
    pages = Pages(network)
    sequence = pages.sequence(tokens)
    return [pages.forward((sequence, i, i + 1, 1))[0][0] for i in range(LONG)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 15, 16, 17, 31, LONG])
def test_chunks_of_any_size(network: Network, tokens: list[int], one_by_one: list[torch.Tensor], size: int) -> None:
    pages = Pages(network)
    sequence = pages.sequence(tokens)
    for start in range(0, LONG, size):
        end = min(start + size, LONG)
        logits = pages.forward((sequence, start, end, end - start))[0]
        for position in range(start, end):
            assert torch.equal(logits[position - start], one_by_one[position]), position


@pytest.mark.parametrize("lengths", [(1,), (3, 1, 12), (30, 9), (1,) * 20, (60, 37)])
def test_neighbours(
    network: Network, tokens: list[int], one_by_one: list[torch.Tensor], lengths: tuple[int, ...]
) -> None:
    pages = Pages(network)
    others = [(pages.sequence(other), 0, len(other), 1) for other in prompts_of(*lengths, seed=5)]
    sequence = pages.sequence(tokens)
    half = len(others) // 2
    found = pages.forward(*others[:half], (sequence, 0, LONG, 1), *others[half:])[half]
    assert torch.equal(found[0], one_by_one[-1])


@pytest.mark.parametrize("num_drafted", [1, 3, 8, 20])
def test_draft_rows(network: Network, tokens: list[int], one_by_one: list[torch.Tensor], num_drafted: int) -> None:
    pages = Pages(network)
    start = LONG - 1 - num_drafted
    wrong = tokens[: start + 1] + [(token + 1) % 97 for token in tokens[start + 1 :]]
    sequence = pages.sequence(wrong)
    pages.forward((sequence, 0, start, 1))
    rejected = pages.forward((sequence, start, LONG, 1 + num_drafted))[0]
    assert torch.equal(rejected[0], one_by_one[start])
    sequence.tokens[:] = tokens  # the rejected draft's keys and values are written over
    accepted = pages.forward((sequence, start, LONG, 1 + num_drafted))[0]
    assert torch.equal(accepted, torch.stack(one_by_one[start:]))


def test_recomputed_after_preemption(network: Network, tokens: list[int], one_by_one: list[torch.Tensor]) -> None:
    pages = Pages(network)
    sequence = pages.sequence(tokens)
    for start in range(0, 24, 6):
        pages.forward((sequence, start, start + 6, 1))
    pages.free = sequence.blocks + pages.free
    again = pages.sequence(tokens)
    assert again.blocks != sequence.blocks
    assert torch.equal(pages.forward((again, 0, LONG, 1))[0][0], one_by_one[-1])
