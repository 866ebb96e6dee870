"""Single ops that were measured on one H100 take about as long by the model of kernels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore
import shardcore.jax

DISPATCH = 1.3e-5
"""Seconds that JAX takes to dispatch an op, which are in the measured time."""

_Op = tuple[Callable[..., Any], tuple[Any, ...], float]


def array(*sizes: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


OPS: dict[str, _Op] = {
    "dot": (jnp.dot, (array(8192, 8192, dtype=jnp.bfloat16),) * 2, 1.394e-3),
    "dot of f32": (jnp.dot, (array(8192, 8192),) * 2, 2.720e-3),
    "dot of odd sizes": (jnp.dot, (array(4100, 4100, dtype=jnp.bfloat16),) * 2, 6.52e-4),
    "dots": (
        partial(jnp.einsum, "bqd,bkd->bqk"),
        (array(64, 2048, 128, dtype=jnp.bfloat16),) * 2,
        2.41e-4,
    ),
    "add": (jnp.add, (array(1 << 28),) * 2, 1.075e-3),
    "sum of rows": (partial(jnp.sum, axis=1), (array(65536, 4096),), 3.65e-4),
    "sum of columns": (partial(jnp.sum, axis=0), (array(65536, 4096),), 3.78e-4),
    "softmax": (jax.nn.softmax, (array(65536, 4096),), 7.45e-4),
    "transpose": (jnp.transpose, (array(16384, 16384),), 7.94e-4),
    "gather": (
        lambda x, i: x[i],
        (array(131072, 1024), array(65536, dtype=jnp.int32)),
        2.03e-4,
    ),
    "scatter": (
        lambda x, i, y: x.at[i].add(y),
        (array(131072, 1024), array(65536, dtype=jnp.int32), array(65536, 1024)),
        6.79e-4,
    ),
    "sort": (jnp.sort, (array(4096, 8192),), 2.787e-3),
    "top-k": (lambda x: jax.lax.top_k(x, 8), (array(16384, 128),), 8.74e-5),
    "cumulative sum": (partial(jnp.cumsum, axis=1), (array(4096, 8192),), 2.59e-4),
    "transform": (jnp.fft.rfft, (array(4096, 16384),), 3.68e-4),
    "Cholesky factor": (jnp.linalg.cholesky, (array(2048, 2048),), 8.09e-4),
}
"""Functions with their arguments, and what a call takes: the median of three times ten calls."""


def lowered(function: Callable[..., Any], *arguments: Any) -> shardcore.jax.Lowered:
    return shardcore.jax.lower(function, *arguments, mesh={"d": 1})


def cost_of(function: Callable[..., Any], *arguments: Any, chip: str = "h100") -> shardcore.Cost:
    return lowered(function, *arguments).propagate().cost(chip)


@pytest.mark.parametrize("name", OPS)
def test_an_op_takes_what_it_took(name: str) -> None:
    function, arguments, took = OPS[name]
    cost = cost_of(function, *arguments)
    assert cost.step_seconds + DISPATCH == pytest.approx(took, rel=0.2)
    assert cost.step_seconds_lower <= took


def masked(x: Any, mask: Any) -> Any:
    return jax.nn.softmax(jnp.where(mask, x, -1e9)).astype(jnp.bfloat16)


def plain(x: Any) -> Any:
    return jax.nn.softmax(x).astype(jnp.bfloat16)


def test_a_kernel_that_holds_rows_computes_while_it_does_not_read() -> None:
    scores, mask = array(8, 16, 2048, 2048), array(2048, 2048, dtype=jnp.bool_)
    held, other = cost_of(masked, scores, mask), cost_of(plain, scores)
    assert [kernel.work.unit for kernel in held.kernels] == ["rows"]
    assert [kernel.work.unit for kernel in other.kernels] == ["vector"]
    assert held.step_seconds > 1.2 * other.step_seconds
    on_tpu = cost_of(masked, scores, mask, chip="tpu-v5e")
    assert "rows" not in {kernel.work.unit for kernel in on_tpu.kernels}


def test_two_sums_of_the_same_rows_hold_none() -> None:
    def sums(x: Any, scale: Any) -> Any:
        return (x * scale).sum(-1), (x * x).sum(-1)

    cost = cost_of(sums, array(65536, 4096), array(4096))
    assert {kernel.work.unit for kernel in cost.kernels} == {"vector"}


def test_a_long_line_is_sorted_by_digits() -> None:
    short, long = (cost_of(jnp.sort, array(n)).step_seconds for n in (1 << 13, 1 << 24))
    # A network would take twice as long.
    assert long / (1 << 24) < short / (1 << 13)


def test_the_trips_of_a_loop_are_counted_on_the_host() -> None:
    def loop(x: Any) -> Any:
        return jax.lax.fori_loop(0, 16, lambda _, x: jnp.tanh(x @ x), x)

    kernels = cost_of(loop, array(512, 512)).kernels
    assert [kernel.name for kernel in kernels if kernel.count == 0] == ["stablehlo.compare"]


def test_a_loop_adds_products_to_what_it_carries() -> None:
    def loop(total: Any, xs: Any) -> Any:
        return jax.lax.scan(lambda total, x: (total + x.T @ x, None), total, xs)[0]

    kernels = cost_of(loop, array(2048, 2048), array(16, 64, 2048)).kernels
    [product] = [kernel for kernel in kernels if kernel.work.unit == "product"]
    [add] = [kernel for kernel in kernels if kernel.name == "stablehlo.add" and kernel.bytes > 8]
    assert product.written_bytes == add.read_bytes == 4 * 2048 * 2048
    assert add.written_bytes == 0


def test_what_a_loop_carries_is_read_before_it_is_written() -> None:
    def step(carry: Any, x: Any) -> Any:
        h, c = carry
        gates = jnp.concatenate([h, x], -1).sum(-1, keepdims=True)
        c = c * gates + h
        return (jnp.tanh(c), c), h

    def loop(h: Any, c: Any, xs: Any) -> Any:
        return jax.lax.scan(step, (h, c), xs)

    kernels = cost_of(loop, array(64, 1024), array(64, 1024), array(16, 64, 1024)).kernels
    assert not any(kernel.is_copy and kernel.count == 16 for kernel in kernels)


def test_a_rotation_is_one_instruction() -> None:
    def rotated(x: Any) -> Any:
        for _ in range(64):
            x = (x << 13) | jax.lax.shift_right_logical(x, jnp.full_like(x, 19))
        return x

    def ors(x: Any) -> Any:
        for n in range(64):
            x = x * 3 | n
        return x

    words = array(1 << 20, dtype=jnp.uint32)
    (turned,), (other,) = cost_of(rotated, words).kernels, cost_of(ors, words).kernels
    assert turned.flops < other.flops
