"""Random paged layouts for the kernels, and attention in its plainest form to compare them with."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from batchspec.model.cache import KVCache, KVLayout
from batchspec.model.kernel import store
from batchspec.model.paging import PackedRows, attend_paged, pages_on_cpu


@dataclass(kw_only=True)
class Layout:
    """Sequences scattered over pages: (tokens so far, of which new) for each, and how they attend."""

    lengths: list[tuple[int, int]]
    num_kv_heads: int = 2
    group: int = 2
    dim: int = 8
    value_dim: int = 8
    block_size: int = 4
    window: int = 0
    softcap: float = 0.0
    has_sinks: bool = False
    num_padding: int = 0
    seed: int = 0

    def tensors(self) -> dict[str, Any]:
        """Return query, sinks, rows, and keys and values by (block, offset); what is not written there is NaN."""
        random = np.random.default_rng(self.seed)
        counts = [-(-total // self.block_size) for total, _ in self.lengths]
        order = random.permutation(sum(counts)).astype(np.int32)
        tables = np.zeros((len(counts), max(counts)), dtype=np.int32)
        num_rows = sum(new for _, new in self.lengths)
        row_chunk = np.full(num_rows + self.num_padding, -1, dtype=np.int32)
        row_position = np.zeros(num_rows + self.num_padding, dtype=np.int32)
        keys = np.full((sum(counts), self.block_size, self.num_kv_heads, self.dim), np.nan, dtype=np.float32)
        values = np.full((*keys.shape[:3], self.value_dim), np.nan, dtype=np.float32)
        slots = np.empty(num_rows, dtype=np.int64)
        first, used = 0, 0
        for chunk, ((total, new), count) in enumerate(zip(self.lengths, counts, strict=True)):
            tables[chunk, :count] = order[used : used + count]
            where = tables[chunk, np.arange(total) // self.block_size], np.arange(total) % self.block_size
            keys[where] = random.standard_normal((total, *keys.shape[2:]), dtype=np.float32)
            values[where] = random.standard_normal((total, *values.shape[2:]), dtype=np.float32)
            slots[first : first + new] = (where[0] * np.int64(self.block_size) + where[1])[total - new :]
            row_chunk[first : first + new] = chunk
            row_position[first : first + new] = np.arange(total - new, total)
            first, used = first + new, used + count
        heads = self.num_kv_heads * self.group
        query = random.standard_normal((num_rows + self.num_padding, heads, self.dim), dtype=np.float32)
        rows = PackedRows(
            num_rows=num_rows,
            slots=torch.from_numpy(slots),
            tables=tables,
            row_chunk=row_chunk,
            row_position=row_position,
        )
        sinks = torch.from_numpy(random.standard_normal(heads, dtype=np.float32)) if self.has_sinks else None
        tensors = {"query": torch.from_numpy(query), "keys": torch.from_numpy(keys)}
        return tensors | {"values": torch.from_numpy(values), "rows": rows, "sinks": sinks}


LAYOUTS = st.builds(
    Layout,
    lengths=st.lists(
        st.integers(1, 40).flatmap(lambda total: st.tuples(st.just(total), st.integers(1, total))),
        min_size=1,
        max_size=4,
    ),
    num_kv_heads=st.integers(1, 3),
    group=st.integers(1, 4),
    dim=st.sampled_from([1, 2, 7, 8, 24, 33, 64]),
    value_dim=st.sampled_from([1, 5, 16, 64]),
    block_size=st.sampled_from([1, 3, 8, 16]),
    window=st.sampled_from([0, 1, 2, 7, 100]),
    softcap=st.sampled_from([0.0, 0.5, 30.0]),
    has_sinks=st.booleans(),
    num_padding=st.integers(0, 3),
    seed=st.integers(0, 1000),
)


def compute(layout: Layout, tensors: dict[str, Any], *, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return (rows, heads, Dv) from the compiled kernel over pages in a type."""
    key, value, keys, values = fresh(tensors)
    return attend_paged(
        tensors["query"],
        key,
        value,
        layer=kernel_pages(keys, values, dtype=dtype),
        rows=tensors["rows"],
        window=layout.window,
        scale=0.3,
        softcap=layout.softcap,
        sinks=tensors["sinks"],
    )


def fresh(tensors: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the rows' own keys and values, and pages without them, by (block, offset)."""
    keys, values, rows = tensors["keys"].clone(), tensors["values"].clone(), tensors["rows"]
    own = torch.zeros(len(tensors["query"]), dtype=torch.int64)
    own[: rows.num_rows] = rows.slots
    key, value = keys.flatten(0, 1)[own], values.flatten(0, 1)[own]
    for pages in (keys, values):
        pages.flatten(0, 1)[rows.slots] = torch.nan
    return key, value, keys, values


def kernel_pages(
    keys: torch.Tensor, values: torch.Tensor, *, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pages (blocks, block size, heads, dim) as the cache lays them out on the CPU, all written."""
    num_blocks, block_size, num_heads, dim = keys.shape
    cache = KVCache(num_blocks=num_blocks, block_size=block_size, dtype=dtype, device=torch.device("cpu"))
    pages = cache.layer(0, KVLayout(num_kv_heads=num_heads, key_dim=dim, value_dim=values.shape[3]))
    key, value = (side.flatten(0, 1).numpy() for side in (keys, values))
    store(key, value, 0, 0, np.arange(num_blocks * block_size), *pages_on_cpu(*pages))
    return pages


def alone(tensors: dict[str, Any], row: int) -> dict[str, Any]:
    """Return the tensors of one row computed by itself, what the others stored being in the pages already."""
    rows = tensors["rows"]
    chunk = int(rows.row_chunk[row])
    only = PackedRows(
        num_rows=1,
        slots=rows.slots[row : row + 1],
        tables=rows.tables[chunk : chunk + 1].copy(),
        row_chunk=rows.row_chunk[row : row + 1] * 0,
        row_position=rows.row_position[row : row + 1].copy(),
    )
    return tensors | {"query": tensors["query"][row : row + 1], "rows": only}


def plain(layout: Layout, tensors: dict[str, Any]) -> torch.Tensor:
    """Return the same in float64, position by position from the definition."""
    query, rows = tensors["query"].double(), tensors["rows"]
    out = torch.zeros((*query.shape[:2], layout.value_dim), dtype=torch.float64)
    for row, chunk in enumerate(rows.row_chunk):
        position = int(rows.row_position[row])
        begin = max(0, position + 1 - layout.window) if layout.window else 0
        seen = np.arange(begin, position + 1)
        where = rows.tables[chunk, seen // layout.block_size], seen % layout.block_size
        for head in range(query.shape[1] if chunk >= 0 else 0):
            keys = tensors["keys"][where][:, head // layout.group].double()
            scores = keys @ query[row, head] * 0.3
            if layout.softcap:
                scores = layout.softcap * torch.tanh(scores / layout.softcap)
            if tensors["sinks"] is not None:
                scores = torch.cat([scores, tensors["sinks"][head : head + 1].double()])
            weights = scores.softmax(dim=0)[: len(seen)]
            out[row, head] = weights @ tensors["values"][where][:, head // layout.group].double()
    return out
