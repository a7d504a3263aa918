"""A decoder's layers run in one go where all weights are in strips: see ``layers_kernel``."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.cache import KVCache, KVLayout
from batchspec.model.native.feeding import StripFeed
from batchspec.model.native.layers_kernel import NUM_PARTS, Front, Memory, Plan, Rear, run_layers
from batchspec.model.native.meeting import give_up, words_for
from batchspec.model.native.shape import DecoderShape
from batchspec.model.native.turning import Turn
from batchspec.model.native.weights import LayerWeights
from batchspec.model.paging import NO_SINKS, Floats, PackedRows, Pages, pages_on_cpu
from batchspec.model.strips import StripLinear
from batchspec.threads import together

__all__ = ["StripLayers", "can_run"]

_WORTH_THREADS = 4_000_000  # products of a layer, a twentieth of a millisecond; below it a second thread comes too late
_FEW = 4  # rows up to which the weights' way from memory takes the time, not the products
_NONE = np.empty(0, dtype=np.float32)


def can_run(layer: LayerWeights) -> bool:
    """Return whether a layer's products are all in strips, which they fill, and without bias."""
    products = (layer.attention, layer.attention_out)
    return isinstance(layer.feed, StripFeed) and all(_is_plain(product) for product in (*products, layer.feed.down))


def _is_plain(product: Any) -> bool:
    return isinstance(product, StripLinear) and product.bias is None and product.fills_strips


class StripLayers:
    """Runs layers, each of which ``can_run``.

    Args:
        shape: what they compute.
        layers: with what.
        layout: of what a layer stores.
    """

    def __init__(self, shape: DecoderShape, layers: tuple[LayerWeights, ...], *, layout: KVLayout):
        self._shape, self._layers, self._layout = shape, layers, layout
        first = layers[0]
        self._num_products = sum(width * height for width, height in first.shapes)

    def __call__(
        self, stream: Floats, turns: list[Turn], *, rows: PackedRows, cache: KVCache, wanted: NDArray[np.int64]
    ) -> tuple[Floats, Floats]:
        """Return stream and update, float32 (wanted rows, hidden) both, behind the last layer; they are not yet added.

        Args:
            stream: float32 (rows, hidden), the embedding; it is overwritten.
            turns: of each layer.
            rows: where they belong.
            cache: pages of keys and values.
            wanted: numbers of the rows that are needed behind the last layer.
        """
        last = len(self._layers) - 1
        memory, plan = self._memory(stream), self._plan(rows)
        pages = [pages_on_cpu(*cache.layer(number, self._layout)) for number in range(last + 1)]
        fronts = [self._front(number, turn, pages[number]) for number, turn in enumerate(turns)]
        rears = [self._rear(number, pages[number]) for number in range(last + 1)]
        self._run(memory._replace(update=memory.update[:0]), plan, rears[0], fronts[0], has_rear=False)
        for number in range(last):
            self._run(memory, plan, rears[number], fronts[number + 1])
        few = self._memory(memory.stream[wanted], heads=memory.heads[wanted])
        self._run(few, self._plan(rows.only(wanted)), rears[last], fronts[last], has_front=False)
        return few.stream, few.update

    def _run(
        self, memory: Memory, plan: Plan, rear: Rear, front: Front, *, has_rear: bool = True, has_front: bool = True
    ) -> None:
        words = words_for(NUM_PARTS)
        is_large = self._num_products * max(_FEW, len(memory.stream)) >= _WORTH_THREADS
        num_threads = torch.get_num_threads() if is_large else 1
        together(
            num_threads,
            lambda: run_layers(words, num_threads, plan, memory, rear, has_rear, front, has_front),
            on_error=lambda: give_up(words),
        )

    def _memory(self, stream: Floats, *, heads: Floats | None = None) -> Memory:
        """Return memory for as many rows as the stream has; queries, keys and values may be there already."""
        shape, layer, num_rows = self._shape, self._layers[0], len(stream)
        given = (num_rows, shape.num_heads + 2 * shape.num_kv_heads, shape.head_dim)
        heads = np.empty(given, dtype=np.float32) if heads is None else heads
        attended, width = layer.attention_out.place(num_rows), shape.num_heads * shape.head_dim
        return Memory(
            stream=stream,
            update=np.empty_like(stream),
            normed=layer.attention.place(num_rows),
            projected=heads.reshape(num_rows, -1),
            heads=heads,
            attended=attended,
            seen=attended[:, :width].reshape(num_rows, shape.num_heads, shape.head_dim, copy=False),
            gated=_strip_feed(layer).down.place(num_rows),
        )

    def _plan(self, rows: PackedRows) -> Plan:
        shape = self._shape
        return Plan(
            slots=rows.slots.numpy(),
            tables=rows.tables,
            row_chunk=rows.row_chunk,
            row_position=rows.row_position,
            num_heads=shape.num_heads,
            num_kv_heads=shape.num_kv_heads,
            intermediate_size=shape.intermediate_size,
            eps=shape.eps,
            scale=shape.scale,
            softcap=shape.attention_softcap,
            sinks=NO_SINKS,
            is_silu=shape.activation == "silu",
        )

    def _front(self, number: int, turn: Turn, pages: Pages) -> Front:
        layer = self._layers[number]
        return Front(
            norm=layer.norm,
            former_norm=self._layers[number - 1].feed_out_norm if number else _NONE,
            attention=_strips(layer.attention),
            head_norms=layer.head_norms,
            cosine=turn[0],
            sine=turn[1],
            keys=pages[0],
            values=pages[1],
        )

    def _rear(self, number: int, pages: Pages) -> Rear:
        layer = self._layers[number]
        feed = _strip_feed(layer)
        return Rear(
            keys=pages[0],
            values=pages[1],
            window=self._shape.windows[number],
            out=_strips(layer.attention_out),
            out_norm=layer.attention_out_norm,
            norm=layer.feed_norm,
            gates=feed.gates.strips,
            down=feed.down.strips,
        )


def _strips(product: Any) -> NDArray[Any]:
    strips: NDArray[Any] = product.strips
    return strips


def _strip_feed(layer: LayerWeights) -> StripFeed:
    assert isinstance(layer.feed, StripFeed)
    return layer.feed
