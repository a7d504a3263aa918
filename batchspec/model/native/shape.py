"""What a dense decoder computes, in numbers: the differences between the families."""

from dataclasses import dataclass

__all__ = ["DecoderShape", "Rotary"]


@dataclass(frozen=True, kw_only=True)
class Rotary:
    """Rotary position embedding of a layer.

    Attributes:
        theta: base of the frequencies.
        factor: what the frequencies are divided by.
        llama3: (low frequency factor, high frequency factor, original context) where only low frequencies are divided,
            as in Llama 3.1; None for all alike.
    """

    theta: float
    factor: float = 1.0
    llama3: tuple[float, float, int] | None = None


@dataclass(frozen=True, kw_only=True)
class DecoderShape:
    """Sizes and switches of a decoder of attention and gated feed-forward layers with root mean square norms.

    Attributes:
        vocab_size: rows of the embedding.
        hidden_size: width of the residual stream.
        intermediate_size: width inside the feed-forward layers.
        num_heads: query heads.
        num_kv_heads: key and value heads.
        head_dim: width of a head.
        context_length: most positions.
        eps: added to the mean square in norms.
        scale: factor on attention scores.
        activation: of the gate, ``silu`` or ``gelu_tanh``.
        rotary: of each layer.
        windows: positions that each layer sees, 0 for all.
        embedding_scale: factor on the embedding.
        norm_offset: added to the weights of norms.
        has_head_norms: whether queries and keys are normalised head by head.
        has_output_norms: whether the outputs of attention and feed-forward are normalised before they are added.
        attention_softcap: cap on attention scores, 0 for none.
        final_softcap: cap on logits, 0 for none.
        is_tied: whether the language head is the embedding.
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    context_length: int
    eps: float
    scale: float
    activation: str
    rotary: tuple[Rotary, ...]
    windows: tuple[int, ...]
    embedding_scale: float = 1.0
    norm_offset: float = 0.0
    has_head_norms: bool = False
    has_output_norms: bool = False
    attention_softcap: float = 0.0
    final_softcap: float = 0.0
    is_tied: bool = False

    @property
    def num_layers(self) -> int:
        """Decoder layers."""
        return len(self.windows)

    @property
    def kv_elements(self) -> int:
        """Numbers that one token stores over all layers."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim
