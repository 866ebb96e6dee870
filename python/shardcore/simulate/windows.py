"""Windows that move over tensors: ``reduce_window``, ``select_and_scatter``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from shardcore.simulate.dtypes import wide
from shardcore.simulate.order import Order
from shardcore.simulate.reduce import Reducer
from shardcore.simulate.registry import op
from shardcore.simulate.run import Run
from shardcore.simulate.scatter import accumulate
from shardcore.simulate.shapes import padded
from shardcore.simulate.site import Body, Kernel, Site
from shardcore.simulate.values import Array, Value, fitted, spread

__all__ = ["Window", "windows_of"]


class Window(NamedTuple):
    """The attributes of a window: one number for each dim."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    base_dilations: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    @classmethod
    def of(cls, site: Site) -> Window:
        """The window of an op with a window number for each dim of its operand."""
        sizes = site.integers("window_dimensions")
        ones = (1,) * len(sizes)
        padding = site.integers("padding", (0, 0) * len(sizes))
        if len(padding) == 1:
            padding *= 2 * len(sizes)
        return cls(
            sizes,
            site.integers("window_strides", ones),
            site.integers("base_dilations", ones),
            site.integers("window_dilations", ones),
            padding[::2],
            padding[1::2],
        )

    def padded(self, x: Array, value: Array) -> Array:
        """``x``, whose last dims are those of the window, dilated and padded with ``value``."""
        front = (0,) * (x.ndim - 1 - len(self.sizes))
        between = tuple(dilation - 1 for dilation in self.base_dilations)
        if not any((*self.low, *self.high, *between)):
            return x
        return padded(x, value, (*front, *self.low), (*front, *self.high), (*front, *between))


