"""Steps of an engine on a device: laid out on the host, moved in one copy, computed or done again from a recording."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from batchspec.model.cache import KVCache
from batchspec.model.device.buckets import Buckets
from batchspec.model.device.capture import Capture
from batchspec.model.device.freight import Arrays, join, split
from batchspec.model.device.graphs import GraphedSteps
from batchspec.model.device.layout import lay_out
from batchspec.model.device.probe import form_for
from batchspec.model.device.rows import DeviceRows
from batchspec.model.device.shape import StepShape, exact_shape
from batchspec.model.device.span import Span, spans_of
from batchspec.model.network import Network
from batchspec.model.wanted import wanted_rows
from batchspec.step import StepPlan

__all__ = ["DeviceSteps"]


class DeviceSteps:
    """Computes the logits of plans; the host does not wait for the device anywhere here.

    Attributes:
        form: how torch's kernel reads the pages; None where it cannot.
        graphs: what is recorded; None before ``record``.

    Args:
        network: the model's layers, on the device.
        cache: the pages, not in strips.
    """

    def __init__(self, *, network: Network, cache: KVCache):
        form = form_for(cache.device, cache.dtype)
        self.network = network
        self.cache = cache
        self.form = form if form is not None and cache.block_size % form.page_size == 0 else None
        self.graphs: GraphedSteps | None = None

    @torch.inference_mode()
    def gathers(self) -> bool:
        """Compute a step of nothing but padding; return whether a layer of the model gathers keys before it attends."""
        shape = StepShape(num_sequences=1, num_rows=1, most_rows=1, width=1)
        arrays = self._arrays([], shape, wanted=np.arange(1))
        tensors = self._moved(arrays)
        rows = self._rows(tensors, shape)
        self._compute(tensors, rows)
        return rows.is_gathered

    @torch.inference_mode()
    def record(self, buckets: Buckets, *, capture: Capture, note: Callable[[str], None]) -> None:
        """Do steps without prefill from recordings from now on; the largest is recorded now.

        Args:
            buckets: what steps are rounded up to.
            capture: how to record.
            note: told, in a sentence, if it cannot be done.
        """
        self.graphs = GraphedSteps(
            lambda tensors, shape: self._compute(tensors, self._rows(tensors, shape)),
            buckets=buckets,
            capture=capture,
            device=self.cache.device,
            note=note,
        )
        shape = buckets.largest
        self.graphs.record(shape, self._arrays([], shape, wanted=np.arange(shape.num_rows)))

    def forward(self, plan: StepPlan) -> torch.Tensor:
        """Return the logits (rows, vocabulary) in the order of ``wanted_rows``; the next step may overwrite them."""
        spans = spans_of(plan)
        shape = None if self.graphs is None else self.graphs.shape_of(plan)
        if self.graphs is not None and shape is not None:
            logits = self.graphs.run(shape, self._arrays(spans, shape, wanted=np.arange(shape.num_rows)))
            if logits is not None:
                return logits[: plan.num_tokens]
        return self._forward_at_once(plan, spans)

    def _forward_at_once(self, plan: StepPlan, spans: list[Span]) -> torch.Tensor:
        row_counts = self.network.row_counts
        shape = exact_shape(spans, row_counts=row_counts)
        rows = wanted_rows(plan)
        wanted = np.zeros(row_counts(max(1, len(rows))), dtype=np.int64)
        wanted[: len(rows)] = rows
        tensors = self._moved(self._arrays(spans, shape, wanted=wanted))
        return self._compute(tensors, self._rows(tensors, shape))[: len(rows)]

    def _arrays(self, spans: list[Span], shape: StepShape, *, wanted: NDArray[np.int64]) -> Arrays:
        return lay_out(spans, shape, wanted=wanted, block_size=self.cache.block_size, trash_slot=self.cache.trash_slot)

    def _moved(self, arrays: Arrays) -> dict[str, torch.Tensor]:
        device = self.cache.device
        return split(join(arrays, device=device).to(device, non_blocking=True), like=arrays)

    def _rows(self, tensors: Mapping[str, torch.Tensor], shape: StepShape) -> DeviceRows:
        return DeviceRows.of(tensors, shape=shape, cache=self.cache, varlen=self.form)

    def _compute(self, tensors: Mapping[str, torch.Tensor], rows: DeviceRows) -> torch.Tensor:
        """Return the logits (wanted rows, vocabulary) of a step's tensors on the device."""
        return self.network.forward(
            tensors["token_ids"], tensors["positions"], rows=rows, cache=self.cache, wanted=tensors["wanted"]
        )
