"""Reductions, windows, sorts and products: random shapes and parameters.

On small integers sums are exact in any order, so results are equal bit for bit.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from shardcore.simulate.dtypes import DTYPES, is_float

from tests.simulate.check import check, check_text, few, function
from tests.simulate.numbers import edges, small
from tests.simulate.test_structure import SHAPES, draw_array

ELEMENTS = ("f32", "i32", "bf16", "i8", "ui32", "f16", "f64")


def reducer(name: str, element: str) -> tuple[Any, Any]:
    dtype = DTYPES[element]
    low, high = (-np.inf, np.inf) if is_float(dtype) else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return {
        "add": (lax.add, 0),
        "mul": (lax.mul, 1),
        "max": (lax.max, low),
        "min": (lax.min, high),
        "twice": (lambda a, b: a + b + a * b * 0, 0),
    }[name]


NAMES = st.sampled_from(["add", "mul", "max", "min", "twice"])


@few
@given(st.data())
def test_reductions(data: st.DataObject) -> None:
    shape, element = data.draw(SHAPES), data.draw(st.sampled_from(ELEMENTS))
    dims = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(shape)))))))
    compute, start = reducer(data.draw(NAMES), element)
    x = draw_array(data, shape, element)
    check(lambda x: lax.reduce(x, np.asarray(start, x.dtype), compute, dims), x)


def test_reductions_of_nothing_and_of_several() -> None:
    x = small(np.random.default_rng(0), (4, 7), "f32")
    check(lambda x: (jnp.sum(x[:, :0], 1), jnp.max(x[:0], 0, initial=3)), x)
    check(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.any(x > 2), jnp.all(x < 9, 0)), x)
    check(
        lambda x: lax.reduce(
            (x, x.astype(np.int32)),
            (np.float32(0), np.int32(0)),
            lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])),
            (1,),
        ),
        x,
    )


@pytest.mark.parametrize("element", ["f32", "bf16", "f64"])
def test_extremes_of_zeros_and_nan(element: str) -> None:
    rng = np.random.default_rng(0)
    values = np.array([0.0, -0.0, np.nan, -np.inf, 1.0])
    x = values[rng.integers(0, 5, (64, 3))].astype(DTYPES[element])
    check(lambda x: (lax.reduce_max(x, (1,)), lax.reduce_min(x, (1,))), x)


@pytest.mark.parametrize("element", ["f32", "bf16", "f64", "complex<f32>"])
@pytest.mark.parametrize("start", [-0.0, 0.0])
def test_sums_of_minus_zeros_keep_their_sign(element: str, start: float) -> None:
    x = -np.zeros((5, 3), DTYPES[element])
    init = np.asarray(complex(start, start) if "complex" in element else start, x.dtype)
    check(lambda x: lax.reduce(x, init, lax.add, (1,)), x)


@few
@given(st.data())
def test_windows(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    numbers = lambda low, high: tuple(data.draw(st.integers(low, high)) for _ in range(rank))  # noqa: E731
    shape, sizes, strides = numbers(1, 7), numbers(1, 3), numbers(1, 3)
    base, dilation = numbers(1, 2), numbers(1, 2)
    padding = [(data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))) for _ in range(rank)]
    reach = [(size - 1) * by + 1 for size, by in zip(sizes, dilation, strict=True)]
    room = [(n - 1) * by + 1 + sum(p) for n, by, p in zip(shape, base, padding, strict=True)]
    if any(r > have for r, have in zip(reach, room, strict=True)):
        return
    element = data.draw(st.sampled_from(ELEMENTS))
    compute, start = reducer(data.draw(NAMES), element)
    x = draw_array(data, shape, element)
    check(
        lambda x: lax.reduce_window(
            x, np.asarray(start, x.dtype), compute, sizes, strides, padding, base, dilation
        ),
        x,
    )


def test_cumulative_sums_and_pools() -> None:
    rng = np.random.default_rng(0)
    x, image = small(rng, (3, 37), "f32"), small(rng, (2, 9, 8, 3), "f32")
    check(lambda x: (lax.cumsum(x, 1), lax.cummax(x, 0), lax.cumprod(x, 1, reverse=True)), x)

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")

    check(lambda x: jax.vjp(pooled, x)[1](pooled(x))[0], image)


@few
@given(st.data())
def test_select_and_scatter(data: st.DataObject) -> None:
    shape = (data.draw(st.integers(3, 8)), data.draw(st.integers(3, 8)))
    sizes = tuple(data.draw(st.integers(1, 3)) for _ in shape)
    strides = tuple(data.draw(st.integers(1, 3)) for _ in shape)
    padding = data.draw(st.sampled_from(["SAME", "VALID"]))
    x = draw_array(data, shape, "f32")

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -np.inf, lax.max, sizes, strides, padding)

    check(lambda x: jax.vjp(pooled, x)[1](pooled(x) + 1)[0], x)


@few
@given(st.data())
def test_products(data: st.DataObject) -> None:
    names = "abcdef"
    kinds = data.draw(
        st.lists(st.sampled_from(["batch", "left", "right", "both"]), min_size=1, max_size=5)
    )
    size = {name: data.draw(st.integers(1, 4)) for name in names[: len(kinds)]}
    sides = [
        [name for name, kind in zip(size, kinds, strict=True) if kind in ("batch", "both", side)]
        for side in ("left", "right")
    ]
    left, right = (data.draw(st.permutations(side)) for side in sides)
    batch = [n for n, kind in zip(size, kinds, strict=True) if kind == "batch"]
    summed = [n for n, kind in zip(size, kinds, strict=True) if kind == "both"]
    dims = [
        tuple(tuple(side.index(name) for name in group) for side in (left, right))
        for group in (summed, batch)
    ]
    element = data.draw(st.sampled_from([*ELEMENTS, "complex<f32>"]))
    wide = data.draw(st.sampled_from([None, np.float32 if element in ("bf16", "f16") else None]))
    a, b = (draw_array(data, tuple(size[n] for n in side), element) for side in (left, right))
    check(lambda a, b: lax.dot_general(a, b, tuple(dims), preferred_element_type=wide), a, b)


@few
@given(st.data())
def test_convolutions(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 2))
    several = lambda low, high: tuple(data.draw(st.integers(low, high)) for _ in range(rank))  # noqa: E731
    groups, batches = data.draw(st.sampled_from([(1, 1), (2, 1), (1, 2)]))
    features, out = 2 * data.draw(st.integers(1, 2)), 2 * data.draw(st.integers(1, 2))
    space, window = several(3, 7), several(1, 3)
    padding = [(data.draw(st.integers(-1, 2)), data.draw(st.integers(0, 2))) for _ in range(rank)]
    options = {
        "window_strides": several(1, 2),
        "padding": padding,
        "lhs_dilation": several(1, 2),
        "rhs_dilation": several(1, 2),
        "feature_group_count": groups,
        "batch_group_count": batches,
    }
    letters = "HW"[:rank]
    first, last = ("NC" + letters, "OI" + letters), (f"N{letters}C", f"{letters}IO")
    inputs, kernels = data.draw(st.sampled_from([first, last]))
    numbers = (inputs, kernels, inputs)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    sizes = {"N": 2, "C": features, "O": out, "I": features // groups}
    extent = dict(zip(letters, space, strict=True)), dict(zip(letters, window, strict=True))
    x = small(rng, tuple((sizes | extent[0])[n] for n in numbers[0]), "f32")
    w = small(rng, tuple((sizes | extent[1])[n] for n in numbers[1]), "f32")
    check(lambda x, w: lax.conv_general_dilated(x, w, dimension_numbers=numbers, **options), x, w)


def test_a_convolution_with_its_window_reversed() -> None:
    rng = np.random.default_rng(0)
    x, w = small(rng, (1, 6, 5, 2), "f32"), small(rng, (3, 2, 2, 3), "f32")
    kinds = {"x": "tensor<1x6x5x2xf32>", "w": "tensor<3x2x2x3xf32>"}
    body = [
        "%r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        "window = {stride = [1, 2], pad = [[1, 0], [0, 1]], reverse = [true, false]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        f": ({kinds['x']}, {kinds['w']}) -> tensor<1x5x3x3xf32>"
    ]
    check_text(function(body, kinds, {"r": "tensor<1x5x3x3xf32>"}), x, w)


@few
@given(st.data())
def test_sorts(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 20), min_size=1, max_size=3).map(tuple))
    dim = data.draw(st.sampled_from(range(len(shape))))
    element = data.draw(st.sampled_from(["f32", "i32", "bf16", "ui8", "f64"]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    key = rng.choice(edges(element), shape)
    other = rng.integers(0, 3, shape).astype(np.int32)
    count = data.draw(st.sampled_from([1, 2]))
    place = np.arange(key.size, dtype=np.int32).reshape(shape)
    check(
        lambda k, o, p: lax.sort((o, k, p), dimension=dim, is_stable=True, num_keys=count),
        key,
        other,
        place,
    )


@pytest.mark.parametrize("element", ["f32", "bf16", "i32", "ui8", "f64"])
def test_top_k(element: str) -> None:
    x = np.random.default_rng(0).choice(edges(element), (4, 30))
    check(lambda x: lax.top_k(x, 7), x)


@pytest.mark.parametrize("dims", ["non-contracting", "contracting", "batch"])
def test_ragged_products(dims: str) -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([3, 0, 4, 2], np.int32)
    lhs = small(rng, (9, 5), "f32")
    shapes = {"non-contracting": (4, 5, 6), "contracting": (9, 6), "batch": (9, 6)}
    rhs = small(rng, shapes[dims], "f32")
    if dims == "non-contracting":
        check(lax.ragged_dot, lhs, rhs, sizes)
    elif dims == "contracting":
        numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
        check(lambda a, b, s: lax.ragged_dot_general(a, b, s, numbers), lhs, rhs, sizes)
