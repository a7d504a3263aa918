"""The forward pass of a dense decoder over packed rows."""

from collections.abc import Callable

import torch

from batchspec.model.cache import KVCache, KVLayout
from batchspec.model.linear import PackedLinear, Room, row_counts
from batchspec.model.native.kernels import add_and_norm, cap, gate, rotate
from batchspec.model.native.shape import DecoderShape
from batchspec.model.native.turning import Turns
from batchspec.model.native.weights import DecoderWeights, LayerWeights
from batchspec.model.paging import Rows, attend_paged
from batchspec.model.threads import over_rows

__all__ = ["Decoder"]

_NONE = torch.empty(0)
_WORTH_THREADS = 400_000  # numbers, a tenth of a millisecond or two


class Decoder:
    """A dense decoder on the CPU: float32 throughout, but for weights and the factors of matrix products.

    Args:
        shape: what it computes.
        weights: with what.
        packing: how the weights are packed, see ``model.linear``.
    """

    implementation = "batchspec"

    def __init__(self, shape: DecoderShape, weights: DecoderWeights, *, packing: str):
        self.shape = shape
        self.weights = weights
        self.row_counts = row_counts(packing)
        self._layout = KVLayout(num_kv_heads=shape.num_kv_heads, key_dim=shape.head_dim, value_dim=shape.head_dim)
        self._logits, self._gates = Room(), Room()
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
        return sum(linear.num_bytes for linear in self._linears())

    @property
    def windows(self) -> tuple[int, ...]:
        """Positions that each layer sees, 0 for all."""
        return self.shape.windows

    def linear_shapes(self) -> list[tuple[int, int]]:
        """Return (out features, in features) of every matrix product with weights, the language head's last."""
        return [(linear.out_features, linear.in_features) for linear in self._linears()]

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
        shape, weights = self.shape, self.weights
        turns = {rotary: turn(positions) for rotary, turn in self._turns.items()}
        stream = torch.nn.functional.embedding(token_ids, weights.embedding).float()
        stream.mul_(shape.embedding_scale)
        update, update_norm = stream[:0], _NONE
        for number, layer in enumerate(weights.layers):
            normed = self._add(stream, update, update_norm, layer.norm)
            update = self._attend(number, layer, normed, turn=turns[shape.rotary[number]], rows=rows, cache=cache)
            normed = self._add(stream, update, layer.attention_out_norm, layer.feed_norm)
            update, update_norm = self._feed(layer, normed), layer.feed_out_norm
        normed = self._add(stream[wanted], update[wanted], update_norm, weights.norm)
        logits = weights.head(normed, room=self._logits)
        if shape.final_softcap:
            cap(logits.view(-1).numpy(), shape.final_softcap)
        return logits

    def _linears(self) -> list[PackedLinear]:
        layers = [(layer.attention, layer.attention_out, layer.gate_up, layer.down) for layer in self.weights.layers]
        return [linear for layer in layers for linear in layer] + [self.weights.head]

    def _add(
        self, stream: torch.Tensor, update: torch.Tensor, update_norm: torch.Tensor, norm: torch.Tensor
    ) -> torch.Tensor:
        """Add to the residual stream in place and return its norm."""
        out = torch.empty_like(stream)
        lines, changes, results = stream.numpy(), update.numpy(), out.numpy()
        weights = update_norm.numpy(), norm.numpy()
        _over_rows(
            stream, lambda part: add_and_norm(lines[part], changes[part], *weights, self.shape.eps, results[part])
        )
        return out

    def _attend(
        self,
        number: int,
        layer: LayerWeights,
        normed: torch.Tensor,
        *,
        turn: tuple[torch.Tensor, torch.Tensor],
        rows: Rows,
        cache: KVCache,
    ) -> torch.Tensor:
        """Return what attention adds to the stream (rows, hidden)."""
        shape = self.shape
        num_turned = shape.num_heads + shape.num_kv_heads
        heads = layer.attention(normed).view(len(normed), num_turned + shape.num_kv_heads, shape.head_dim)
        turned, cosine, sine = heads[:, :num_turned].numpy(), turn[0].numpy(), turn[1].numpy()
        norms = layer.head_norms.numpy()
        _over_rows(
            heads, lambda part: rotate(turned[part], cosine[part], sine[part], shape.num_heads, norms, shape.eps)
        )
        attended = attend_paged(
            heads[:, : shape.num_heads],
            heads[:, shape.num_heads : num_turned],
            heads[:, num_turned:],
            layer=cache.layer(number, self._layout),
            rows=rows,
            window=shape.windows[number],
            scale=shape.scale,
            softcap=shape.attention_softcap,
            sinks=None,
        )
        return layer.attention_out(attended.flatten(1))

    def _feed(self, layer: LayerWeights, normed: torch.Tensor) -> torch.Tensor:
        """Return what the feed-forward part adds to the stream (rows, hidden)."""
        gated = torch.empty(len(normed), self.shape.intermediate_size)
        given, results, is_silu = (
            layer.gate_up(normed, room=self._gates).numpy(),
            gated.numpy(),
            self.shape.activation == "silu",
        )
        _over_rows(gated, lambda part: gate(given[part], is_silu, results[part]))
        return layer.down(gated)


def _over_rows(tensor: torch.Tensor, work: Callable[[slice], None]) -> None:
    """Call ``work`` with slices that together are all rows of a tensor, in several threads if it is large."""
    over_rows(torch.get_num_threads() if tensor.numel() >= _WORTH_THREADS else 1, len(tensor), work)
