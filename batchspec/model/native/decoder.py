"""The forward pass of a dense decoder over packed rows."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.cache import KVCache, KVLayout
from batchspec.model.linear import row_counts
from batchspec.model.native.kernels import add_and_norm, cap, rotate
from batchspec.model.native.layers import StripLayers, can_run
from batchspec.model.native.shape import DecoderShape
from batchspec.model.native.turning import Turn, Turns
from batchspec.model.native.weights import DecoderWeights, LayerWeights
from batchspec.model.network import ScreenedPass
from batchspec.model.paging import NO_SINKS, Floats, PackedRows, Pages, Rows, attend_on_cpu, pages_on_cpu, store_on_cpu
from batchspec.model.room import Room
from batchspec.model.screening.screen import Screen
from batchspec.sampling.screened import Screened
from batchspec.sampling.simple import SimpleRows
from batchspec.threads import over_rows

__all__ = ["Decoder"]

_NONE = np.empty(0, dtype=np.float32)
_WORTH_THREADS = 400_000  # numbers, a tenth of a millisecond or two


class Decoder:
    """A dense decoder on the CPU: float32 throughout, but for weights and the factors of matrix products.

    Args:
        shape: what it computes.
        weights: with what.
        packing: how the weights are packed, see ``model.linear``.
        screen: finds the largest logit without computing all; None for all of them.

    Attributes:
        together: runs the layers in one go, to the same bits; None where their weights do not allow it.
    """

    implementation = "batchspec"

    def __init__(self, shape: DecoderShape, weights: DecoderWeights, *, packing: str, screen: Screen | None = None):
        self.shape = shape
        self.weights = weights
        self.screen = screen
        self.row_counts = row_counts(packing)
        self._layout = KVLayout(num_kv_heads=shape.num_kv_heads, key_dim=shape.head_dim, value_dim=shape.head_dim)
        self._logits, self._between = Room(), Room()
        can_stay = all(map(can_run, weights.layers))
        self.together = StripLayers(shape, weights.layers, layout=self._layout) if can_stay else None
        self._turns = {rotary: Turns(rotary, head_dim=shape.head_dim) for rotary in set(shape.rotary)}

    @property
    def num_parameters(self) -> int:
        """Numbers in the weights."""
        products = self.linear_shapes()
        if self.shape.is_tied:
            products.pop()
        return self.weights.embedding.numel() + sum(out * width for out, width in products)

    @property
    def weight_bytes(self) -> int:
        """Bytes of the packed weights; the embedding stays on disk, where it is read row by row."""
        of_screen = 0 if self.screen is None else self.screen.num_bytes
        return sum(layer.num_bytes for layer in self.weights.layers) + self.weights.head.num_bytes + of_screen

    @property
    def windows(self) -> tuple[int, ...]:
        """Positions that each layer sees, 0 for all."""
        return self.shape.windows

    @property
    def screened(self) -> ScreenedPass | None:
        """The pass that may screen rows, see ``Network``."""
        return None if self.screen is None else self._screened

    def linear_shapes(self) -> list[tuple[int, int]]:
        """Return (out features, in features) of every matrix product with weights, the language head's last."""
        head = self.weights.head.out_features, self.weights.head.in_features
        return [shape for layer in self.weights.layers for shape in layer.shapes] + [head]

    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        *,
        rows: Rows,
        cache: KVCache,
        wanted: torch.Tensor,
    ) -> torch.Tensor:
        """Return float32 logits (wanted rows, vocabulary); arguments as in ``Network.forward``."""
        return self._logits_of(self.states(token_ids, positions, rows=rows, cache=cache, wanted=wanted))

    def _screened(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        *,
        rows: Rows,
        cache: KVCache,
        wanted: torch.Tensor,
        simple: SimpleRows,
    ) -> torch.Tensor | Screened:
        states, screen = self.states(token_ids, positions, rows=rows, cache=cache, wanted=wanted), self.screen
        if screen is None or not screen.is_worth_it():
            return self._logits_of(states)
        alone = simple.is_simple & screen.is_calm(states)
        target_ids, places = np.zeros(len(states), dtype=np.int64), np.full(len(states), -1, dtype=np.int64)
        target_ids[alone] = screen(states[alone], temperature=simple.temperature[alone], keys=simple.keys[alone])
        others = states[~alone]
        places[~alone] = np.arange(len(others))
        full = self._logits_of(others) if len(others) else torch.empty(0, self.weights.head.out_features)
        return Screened(target_ids=torch.from_numpy(target_ids), full=full, places=places)

    def states(
        self, token_ids: torch.Tensor, positions: torch.Tensor, *, rows: Rows, cache: KVCache, wanted: torch.Tensor
    ) -> Floats:
        """Return float32 (wanted rows, hidden), what the head multiplies."""
        shape, weights, rows = self.shape, self.weights, cast(PackedRows, rows)
        known = {rotary: turn(positions) for rotary, turn in self._turns.items()}
        turns = [known[rotary] for rotary in shape.rotary]
        embedded = torch.nn.functional.embedding(token_ids, weights.embedding).float()
        stream: Floats = embedded.mul_(shape.embedding_scale).numpy()
        if self.together is not None:
            stream, update = self.together(stream, turns, rows=rows, cache=cache, wanted=wanted.numpy())
            return self._last_norm(stream, update)
        update, update_norm = stream[:0], _NONE
        for number, layer in enumerate(weights.layers):
            normed = layer.attention.place(len(stream))
            self._add(stream, update, update_norm, layer.norm, out=normed)
            heads = self._project(number, layer, normed, turn=turns[number], rows=rows, cache=cache)
            seeing = rows
            if number == len(weights.layers) - 1:  # of which nothing is needed but the wanted rows
                chosen = wanted.numpy()
                stream, heads, seeing = stream[chosen], heads[chosen], rows.only(chosen)
            update = self._attend(number, layer, heads, rows=seeing, cache=cache)
            normed = layer.feed.place(len(stream))
            self._add(stream, update, layer.attention_out_norm, layer.feed_norm, out=normed)
            update, update_norm = layer.feed(normed, room=self._between), layer.feed_out_norm
        return self._last_norm(stream, update)

    def _last_norm(self, stream: Floats, update: Floats) -> Floats:
        states = np.empty_like(stream)
        self._add(stream, update, self.weights.layers[-1].feed_out_norm, self.weights.norm, out=states)
        return states

    def _logits_of(self, states: Floats) -> torch.Tensor:
        logits = self.weights.head(torch.from_numpy(states), room=self._logits)
        if self.shape.final_softcap:
            cap(logits.view(-1).numpy(), self.shape.final_softcap)
        return logits

    def _add(self, stream: Floats, update: Floats, update_norm: Floats, norm: Floats, *, out: NDArray[Any]) -> None:
        """Add to the residual stream in place and write its norm."""
        eps = self.shape.eps
        _over_rows(stream, lambda part: add_and_norm(stream[part], update[part], update_norm, norm, eps, out[part]))

    def _project(
        self,
        number: int,
        layer: LayerWeights,
        normed: NDArray[Any],
        *,
        turn: Turn,
        rows: PackedRows,
        cache: KVCache,
    ) -> Floats:
        """Return queries, keys and values (rows, all heads, D); keys and values are in their pages then, too."""
        shape = self.shape
        num_turned = shape.num_heads + shape.num_kv_heads
        projected = layer.attention.multiply(normed).numpy()
        heads: Floats = projected.reshape(len(normed), num_turned + shape.num_kv_heads, shape.head_dim)
        cosine, sine = turn
        is_of = shape.num_heads, num_turned, layer.head_norms, shape.eps
        _over_rows(heads, lambda part: rotate(heads[part], cosine[part], sine[part], *is_of))
        pages = self._pages(cache, number)
        store_on_cpu(heads, heads, pages=pages, rows=rows, first_key=shape.num_heads, first_value=num_turned)
        return heads

    def _attend(self, number: int, layer: LayerWeights, heads: Floats, *, rows: PackedRows, cache: KVCache) -> Floats:
        """Return what attention adds to the stream (rows, hidden)."""
        shape = self.shape
        placed, width = layer.attention_out.place(len(heads)), shape.num_heads * shape.head_dim
        attend_on_cpu(
            heads,
            pages=self._pages(cache, number),
            rows=rows,
            window=shape.windows[number],
            scale=shape.scale,
            softcap=shape.attention_softcap,
            sinks=NO_SINKS,
            out=placed[:, :width].reshape(len(heads), shape.num_heads, shape.head_dim, copy=False),
        )
        update: Floats = layer.attention_out.multiply(placed).numpy()
        return update

    def _pages(self, cache: KVCache, number: int) -> Pages:
        return pages_on_cpu(*cache.layer(number, self._layout))


def _over_rows(array: Floats, work: Callable[[slice], None]) -> None:
    """Call ``work`` with slices that together are all rows of an array, in several threads if it is large."""
    over_rows(torch.get_num_threads() if array.size >= _WORTH_THREADS else 1, len(array), work)
