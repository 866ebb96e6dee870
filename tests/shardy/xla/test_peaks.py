"""What XLA for hosts makes of a program before it plans memory: each program has one such thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore
from jax import lax
from jax.ad_checkpoint import checkpoint_policies
from jax.sharding import PartitionSpec as P

from tests.deep import sampled
from tests.shardy.programs.registry import Tree, f32, lower, mesh
from tests.shardy.xla import peaks_of_lookups, peaks_of_narrow_types, peaks_of_outputs
from tests.shardy.xla.compare import FLOPS_WITHIN, PeakCase, check_peak
from tests.shardy.xla.measured import measure
from tests.shardy.xla.peaks_of_outputs import SQUARE

DATA = mesh(data=8)
DEPTH, WIDTH = 4, 128


def block(x: jax.Array, w: Tree) -> jax.Array:
    """Two products, and a softmax between them."""
    return x + jax.nn.softmax(x @ w["up"]) @ w["down"]


def deep(**options: Any) -> Callable[..., Any]:
    """Gradients of blocks that are computed once more."""

    def loss(weights: Tree, x: jax.Array) -> jax.Array:
        for w in weights:
            x = jax.checkpoint(block, **options)(x, w)
        return jnp.sum(jnp.square(x))

    return jax.grad(loss)


def pooled(kernels: Tree, x: jax.Array) -> jax.Array:
    """Gradients of max-pools behind convolutions."""

    def loss(kernels: Tree) -> jax.Array:
        y = x
        for kernel in kernels:
            y = jax.nn.relu(convolution(y, kernel))
            window = (1, 2, 2, 1)
            y = lax.reduce_window(y, -np.inf, lax.max, window, window, "VALID")
        return jnp.sum(jnp.square(y))

    return jax.grad(loss)(kernels)


def convolution(x: jax.Array, kernel: jax.Array) -> jax.Array:
    dims = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=dims)


def features(kernels: Tree, x: jax.Array) -> jax.Array:
    """Means of what convolutions make, which nothing else reads."""
    for kernel in kernels:
        x = jax.nn.relu(convolution(x, kernel))
    return x.mean((1, 2))


def nearest(x: jax.Array, centers: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The nearest center of each row, and how far that is."""
    distances = jnp.square(centers).sum(-1) - 2 * x @ centers.T
    return distances.argmin(-1), distances.min(-1)


def spread(x: jax.Array, centers: jax.Array) -> jax.Array:
    """Distances of rows that get a dim of size one first."""
    return jnp.square(x[:, None] - centers[None]).sum(-1)


def stacked(weights: Tree, x: jax.Array) -> jax.Array:
    """Gradients of blocks in `bf16`, one after the other: what they need is stacked."""

    def loss(weights: Tree) -> jax.Array:
        def one(x: jax.Array, w: Tree) -> tuple[jax.Array, None]:
            return block(x, jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), w)), None

        y, _ = lax.scan(one, x.astype(jnp.bfloat16), weights)
        return jnp.sum(jnp.square(y.astype(jnp.float32)))

    return jax.grad(loss)(weights)


def gated(weights: Tree, x: jax.Array) -> jax.Array:
    """Gradients of products in `bf16` that have several uses."""

    def loss(weights: Tree) -> jax.Array:
        y = x.astype(jnp.bfloat16)
        for w in weights:
            gate, up = (y @ w[name].astype(jnp.bfloat16) for name in ("gate", "up"))
            y = y + (jax.nn.silu(gate) * up) @ w["down"].astype(jnp.bfloat16)
        return jnp.sum(jnp.square(y.astype(jnp.float32)))

    return jax.grad(loss)(weights)


