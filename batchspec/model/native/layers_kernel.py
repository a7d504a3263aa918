"""The layers of a pass by threads that stay together from one product to the next.

To call threads for each product, and to wait for them in Python, takes a good part of a small step: see ``speed``.
"""

from typing import Any, NamedTuple

from batchspec.compiled import compiled, inner
from batchspec.model.attending.lanes import claim
from batchspec.model.kernel import attend_some, store
from batchspec.model.native.kernels import add_and_norm, rotate
from batchspec.model.native.meeting import counter, meet
from batchspec.model.strips.gated import gate_some
from batchspec.model.strips.kernel import multiply_some

__all__ = ["NUM_PARTS", "Front", "Memory", "Plan", "Rear", "run_layers"]

NUM_PARTS = 8
_PARTS_OF_ROWS = 4  # for each thread, so that one that comes late has less to do


class Front(NamedTuple):
    """Of a layer, up to its keys and values; see ``weights.LayerWeights``.

    Attributes:
        norm: before attention.
        former_norm: of what the layer before adds, of length 0 where it is not normalised.
        attention: queries, keys and values, in strips.
        head_norms: of queries and keys.
        cosine: float32 (rows, D / 2).
        sine: float32 (rows, D / 2).
        keys: the layer's pages.
        values: the layer's pages.
    """

    norm: Any
    former_norm: Any
    attention: Any
    head_norms: Any
    cosine: Any
    sine: Any
    keys: Any
    values: Any


class Rear(NamedTuple):
    """Of a layer, what follows; see ``weights.LayerWeights``.

    Attributes:
        keys: the layer's pages.
        values: the layer's pages.
        window: positions that a row sees, 0 for all.
        out: of attention, in strips.
        out_norm: of what attention adds.
        norm: before the feed-forward part.
        gates: with what they gate, in strips.
        down: in strips.
    """

    keys: Any
    values: Any
    window: int
    out: Any
    out_norm: Any
    norm: Any
    gates: Any
    down: Any


class Memory(NamedTuple):
    """Where rows are computed.

    Attributes:
        stream: float32 (rows, hidden), the residual stream.
        update: float32 (rows, hidden), what is to be added to it; no rows for nothing.
        normed: its norm, as products with hidden inputs take it.
        projected: float32 (rows, outputs of ``Front.attention``).
        heads: the same as (rows, heads, D).
        attended: what attention gives, as ``Rear.out`` takes it.
        seen: the same as (rows, query heads, D).
        gated: as ``Rear.down`` takes it.
    """

    stream: Any
    update: Any
    normed: Any
    projected: Any
    heads: Any
    attended: Any
    seen: Any
    gated: Any


class Plan(NamedTuple):
    """Where rows belong, see ``paging.PackedRows``, and what is the same for all layers, see ``shape.DecoderShape``."""

    slots: Any
    tables: Any
    row_chunk: Any
    row_position: Any
    num_heads: int
    num_kv_heads: int
    intermediate_size: int
    eps: float
    scale: float
    softcap: float
    sinks: Any
    is_silu: bool


@compiled(nogil=True)
def run_layers(
    words: Any, num_threads: int, plan: Any, memory: Any, rear: Any, has_rear: bool, front: Any, has_front: bool
) -> None:
    """Compute a layer from its attention on, and the next one up to its keys and values.

    Args:
        words: from ``meeting.words_for(NUM_PARTS)``, the same for all threads that call it, which share the work.
        num_threads: how many do.
        plan: a Plan.
        memory: a Memory.
        rear: a Rear.
        has_rear: whether there is one.
        front: a Front.
        has_front: whether there is one.
    """
    goes_on = _run_rear(words, num_threads, plan, memory, rear) if has_rear else True
    if goes_on and has_front:
        _run_front(words, num_threads, plan, memory, front)


@inner
def _run_rear(words: Any, num_threads: int, plan: Any, memory: Any, rear: Any) -> bool:
    attend_some(
        counter(words, 0),
        memory.heads,
        rear.keys,
        rear.values,
        plan.tables,
        plan.row_chunk,
        plan.row_position,
        rear.window,
        plan.scale,
        plan.softcap,
        plan.sinks,
        memory.seen,
    )
    if not meet(words, 0, num_threads):
        return False
    multiply_some(counter(words, 1), memory.attended, rear.out, memory.update)
    if not meet(words, 1, num_threads):
        return False
    _add(words, 2, num_threads, memory, rear.out_norm, rear.norm, plan.eps)
    if not meet(words, 2, num_threads):
        return False
    gate_some(counter(words, 3), memory.normed, rear.gates, plan.intermediate_size, plan.is_silu, memory.gated)
    if not meet(words, 3, num_threads):
        return False
    multiply_some(counter(words, 4), memory.gated, rear.down, memory.update)
    are_done: bool = meet(words, 4, num_threads)
    return are_done


@inner
def _run_front(words: Any, num_threads: int, plan: Any, memory: Any, front: Any) -> None:
    _add(words, 5, num_threads, memory, front.former_norm, front.norm, plan.eps)
    if not meet(words, 5, num_threads):
        return
    multiply_some(counter(words, 6), memory.normed, front.attention, memory.projected)
    if not meet(words, 6, num_threads):
        return
    own, num_rows = counter(words, 7), len(memory.heads)
    size = _rows_of_a_part(num_rows, num_threads)
    first = claim(own) * size
    while first < num_rows:
        last = min(first + size, num_rows)
        heads, slots = memory.heads[first:last], plan.slots[first:last]
        cosine, sine = front.cosine[first:last], front.sine[first:last]
        num_turned = plan.num_heads + plan.num_kv_heads
        rotate(heads, cosine, sine, plan.num_heads, num_turned, front.head_norms, plan.eps)
        store(heads, heads, plan.num_heads, num_turned, slots, front.keys, front.values)
        first = claim(own) * size


@inner
def _add(words: Any, part: int, num_threads: int, memory: Any, update_norm: Any, norm: Any, eps: float) -> None:
    own, num_rows = counter(words, part), len(memory.stream)
    size = _rows_of_a_part(num_rows, num_threads)
    first = claim(own) * size
    while first < num_rows:
        last = min(first + size, num_rows)
        stream, update = memory.stream[first:last], memory.update[first:last]
        add_and_norm(stream, update, update_norm, norm, eps, memory.normed[first:last])
        first = claim(own) * size


@inner
def _rows_of_a_part(num_rows: int, num_threads: int) -> int:
    return max(1, num_rows // (_PARTS_OF_ROWS * num_threads))
