"""Programs of torchtitan's runs: ops that nothing compiles, and torchao's scaling."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore
import shardcore.jax
from shardcore.bench import op_by_op
from shardcore.bench.leaderboard import RING, chip_of
from shardcore.bench.products import products
from shardcore.bench.rebuilt import training_of
from shardcore.bench.rows import read_rows


def cost(function: Any, *arguments: Any, chip: str = "h100") -> shardcore.Cost:
    return shardcore.jax.lower(function, *arguments, mesh={"d": 1}).propagate().cost(chip)


@pytest.mark.parametrize("chip", ["h100", "tpu-v5p"])
def test_no_op_behind_a_barrier_is_in_the_kernel_before_it(chip: str) -> None:
    def step(x: Any) -> Any:
        return jnp.abs(jax.lax.optimization_barrier(jnp.negative(x)))

    x = jax.ShapeDtypeStruct((4096, 4096), jnp.float32)
    found = cost(step, x, chip=chip)
    assert [kernel.bytes for kernel in found.kernels] == [2 * 4 * x.size] * 2


def test_each_op_is_a_kernel_without_a_compiler() -> None:
    shape, wide = (4, 1024, 2048), 4 * 1024 * 2048
    x, scale = (jax.ShapeDtypeStruct(size, jnp.bfloat16) for size in (shape, shape[-1:]))

    def moved(function: Any, *arguments: Any) -> float:
        return cost(function, *arguments).hbm_bytes / (2 * wide)

    # Conversion, square, mean, product, conversion, product with the scale: 3, 4, 2, 4, 3 and 2.
    assert moved(op_by_op.norm, x, scale) == pytest.approx(18, rel=0.01)
    assert moved(lambda x: op_by_op.turned(jnp.negative, x), x) == pytest.approx(10)
    assert moved(op_by_op.gated, x, x) == pytest.approx(5)

    def gradient(x: Any, scale: Any) -> Any:
        found, back = jax.vjp(op_by_op.norm, x, scale)
        return back(found)

    # The gradient reads and writes twice as much as the norm.
    assert 48 < moved(gradient, x, scale) < 58


def test_dynamic_scales_read_operands_again_and_copy_them() -> None:
    x, w = (jax.ShapeDtypeStruct(size, jnp.bfloat16) for size in ((4, 1024, 2048), (2048, 2048)))

    def moved(dtype: str) -> float:
        def step(x: Any, w: Any) -> Any:
            def product(x: Any, w: Any) -> Any:
                return products(("btw,wf->btf",), x, (w,), (None,), dtype)[0]

            found, back = jax.vjp(product, x, w)
            return back(found)

        kernels = cost(step, x, w).kernels
        return sum(each.bytes for each in kernels if each.work.unit != "product") / x.size

    # The largest elements of x and of the gradient, of two bytes, and a copy of each, of one, which
    # the kernel that scales them writes.
    assert moved("fp8_dynamic") - moved("fp8") == pytest.approx(6, rel=0.01)


def test_attention_over_tokens_of_several_devices_takes_torch_longer() -> None:
    def share(number: int) -> float:
        row = read_rows()[number - 1]
        return chip_of(row, training_of(row)).achieved.kernels

    assert share(29) == pytest.approx(share(28) / RING)
    # Another library, with an axis of tokens and without.
    assert share(43) == share(42)
