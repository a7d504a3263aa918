"""What runs a model's layers, whoever wrote them."""

from dataclasses import dataclass
from typing import Any, Protocol

import torch

from batchspec.model.cache import KVCache
from batchspec.model.linear import RowCounts
from batchspec.model.paging import Rows
from batchspec.sampling.screened import Screened
from batchspec.sampling.simple import SimpleRows

__all__ = ["Network", "Parts", "ScreenedPass"]


class ScreenedPass(Protocol):
    """A forward pass that computes all logits only where they are needed."""

    def __call__(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        *,
        rows: Rows,
        cache: KVCache,
        wanted: torch.Tensor,
        simple: SimpleRows,
    ) -> torch.Tensor | Screened:
        """Return logits in full, which the next pass may overwrite, or screened.

        Args:
            token_ids: and the next three as in ``Network.forward``.
            positions: see there.
            rows: see there.
            cache: see there.
            wanted: see there.
            simple: which of the wanted rows are, and how their tokens are chosen.
        """


class Network(Protocol):
    """A model over packed rows, keys and values in pages.

    Attributes:
        row_counts: numbers of rows at which a row's bits do not depend on its neighbours.
        num_parameters: numbers in its weights.
        implementation: whose layers they are, ``batchspec`` or ``transformers``.
        weight_bytes: what the weights take in memory.
        windows: positions that each layer sees, 0 for all.
    """

    @property
    def row_counts(self) -> RowCounts: ...  # noqa: D102

    @property
    def num_parameters(self) -> int: ...  # noqa: D102

    @property
    def implementation(self) -> str: ...  # noqa: D102

    @property
    def weight_bytes(self) -> int: ...  # noqa: D102

    @property
    def windows(self) -> tuple[int, ...]: ...  # noqa: D102

    @property
    def screened(self) -> ScreenedPass | None:
        """Return the pass that may screen rows; None where that is not exact or saves nothing."""

    def linear_shapes(self) -> list[tuple[int, int]]:
        """Return (out features, in features) of every matrix product with weights, the language head's last."""

    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        *,
        rows: Rows,
        cache: KVCache,
        wanted: torch.Tensor,
    ) -> torch.Tensor:
        """Return logits (wanted rows, vocabulary), which the next pass may overwrite.

        Args:
            token_ids: int64 (rows,).
            positions: int64 (rows,).
            rows: where the rows belong.
            cache: pages of keys and values.
            wanted: int64, numbers of the rows whose logits are needed.
        """


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What loading a model gives.

    Attributes:
        network: runs it.
        tokenizer: a transformers tokenizer.
        vocab_size: token ids that the model can read.
        context_length: the longest sequence.
        eos_ids: what generation_config.json, config.json and the tokenizer say, in this order; None where they do not.
        kv_dtype: of keys and values.
        bytes_per_token: of keys and values over all layers.
        commit: of a model from the hub.
    """

    network: Network
    tokenizer: Any
    vocab_size: int
    context_length: int
    eos_ids: tuple[int | list[int] | None, ...]
    kv_dtype: torch.dtype
    bytes_per_token: int
    commit: str | None = None
