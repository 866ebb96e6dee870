"""Sorting by any comparison, and the largest elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shardcore.simulate.dtypes import is_float, wide
from shardcore.simulate.elementwise import total_order
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.run import Run
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array, Value, fitted

Less = Callable[[Array, Array], Array]
"""Whether the elements at some indices come before those at others, in each line."""


def merge_sorted(lines: int, length: int, less: Less) -> Array:
    """The indices that sort each of ``lines``, stably: a merge sort.

    Sorted runs are merged in pairs. The rank of an element is its index in its own run plus the
    number of elements of the other run that come before it, found by bisection for all elements at
    once.
    """
    order = np.broadcast_to(np.arange(length), (lines, length))
    place = np.arange(length)
    width = 1
    while width < length:
        start = place // (2 * width) * (2 * width)
        middle = np.minimum(start + width, length)
        end = np.minimum(start + 2 * width, length)
        is_left = place < middle
        low = np.broadcast_to(np.where(is_left, middle, start), (lines, length)).copy()
        high = np.broadcast_to(np.where(is_left, end, middle), (lines, length)).copy()
        first = low.copy()
        while (low < high).any():
            half = (low + high) // 2
            other = np.take_along_axis(order, np.minimum(half, length - 1), axis=1)
            # For stability, an element of the left run comes before equal elements of the right
            # run.
            found = less(np.where(is_left, other, order), np.where(is_left, order, other))
            before = found == is_left
            active = low < high
            low = np.where(active & before, half + 1, low)
            high = np.where(active & ~before, half, high)
        rank = start + (place - np.where(is_left, start, middle)) + (low - first)
        merged = np.empty_like(order)
        np.put_along_axis(merged, rank, order, axis=1)
        order = merged
        width *= 2
    return order


@op("stablehlo.sort")
def sort(site: Site) -> Kernel:
    """Tensors sorted along a dim, all in the order of one comparison of their elements."""
    rank = len(site.operands[0].shape)
    dim = site.integer("dimension", -1) % max(rank, 1)
    [body] = site.bodies

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        if not operands[0].size:
            return operands[0] if len(operands) == 1 else operands
        whole = [np.moveaxis(x, dim + 1, -1) for x in fitted(operands)]
        shape = whole[0].shape
        length = shape[-1]
        lines = [x.reshape(-1, length) for x in whole]
        each = (len(lines[0]) // shape[0] if shape[0] else 0) * length
        row = np.repeat(np.arange(shape[0]), each) if shape[0] > 1 else None

        def less(a: Array, b: Array) -> Array:
            pairs = [
                np.take_along_axis(line, at, axis=1).reshape(-1) for line in lines for at in (a, b)
            ]
            return run.each(body, pairs, captured, row)[0].reshape(a.shape)

        order = merge_sorted(len(lines[0]), length, less)
        found = [np.take_along_axis(line, order, axis=1).reshape(shape) for line in lines]
        found = [np.moveaxis(x, -1, dim + 1) for x in found]
        return found[0] if len(found) == 1 else found

    return kernel


def largest(x: Array, count: int) -> tuple[Array, Array]:
    """The ``count`` largest elements along the last dim, and their indices; equal elements keep
    their order; +NaN is largest, -NaN smallest."""
    key = total_order(x) if is_float(x.dtype) else wide(x)
    key = key.astype(np.int64) if key.dtype.kind != "u" else key
    order = np.argsort(~key, axis=-1, kind="stable")[..., :count]
    return np.take_along_axis(x, order, axis=-1), order.astype(np.int32)


@op("chlo.top_k")
def top_k(site: Site) -> Kernel:
    """The largest elements along the last dim, and their indices."""
    count = site.integer("k")
    return arrays(lambda x: largest(x, count))


def approximate_top_k(site: Site) -> Kernel:
    """The first elements along a dim under a comparison, and their indices; computed exactly."""
    options = site.options()
    dim = int(options["reduction_dim"])
    [comparator] = site.attributes["called_computations"]
    count = site.results[0].shape[dim]

    def kernel(run: Run, *operands: Value) -> Value:
        body = site.function(comparator)
        if body is None:
            raise site.error("unknown-symbol", f"there is no function @{comparator}", None)
        lines = [np.moveaxis(x, dim + 1, -1) for x in fitted(operands[:2])]
        shape = lines[0].shape
        flat = [line.reshape(-1, shape[-1]) for line in lines]

        def less(a: Array, b: Array) -> Array:
            pairs = [
                np.take_along_axis(line, at, axis=1).reshape(-1) for line in flat for at in (a, b)
            ]
            return run.each(body, pairs, {}, None)[0].reshape(a.shape)

        order = merge_sorted(len(flat[0]), shape[-1], less)[:, :count]
        found = (np.take_along_axis(line, order, axis=1) for line in flat)
        return [np.moveaxis(x.reshape(*shape[:-1], count), -1, dim + 1) for x in found]

    return kernel
