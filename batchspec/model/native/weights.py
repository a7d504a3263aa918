"""A decoder's weights, fused and packed: queries with keys and values, gates with the values they gate."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.linear import PackedLinear, pack_linear
from batchspec.model.native.checkpoint import Checkpoint
from batchspec.model.native.families import Unknown
from batchspec.model.native.feeding import FeedForward, pack_feed
from batchspec.model.native.shape import DecoderShape

__all__ = ["DecoderWeights", "LayerWeights", "head_name", "read_weights"]


_EMBEDDING = "model.embed_tokens.weight"
_NO_NORM = np.empty(0, dtype=np.float32)


@dataclass(frozen=True, kw_only=True)
class LayerWeights:
    """One layer; norms are float32 (width,), with the family's offset added, and of length 0 where there is none.

    Attributes:
        norm: before attention.
        attention: queries, keys and values (all heads * D, hidden).
        head_norms: float32 (2, D) of queries and keys, or (0, D).
        attention_out: (hidden, query heads * D).
        attention_out_norm: of what attention adds.
        feed_norm: before the feed-forward part.
        feed: the feed-forward part.
        feed_out_norm: of what the feed-forward part adds.
    """

    norm: NDArray[np.float32]
    attention: PackedLinear
    head_norms: NDArray[np.float32]
    attention_out: PackedLinear
    attention_out_norm: NDArray[np.float32]
    feed_norm: NDArray[np.float32]
    feed: FeedForward
    feed_out_norm: NDArray[np.float32]

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(out features, in features) of all matrix products."""
        products = [(product.out_features, product.in_features) for product in (self.attention, self.attention_out)]
        return products + self.feed.shapes

    @property
    def num_bytes(self) -> int:
        """Bytes of all packed weights."""
        return sum(part.num_bytes for part in (self.attention, self.attention_out, self.feed))


@dataclass(frozen=True, kw_only=True)
class DecoderWeights:
    """All weights.

    Attributes:
        embedding: (vocabulary, hidden), as stored.
        layers: one after another.
        norm: float32 (hidden,), before the head.
        head: (vocabulary, hidden).
    """

    embedding: torch.Tensor
    layers: tuple[LayerWeights, ...]
    norm: NDArray[np.float32]
    head: PackedLinear


def head_name(shape: DecoderShape) -> str:
    """Return the tensor that is the language head."""
    return _EMBEDDING if shape.is_tied else "lm_head.weight"


def read_weights(checkpoint: Checkpoint, shape: DecoderShape, *, packing: str) -> DecoderWeights:
    """Return the weights of a checkpoint, all of which must be used.

    Args:
        checkpoint: where they are.
        shape: of the decoder.
        packing: as in ``model.linear``.

    Raises:
        Unknown: a tensor is missing or left over, or has another shape.
    """
    reader = _Reader(checkpoint, shape, packing=packing)
    embedding, head = _EMBEDDING, head_name(shape)
    with ThreadPoolExecutor(2) as pool:  # packing is done by one thread, and the head takes about as long as the rest
        packed_head = pool.submit(reader.linear, [head.removesuffix(".weight")], shape.vocab_size, shape.hidden_size)
        layers = tuple(pool.map(reader.layer, range(shape.num_layers)))
        norm = reader.norm("model.norm", shape.hidden_size)
        weights = DecoderWeights(
            embedding=checkpoint.mapped(embedding), layers=layers, norm=norm, head=packed_head.result()
        )
    left_over = sorted(checkpoint.names() - reader.used - {embedding, "lm_head.weight" if shape.is_tied else embedding})
    if left_over:
        raise Unknown(f"the tensor {left_over[0]}")
    return weights


class _Reader:
    """Reads parts of a checkpoint and remembers which tensors it used."""

    def __init__(self, checkpoint: Checkpoint, shape: DecoderShape, *, packing: str):
        self.used: set[str] = set()
        self._checkpoint = checkpoint
        self._names = checkpoint.names()
        self._shape = shape
        self._packing = packing

    def layer(self, number: int) -> LayerWeights:
        """Return one layer."""
        shape, name = self._shape, f"model.layers.{number}"
        hidden, inner, heads = shape.hidden_size, shape.intermediate_size, shape.num_heads * shape.head_dim
        has_more = shape.has_output_norms
        second = f"{name}.post_attention_layernorm"
        return LayerWeights(
            norm=self.norm(f"{name}.input_layernorm", hidden),
            attention=self.linear(
                [f"{name}.self_attn.{part}_proj" for part in "qkv"],
                heads + 2 * shape.num_kv_heads * shape.head_dim,
                hidden,
            ),
            head_norms=self._head_norms(f"{name}.self_attn"),
            attention_out=self.linear([f"{name}.self_attn.o_proj"], hidden, heads),
            attention_out_norm=self.norm(second, hidden) if has_more else _NO_NORM,
            feed_norm=self.norm(f"{name}.pre_feedforward_layernorm" if has_more else second, hidden),
            feed=pack_feed(
                self._weight([f"{name}.mlp.{part}_proj" for part in ("gate", "up")], 2 * inner, hidden),
                self._weight([f"{name}.mlp.down_proj"], hidden, inner),
                is_silu=shape.activation == "silu",
                packing=self._packing,
            ),
            feed_out_norm=self.norm(f"{name}.post_feedforward_layernorm", hidden) if has_more else _NO_NORM,
        )

    def norm(self, name: str, width: int) -> NDArray[np.float32]:
        """Return a norm's weights, offset included."""
        weight: NDArray[np.float32] = (
            self._read([f"{name}.weight"], (width,)).float() + self._shape.norm_offset
        ).numpy()
        return weight

    def linear(self, names: list[str], out_features: int, in_features: int) -> PackedLinear:
        """Return linear layers that read the same rows as one."""
        return pack_linear(*self._weight(names, out_features, in_features), packing=self._packing)

    def _weight(
        self, names: list[str], out_features: int, in_features: int
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return weight and bias of such layers; None where they have no bias."""
        weight = self._read([f"{name}.weight" for name in names], (out_features, in_features))
        biases = [f"{name}.bias" for name in names]
        return weight, self._read(biases, (out_features,)) if self._names & set(biases) else None

    def _head_norms(self, name: str) -> NDArray[np.float32]:
        width = self._shape.head_dim
        if not self._shape.has_head_norms:
            return np.empty((0, width), dtype=np.float32)
        return np.stack([self.norm(f"{name}.{part}_norm", width) for part in "qk"])

    def _read(self, names: list[str], shape: tuple[int, ...]) -> torch.Tensor:
        missing = [name for name in names if name not in self._names]
        if missing:
            raise Unknown(f"the tensor {missing[0]} being absent")
        parts = [self._checkpoint.mapped(name) for name in names]
        tensor = parts[0] if len(parts) == 1 else torch.cat(parts)
        if tensor.shape != shape:
            raise Unknown(f"the tensor {names[0]} of shape {list(tensor.shape)}")
        self.used.update(names)
        return tensor
