"""Gathers: slices of an operand at indices that a tensor lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardcore.simulate.indexing import clamped, index_vectors
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.shapes import uniform_integers
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array, count


@dataclass
class _Gather:
    """StableHLO's dimension numbers of a gather, and the shapes of its operands."""

    shape: tuple[int, ...]
    rank: int
    offset_dims: Sequence[int]
    collapsed: Sequence[int]
    batching: Sequence[int]
    index_batching: Sequence[int]
    start_map: Sequence[int]
    vector_dim: int

    @classmethod
    def of(cls, site: Site) -> _Gather:
        numbers = site.attributes["dimension_numbers"]
        names = (
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
        )
        lists = (numbers.get(name, []) for name in names)
        shape, rank = site.operands[0].shape, len(site.results[0].shape)
        offsets, collapsed, batching, index_batching, start_map = lists
        vector_dim = numbers.get("index_vector_dim", 0)
        return cls(shape, rank, offsets, collapsed, batching, index_batching, start_map, vector_dim)

    def kept(self, sizes: Sequence[int]) -> tuple[list[int], list[int]]:
        """The operand dims that results have: those that slices take in part, and those that they
        take whole, which need no indices."""
        offsets = [
            dim for dim in range(len(self.shape)) if dim not in (*self.collapsed, *self.batching)
        ]
        whole = [
            dim for dim in offsets if dim not in self.start_map and sizes[dim] == self.shape[dim]
        ]
        return [dim for dim in offsets if dim not in whole], whole

    def place(self, dim: int, starts: Array, sizes: Sequence[int], partial: Sequence[int]) -> Array:
        """The indices along operand dim ``dim``, with dims for index vectors and then ``partial``
        dims."""
        batch = starts.shape[1:-1]
        spots = len(batch) + len(partial)
        place = np.zeros((1,) * (spots + 1), np.int64)
        if dim in self.start_map:
            start = starts[..., self.start_map.index(dim)]
            first = clamped(start, sizes[dim], self.shape[dim])
            place = first.reshape(len(first), *batch, *(1,) * len(partial))
        if dim in partial:
            behind = (1,) * (len(partial) - partial.index(dim) - 1)
            place = place + np.arange(sizes[dim]).reshape(-1, *behind)
        if dim in self.batching:
            at = self.index_batching[self.batching.index(dim)]
            at -= at > self.vector_dim
            place = place + np.arange(batch[at]).reshape(-1, *(1,) * (spots - at - 1))
        return place

    def compute(self, x: Array, indices: Array, sizes: Sequence[int]) -> Array:
        starts = index_vectors(indices, self.vector_dim)
        partial, whole = self.kept(sizes)
        indexed = [dim for dim in range(len(self.shape)) if dim not in whole]
        places = [self.place(dim, starts, sizes, partial) for dim in indexed]
        devices = count((x, starts))
        spots = (*starts.shape[1:-1], *(sizes[dim] for dim in partial))
        row = np.zeros((1,) * (len(spots) + 1), np.intp)
        if len(x) > 1:
            row = np.arange(devices).reshape(-1, *(1,) * len(spots))
        # NumPy puts dims without an index at the end.
        index = (row, *places)
        found = x.transpose(0, *(dim + 1 for dim in (*indexed, *whole)))[index]
        found = np.broadcast_to(found, (devices, *spots, *(sizes[dim] for dim in whole)))
        offsets = sorted((*partial, *whole))
        batch_dims = [dim for dim in range(self.rank) if dim not in self.offset_dims]
        here = [
            *batch_dims,
            *(self.offset_dims[offsets.index(dim)] for dim in (*partial, *whole)),
        ]
        return found.transpose(0, *(at + 1 for at in np.argsort(here)))


@op("stablehlo.gather", "stablehlo.dynamic_gather")
def gather(site: Site) -> Kernel:
    """Slices of an operand at indices that a tensor lists."""
    plan = _Gather.of(site)
    if site.name == "stablehlo.dynamic_gather":
        return arrays(
            lambda x, indices, sizes: plan.compute(
                x, indices, uniform_integers(sizes, site, "the slice sizes")
            )
        )
    sizes = site.integers("slice_sizes")
    return arrays(lambda x, indices: plan.compute(x, indices, sizes))
