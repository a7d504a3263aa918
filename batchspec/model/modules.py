"""transformers' modules as a network over packed rows."""

from functools import cached_property
from typing import Any

import torch

from batchspec.model.attention import attention_step
from batchspec.model.cache import KVCache
from batchspec.model.linear import RowCounts, module_row_counts
from batchspec.model.paging import Rows

__all__ = ["ModuleNetwork"]


class ModuleNetwork:
    """A causal language model of transformers.

    Mixtures of experts are outside of what ``row_counts`` says: how many rows an expert gets depends on the neighbours.

    Args:
        module: already switched to our attention.
    """

    implementation = "transformers"
    screened = None

    def __init__(self, module: Any):
        self.module = module

    @cached_property
    def row_counts(self) -> RowCounts:
        """Numbers of rows at which a row's bits do not depend on its neighbours."""
        *inside, (_, hidden) = self.linear_shapes()
        return module_row_counts([hidden, *(width for shape in inside for width in shape)])

    @property
    def num_parameters(self) -> int:
        """Numbers in the weights."""
        return sum(parameter.numel() for parameter in self.module.parameters())

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights, those that layers share counted once."""
        return sum(parameter.numel() * parameter.element_size() for parameter in self.module.parameters())

    @property
    def windows(self) -> tuple[int, ...]:
        """Positions that each layer sees by the configuration, 0 for all."""
        config = self.module.config.get_text_config()
        window = getattr(config, "sliding_window", None) or 0
        kinds = getattr(config, "layer_types", None)
        if kinds is None:
            return (window,) * int(config.num_hidden_layers)
        return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)

    def linear_shapes(self) -> list[tuple[int, int]]:
        """Return (out features, in features) of every matrix product with weights, the language head's last."""
        layers = [part for part in self.module.modules() if isinstance(part, torch.nn.Linear)]
        head = self.module.get_output_embeddings()
        layers.sort(key=lambda part: part is head)
        return [(part.out_features, part.in_features) for part in layers]

    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        *,
        rows: Rows,
        cache: KVCache,
        wanted: torch.Tensor,
    ) -> torch.Tensor:
        """Return logits (wanted rows, vocabulary); arguments as in ``Network.forward``."""
        with attention_step(rows, cache):
            output = self.module(
                input_ids=token_ids[None], position_ids=positions[None], use_cache=False, logits_to_keep=wanted
            )
        logits: torch.Tensor = output.logits[0]
        return logits
