"""Slices at dynamic start indices, which are clamped so that slices are in bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardcore.simulate.dtypes import wide
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array, count, spread


def clamped(start: Array, size: int, length: int) -> Array:
    """The ``start`` of a slice of ``size`` elements, clamped to the bounds of a dim of
    ``length``."""
    start = wide(start)
    if start.dtype.kind == "u":
        # The largest unsigned integers do not fit into the signed type.
        start = np.minimum(start.astype(np.uint64), np.uint64(length))
    return np.clip(start.astype(np.int64), 0, length - size)


def _places(shape: Sequence[int], starts: Sequence[Array], sizes: Sequence[int]) -> list[Array]:
    """For each dim the indices of a slice, in shapes that broadcast to the slice's shape."""
    rank = len(sizes)
    found = []
    for dim, (start, size, length) in enumerate(zip(starts, sizes, shape, strict=True)):
        steps = np.arange(size).reshape(-1, *(1,) * (rank - dim - 1))
        first = clamped(start, size, length).reshape(-1, *(1,) * rank)
        found.append(first + steps)
    return found


def _one_place(
    starts: Sequence[Array], sizes: Sequence[int], shape: Sequence[int]
) -> tuple[slice, ...]:
    firsts = [
        int(clamped(start, size, length)[0])
        for start, size, length in zip(starts, sizes, shape, strict=True)
    ]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


@op("stablehlo.dynamic_slice")
def dynamic_slice(site: Site) -> Kernel:
    """A slice of fixed sizes."""
    sizes = site.integers("slice_sizes")

    def compute(x: Array, *starts: Array) -> Array:
        if count(starts) == 1:
            place = (slice(None), *_one_place(starts, sizes, x.shape[1:]))
            return x[place]
        devices = count((x, *starts))
        row = np.arange(devices).reshape(-1, *(1,) * len(sizes))
        row = row if len(x) > 1 else np.zeros_like(row)
        places = (row, *_places(x.shape[1:], starts, sizes))
        return x[places]

    return arrays(compute)


@op("stablehlo.dynamic_update_slice")
def dynamic_update_slice(site: Site) -> Kernel:
    """The operand with a slice replaced."""
    sizes = site.operands[1].shape

    def compute(x: Array, update: Array, *starts: Array) -> Array:
        devices = count((x, update, *starts))
        found = np.array(spread(x, devices))
        if count(starts) == 1:
            place = (slice(None), *_one_place(starts, sizes, x.shape[1:]))
            found[place] = update
            return found
        row = np.arange(devices).reshape(-1, *(1,) * len(sizes))
        places = (row, *_places(x.shape[1:], starts, sizes))
        found[places] = update
        return found

    return arrays(compute)


def index_vectors(indices: Array, vector_dim: int) -> Array:
    """The indices with the index-vector dim last; a scalar becomes a vector of one."""
    indices = wide(indices)
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    indices = indices.astype(np.int64)
    if vector_dim == indices.ndim - 1:
        return indices[..., None]
    return np.moveaxis(indices, vector_dim + 1, -1)


@op("stablehlo.torch_index_select")
def torch_index_select(site: Site) -> Kernel:
    """Slices along a dim at the indices that a tensor lists, for each index of batch dims."""
    dim, batch = site.integer("dim"), site.integer("batch_dims")

    def compute(x: Array, indices: Array) -> Array:
        devices = count((x, indices))
        x, indices = spread(x, devices), spread(wide(indices).astype(np.int64), devices)
        lead = indices.shape[: 1 + batch]
        grid = np.indices(lead, sparse=True)
        moved = np.moveaxis(x, dim + 1, 1 + batch)
        at = clamped(indices, 1, x.shape[dim + 1])
        tail = (1,) * (indices.ndim - 1 - batch)
        place = (*(axis.reshape(*axis.shape, *tail) for axis in grid), at)
        found = moved[place]
        inner = range(1 + batch, indices.ndim)
        before = range(indices.ndim, indices.ndim + dim - batch)
        after = range(indices.ndim + dim - batch, found.ndim)
        return found.transpose(*range(1 + batch), *before, *inner, *after)

    return arrays(compute)
