"""Scatters: updates at dynamic indices, applied in order; updates out of bounds are dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from shardcore.simulate.dtypes import is_narrow
from shardcore.simulate.indexing import index_vectors
from shardcore.simulate.reduce import Reducer
from shardcore.simulate.registry import op
from shardcore.simulate.run import Run
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array, Value, count, fitted, spread

__all__ = ["accumulate"]


def accumulate(
    run: Run,
    reducer: Reducer,
    operands: Sequence[Array],
    target: Array,
    updates: Sequence[Array],
    captured: Mapping[int, Value],
) -> list[Array]:
    """``operands`` (devices, elements), each update combined with the element at its target.

    ``target`` (devices, updates) has the element numbers; updates with a negative one are dropped.
    """
    devices = count((*operands, target, *updates))
    found = [np.array(spread(operand, devices)) for operand in operands]
    target, *updates = (spread(x, devices) for x in (target, *updates))
    row, column = np.nonzero(target >= 0)
    place = row * found[0].shape[1] + target[row, column]
    values = [update[row, column] for update in updates]
    if reducer.is_reordered:
        row, place, values = row[::-1], place[::-1], [value[::-1] for value in values]
    flat = [operand.reshape(-1) for operand in found]
    body = reducer.body
    if not body.steps and body.returned == body.arguments[reducer.width :]:
        for operand, value in zip(flat, values, strict=True):
            operand[place] = value
    elif reducer.ufunc is not None and not is_narrow(reducer.dtype):
        reducer.ufunc.at(flat[0], place, values[0])
    else:
        _in_turns(run, reducer, flat, place, row, values, captured)
    return [operand.reshape(devices, -1) for operand in flat]


def _in_turns(
    run: Run,
    reducer: Reducer,
    flat: Sequence[Array],
    place: Array,
    row: Array,
    values: Sequence[Array],
    captured: Mapping[int, Value],
) -> None:
    """Apply the first update of each element, then the second of each, and so on."""
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    is_first = np.r_[True, ordered[1:] != ordered[:-1]] if len(ordered) else np.zeros(0, bool)
    starts = np.flatnonzero(is_first)
    turn = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.r_[starts, len(ordered)]))
    by_turn = np.argsort(turn, kind="stable")
    bounds = np.searchsorted(turn[by_turn], np.arange(turn.max(initial=-1) + 2))
    has_rows = len(run.devices) > 1
    for start, end in pairwise(bounds):
        now = order[by_turn[start:end]]
        at = place[now]
        old = [operand[at] for operand in flat]
        new = [value[now] for value in values]
        for operand, result in zip(
            flat,
            run.each(reducer.body, [*old, *new], captured, row[now] if has_rows else None),
            strict=True,
        ):
            operand[at] = result


@op("stablehlo.scatter")
def scatter(site: Site) -> Kernel:
    """Updates of windows at indices that a tensor lists."""
    numbers = site.attributes["scatter_dimension_numbers"]
    window_dims = numbers.get("update_window_dims", [])
    inserted = numbers.get("inserted_window_dims", [])
    batching = numbers.get("input_batching_dims", [])
    index_batching = numbers.get("scatter_indices_batching_dims", [])
    operand_dims = numbers.get("scatter_dims_to_operand_dims", [])
    vector_dim = numbers.get("index_vector_dim", 0)
    [body] = site.bodies
    reducer = Reducer(site, body)
    width = reducer.width
    shape, update_shape = site.operands[0].shape, site.operands[width + 1].shape
    scatter_dims = [dim for dim in range(len(update_shape)) if dim not in window_dims]
    kept = [dim for dim in range(len(shape)) if dim not in (*inserted, *batching)]

    def along(values: Array, dims: Sequence[int]) -> Array:
        """``values`` of shape ``(devices, dims)``, reshaped to the rank of the updates at
        ``dims``."""
        sizes = [1] * len(update_shape)
        for dim, size in zip(dims, values.shape[1:], strict=True):
            sizes[dim] = size
        return values.reshape(len(values), *sizes)

    def target_of(indices: Array) -> Array:
        """For each update the number of its element, negative if its window is out of bounds.

        As in XLA, a window that is partly out of bounds is dropped entirely.
        """
        starts = index_vectors(indices, vector_dim)
        target = np.zeros((1,) * (len(update_shape) + 1), np.int64)
        inside = np.ones_like(target, dtype=bool)
        for dim, length in enumerate(shape):
            place = np.zeros((1,) * (len(update_shape) + 1), np.int64)
            if dim in operand_dims:
                place = along(starts[..., operand_dims.index(dim)], scatter_dims)
            if dim in batching:
                at = index_batching[batching.index(dim)]
                at -= at > vector_dim
                place = place + along(np.arange(length)[None], [scatter_dims[at]])
            size = 1
            start = place
            if dim in kept:
                at = window_dims[kept.index(dim)]
                size = update_shape[at]
                place = place + along(np.arange(size)[None], [at])
            inside = inside & (start >= 0) & (start <= length - size)
            target = target * length + np.clip(place, 0, max(length - 1, 0))
        target = np.where(inside, target, -1)
        return np.broadcast_to(target, (len(target), *update_shape)).reshape(len(target), -1)

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        whole = fitted([*operands[:width], *operands[width + 1 :]])
        flat = [x.reshape(len(x), -1) for x in whole]
        target = target_of(operands[width])
        found = accumulate(run, reducer, flat[:width], target, flat[width:], captured)
        results = [x.reshape(len(x), *shape) for x in found]
        return results[0] if width == 1 else results

    return kernel