def windows_of(
    x: Array, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    """A view of the windows over the last dims of ``x``: dims of positions, then of elements."""
    count = len(sizes)
    kept, moved = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    steps = x.strides[x.ndim - count :]
    places = [
        max((size - (window - 1) * dilation - 1) // stride + 1, 0) if size else 0
        for size, window, stride, dilation in zip(moved, sizes, strides, dilations, strict=True)
    ]
    # A window that is wider than its operand has no positions.
    places = [
        0 if size < (window - 1) * dilation + 1 else place
        for place, size, window, dilation in zip(places, moved, sizes, dilations, strict=True)
    ]
    outer = [step * stride for step, stride in zip(steps, strides, strict=True)]
    inner = [step * dilation for step, dilation in zip(steps, dilations, strict=True)]
    shape = (*kept, *places, *sizes)
    return as_strided(x, shape, (*x.strides[: x.ndim - count], *outer, *inner), writeable=False)


@op("stablehlo.reduce_window")
def reduce_window(site: Site) -> Kernel:
    """The elements in each window reduced; the padding holds the initial value."""
    window = Window.of(site)
    [body] = site.bodies
    reducer = Reducer(site, body)
    width = reducer.width

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        initial = operands[width:]
        arrays = [window.padded(x, v) for x, v in zip(operands[:width], initial, strict=True)]
        if width == 1 and reducer.ufunc is not None:
            found = [_one_dim_at_a_time(run, reducer, arrays[0], window)]
        else:
            found = _whole_windows(run, reducer, arrays, window, captured)
        if found[0].size:
            starts = [
                v.reshape(len(v), *(1,) * (x.ndim - 1)) for v, x in zip(initial, found, strict=True)
            ]
            found = reducer.combine(run, starts, found, captured)
        return found[0] if width == 1 else found

    return kernel


def _one_dim_at_a_time(run: Run, reducer: Reducer, x: Array, window: Window) -> Array:
    """Windows of commutative reductions are reduced along one dim after the other."""
    for dim, size in enumerate(window.sizes):
        stride, dilation = window.strides[dim], window.dilations[dim]
        if size == 1 and stride == 1:
            continue
        moved = np.moveaxis(x, dim + 1, -1)
        # Widened before it is viewed as windows, which have each element many times.
        terms = wide(moved)
        length = moved.shape[-1]
        if dilation == stride == 1 and length == 2 * size - 1 and reducer.ufunc is np.add:
            x = np.moveaxis(_sliding_sums(moved, size, reducer.order), -1, dim + 1)
            continue
        view = windows_of(terms, (size,), (stride,), (dilation,))
        if not view.size:
            x = np.moveaxis(np.zeros(view.shape[:-1], x.dtype), -1, dim + 1)
            continue
        [found] = reducer.reduce(run, [view], {})
        x = np.moveaxis(found, -1, dim + 1)
    return x


def _sliding_sums(x: Array, size: int, order: Order | None) -> Array:
    """Sums of windows of ``size`` elements, with the parts of each window as ``order`` has them.

    Where an order is strided, which parts of windows cannot be, there is another part instead.
    """
    if order is None:
        return _sliding_sum(x, size)
    length = x.shape[-1] - size + 1
    sums = [
        _sliding_sum(x[..., at.start : at.stop + length - 1], at.stop - at.start)
        for at in order.contiguous.slices(size)
        if at.stop > at.start
    ]
    return sum(sums[1:], sums[0])


def _sliding_sum(x: Array, size: int) -> Array:
    """Sums of windows of ``size`` elements, which add the terms of each window only (unlike a
    difference of cumulative sums), in as many steps as ``size`` has bits."""
    length = x.shape[-1] - size + 1
    total: Array | None = None
    done, width, block = 0, 1, x
    while width <= size:
        if size & width:
            part = block[..., done : done + length]
            total = part if total is None else total + part
            done += width
        if 2 * width <= size:
            block = block[..., :-width] + block[..., width:]
        width *= 2
    assert total is not None
    return total


def _whole_windows(
    run: Run, reducer: Reducer, arrays: list[Array], window: Window, captured: Mapping[int, Value]
) -> list[Array]:
    rank = len(window.sizes)
    views = [windows_of(x, window.sizes, window.strides, window.dilations) for x in arrays]
    if not views[0].size:
        return [np.zeros(view.shape[: 1 + rank], view.dtype) for view in views]
    flat = [view.reshape(*view.shape[: 1 + rank], -1) for view in views]
    return reducer.reduce(run, flat, captured)


@op("stablehlo.select_and_scatter")
def select_and_scatter(site: Site) -> Kernel:
    """Each element of a source is scattered to the index in its window that a function selects."""
    window = Window.of(site)
    select, scatter = site.bodies
    reducer = Reducer(site, scatter)

    def kernel(run: Run, *values: Value) -> Value:
        (operand, source, initial), captured = site.split(values)
        operand, source, initial = fitted([operand, source, initial])
        places = np.arange(operand[0].size).reshape(1, *operand.shape[1:])
        outside = np.full(1, -1)
        inside = window.padded(places, outside)
        value = window.padded(operand, np.zeros(1, operand.dtype))
        rank = operand.ndim - 1
        cut = (window.sizes, window.strides, window.dilations)
        views = [windows_of(x, *cut) for x in (value, spread(inside, len(value)))]
        flat = [view.reshape(*view.shape[: 1 + rank], -1) for view in views]
        chosen = _selected(run, select, flat[0], flat[1], captured)
        start = np.broadcast_to(initial[:, None], (len(operand), operand[0].size))
        updates = source.reshape(len(source), -1)
        target = chosen.reshape(len(source), -1)
        [found] = accumulate(run, reducer, [start], target, [updates], captured)
        return found.reshape(operand.shape)

    return kernel


def _selected(
    run: Run, select: Body, value: Array, place: Array, captured: Mapping[int, Value]
) -> Array:
    """The index of the selected element along the last dim; padding has negative indices."""
    while (size := value.shape[-1]) > 1:
        even = size - size % 2
        a, b = value[..., 0:even:2], value[..., 1:even:2]
        at, bt = place[..., 0:even:2], place[..., 1:even:2]
        each = a[0].size
        row = np.repeat(np.arange(len(a)), each) if len(a) > 1 else None
        [keeps] = run.each(select, [a.reshape(-1), b.reshape(-1)], captured, row)
        is_first = (keeps.reshape(a.shape) | (bt < 0)) & (at >= 0)
        left = slice(even, size)
        value = np.concatenate([np.where(is_first, a, b), value[..., left]], axis=-1)
        place = np.concatenate([np.where(is_first, at, bt), place[..., left]], axis=-1)
    return place[..., 0]