BLOCKS = [{"up": f32(WIDTH, 4 * WIDTH), "down": f32(4 * WIDTH, WIDTH)}] * DEPTH
WHOLE = [{"up": P(), "down": P()}] * DEPTH
PARTS = [{"up": P("data"), "down": P("data")}] * DEPTH
KERNELS = [f32(3, 3, 4, 16), f32(3, 3, 16, 16)]
IMAGES, POINTS = f32(16, 32, 32, 4), f32(8192, 32)
ROWS = P("data")
LAYERS = {"up": f32(DEPTH, WIDTH, 4 * WIDTH), "down": f32(DEPTH, 4 * WIDTH, WIDTH)}
GATED = {"gate": f32(WIDTH, 512), "up": f32(WIDTH, 512), "down": f32(512, WIDTH)}
CASES = {
    "nothing saved": PeakCase(deep(), (BLOCKS, f32(1024, WIDTH)), (WHOLE, ROWS)),
    "nothing saved, gathered": PeakCase(deep(), (BLOCKS, f32(1024, WIDTH)), (PARTS, ROWS)),
    "products saved": PeakCase(
        deep(policy=checkpoint_policies.dots_saveable),
        (BLOCKS, f32(1024, WIDTH)),
        (PARTS, ROWS),
    ),
    "pools": PeakCase(pooled, (KERNELS, IMAGES), ([P(), P()], ROWS)),
    "features": PeakCase(features, (KERNELS, IMAGES), ([P(), P()], ROWS)),
    "nearest": PeakCase(nearest, (POINTS, f32(64, 32)), (ROWS, P())),
    "spread": PeakCase(spread, (POINTS, f32(64, 32)), (ROWS, P())),
    "stacked": PeakCase(stacked, (LAYERS, f32(1024, WIDTH)), ({"up": P(), "down": P()}, ROWS)),
    "gated": PeakCase(
        gated, ([GATED] * 2, f32(1024, WIDTH)), ([dict.fromkeys(GATED, P())] * 2, ROWS)
    ),
}


# A sample, since they take long to compile.
SAMPLE = {case: CASES[case]._replace(flops_within=FLOPS_WITHIN) for case in sampled(CASES, 2)}
PEAKS = {
    **SAMPLE,
    **peaks_of_lookups.CASES,
    **peaks_of_narrow_types.CASES,
    **peaks_of_outputs.CASES,
}


@pytest.mark.parametrize("case", PEAKS)
def test_peaks_are_those_of_xla(case: str) -> None:
    check_peak(PEAKS[case])


def test_peaks_elsewhere_are_of_what_barriers_say() -> None:
    """Compilers for accelerators compute again what is behind a barrier."""
    peaks = []
    for loss in (deep(), deep(policy=checkpoint_policies.everything_saveable)):
        lowered = lower(loss, DATA, (BLOCKS, f32(8192, WIDTH)), (WHOLE, ROWS), platform="cpu")
        cost = (
            shardcore.Module.parse(str(lowered.as_text()))
            .propagate(legalize_chlo=True)
            .cost(compiler="none")
        )
        peaks.append((cost.peak_bytes, cost.xla_cpu_peak_bytes))
    assert peaks[0][0] < 0.7 * peaks[1][0]
    assert peaks[0][1] == pytest.approx(peaks[1][1], rel=0.05)


@pytest.mark.parametrize("donate", [(), (0, 1)])
def test_arguments_that_are_returned_are_copied_unless_they_are_given_back(
    donate: tuple[int, ...],
) -> None:
    swapped = lower(
        lambda x, y: (y, x),
        DATA,
        (SQUARE,) * 2,
        (P(), P()),
        donate=donate,
        platform="cpu",
    )
    kept = lower(lambda x, y: (x, y), DATA, (SQUARE,) * 2, (P(), P()), donate=donate)
    for program in (swapped, kept):
        text = str(program.as_text())
        cost = shardcore.Module.parse(text).propagate().cost(compiler="none")
        assert cost.xla_cpu_peak_bytes == pytest.approx(measure(text).peak, rel=0.01)
        assert cost.peak_bytes == cost.xla_cpu_peak_bytes
        timeline = cost.memory_timeline()
        assert max(point.bytes for point in timeline.points) == cost.peak_bytes
