"""Where in a response each engine puts its numbers, and who reads them there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from batchspec.ingest.faults import malformed
from batchspec.ingest.record import Acceptance
from batchspec.ingest.shapes.per_step import read_spec_bench
from batchspec.ingest.shapes.positions import read_mlc
from batchspec.ingest.shapes.sglang import read_sglang, read_tokenspeed
from batchspec.ingest.shapes.tensorrt import read_iterations, read_tensorrt
from batchspec.ingest.shapes.timings import read_llama_cpp, read_mlx_vlm
from batchspec.ingest.shapes.totals import (
    read_exllama,
    read_lm_studio,
    read_predictions,
    read_tabby,
    read_tensorfold,
)
from batchspec.ingest.shapes.vllm import read_sparse, read_vllm

__all__ = ["IN_CHOICE", "IN_RESPONSE", "LAST_RESORT", "Place", "find_acceptance"]

Block = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A place in a response or in a choice of it.

    Attributes:
        engine: whose place it is.
        keys: the way to the block, from outside; empty for the response or choice itself.
        read: makes an ``Acceptance`` of the block and what it stands in; None where it does not speak of drafts.
        is_own: whether the block exists for acceptance alone, so that anything but an object or null is a fault.
    """

    engine: str
    keys: tuple[str, ...]
    read: Callable[[Block, Block], Acceptance | None]
    is_own: bool = False


IN_RESPONSE = (
    Place(engine="vllm", keys=("metrics", "speculative_decoding"), read=read_vllm, is_own=True),
    Place(engine="sglang", keys=("sglext", "spec_tokens_details"), read=read_sglang, is_own=True),
    Place(engine="tokenspeed", keys=("meta_info",), read=read_tokenspeed),
    Place(engine="sglang", keys=("meta_info",), read=read_sglang),
    Place(engine="mlx-vlm", keys=("timings",), read=read_mlx_vlm),
    Place(engine="llama.cpp", keys=("timings",), read=read_llama_cpp),
    Place(engine="lm-studio", keys=("stats",), read=read_lm_studio),
    Place(engine="lm-studio", keys=("usage",), read=read_lm_studio),
    Place(engine="tensorrt-llm", keys=("perf_metrics", "speculative_decoding"), read=read_tensorrt, is_own=True),
    Place(engine="tensorrt-llm", keys=("speculative_decoding",), read=read_tensorrt, is_own=True),
    Place(engine="vllm", keys=("spec_decode_metrics",), read=read_vllm, is_own=True),
    Place(engine="exllama", keys=(), read=read_exllama),
    Place(engine="tabbyapi", keys=(), read=read_tabby),
    Place(engine="tensorfold", keys=(), read=read_tensorfold),
)
IN_CHOICE = (
    Place(engine="vllm", keys=("speculative_decoding_stats",), read=read_sparse, is_own=True),
    Place(engine="tensorrt-llm", keys=("speculative_decoding",), read=read_tensorrt, is_own=True),
    Place(engine="tokenspeed", keys=("meta_info",), read=read_tokenspeed),
    Place(engine="sglang", keys=("meta_info",), read=read_sglang),
    Place(engine="vllm", keys=("spec_decode_metrics",), read=read_vllm, is_own=True),
    Place(engine="spec-bench", keys=(), read=read_spec_bench),
    Place(engine="tensorrt-llm", keys=(), read=read_iterations),
)
LAST_RESORT = (
    Place(engine="mlc-llm", keys=("usage", "extra"), read=read_mlc),
    Place(engine="mlc-llm", keys=("usage", "extra", "spec_decode"), read=read_mlc),
    Place(engine="prediction-tokens", keys=("usage", "completion_tokens_details"), read=read_predictions),
)
"""Fields that mean something else elsewhere; asked only where no other place speaks of drafts."""


def find_acceptance(places: tuple[Place, ...], outer: Block) -> tuple[str, Acceptance] | None:
    """Return engine and numbers of the first place that speaks of drafts.

    Args:
        places: in the order in which they are asked.
        outer: a response or a choice.

    Raises:
        RowFault: a number there is of the wrong kind.
    """
    for place in places:
        block: Any = outer
        for key in place.keys:
            block = block.get(key)
            if type(block) is not dict:
                break
        if type(block) is dict:
            acceptance = place.read(block, outer)
            if acceptance is not None:
                return place.engine, acceptance
        elif place.is_own and block is not None and key == place.keys[-1]:
            raise malformed(".".join(place.keys), block, "an object or null")
    return None
