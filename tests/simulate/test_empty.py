"""Tensors without elements: every family takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from shardcore import Module

from tests.simulate.check import check, lowered

X = np.zeros((0, 3), np.float32)
Y = np.ones((3, 4), np.float32)
NUMBERS = lax.ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x: (jnp.exp(x) + x * x, x > 0, x.astype(np.int8)), (X,)),
    "product of nothing": (lambda x, y: x.T @ y[:0], (X, Y)),
    "products": (lambda x, y: x @ y, (X, Y)),
    "shapes": (lambda x: (x.T, x.reshape(3, 0), jnp.concatenate([x, x]), x[:, ::2]), (X,)),
    "padded": (lambda x: lax.pad(x, np.float32(2), [(1, 1, 2), (0, 0, 1)]), (X,)),
    "cut away": (lambda y: lax.pad(y, np.float32(2), [(-3, 0, 0), (0, -4, 0)]), (Y,)),
    "reductions": (lambda x: (x.sum(0), x.sum(1), jnp.max(x, initial=-1), jnp.any(x > 0)), (X,)),
    "a reducer": (lambda x: lax.reduce(x, np.float32(1), lambda a, b: a + b * 2, (0,)), (X,)),
    "arguments": (lambda x: jnp.argmax(x, axis=1), (X,)),
    "sorts": (lambda x: (lax.sort(x, dimension=0), jnp.argsort(x, axis=1)), (X,)),
    "top": (lambda x: lax.top_k(x, 2), (X,)),
    "cumulative": (lambda x: (lax.cumsum(x, 0), lax.cummax(x, 1)), (X,)),
    "windows": (lambda y: lax.reduce_window(y, 0.0, lax.add, (5, 1), (1, 1), "VALID"), (Y,)),
    "windows of two tensors": (
        lambda y: lax.reduce_window(
            (y, y),
            (np.float32(0), np.float32(9)),
            lambda a, b: (a[0] + b[0], lax.min(a[1], b[1])),
            (5, 1),
            (1, 1),
            "VALID",
        ),
        (Y,),
    ),
    "gather": (lambda y: (y[np.zeros((0,), np.int32)], y[:, :0]), (Y,)),
    "scatter": (lambda y: y.at[np.zeros((0,), np.int32)].add(1.0), (Y,)),
    "update": (lambda y: lax.dynamic_update_slice(y, y[:0], (2, 1)), (Y,)),
    "slice": (lambda y: lax.dynamic_slice(y, (5, 1), (0, 2)), (Y,)),
    "convolution": (
        lambda x, k: lax.conv_general_dilated(x, k, (1,), [(0, 0)], dimension_numbers=NUMBERS),
        (np.ones((2, 2, 3), np.float32), np.ones((5, 3, 4), np.float32)),
    ),
    "no features": (
        lambda x, k: lax.conv_general_dilated(x, k, (1,), [(0, 0)], dimension_numbers=NUMBERS),
        (np.ones((2, 6, 0), np.float32), np.ones((2, 0, 4), np.float32)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_taken(name: str) -> None:
    fn, arrays = CASES[name]
    check(fn, *arrays)


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_taken_on_devices(name: str) -> None:
    fn, arrays = CASES[name]
    module = Module.parse(lowered(fn, *arrays))
    once = module.simulate(*arrays)
    stacked = [np.broadcast_to(array, (3, *array.shape)) for array in arrays]
    for one, all_ in zip(once, module.simulate(*stacked, devices=3), strict=True):
        assert np.array_equal(all_, np.broadcast_to(one, (3, *one.shape)), equal_nan=True)
