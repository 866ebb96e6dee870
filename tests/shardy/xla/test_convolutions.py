"""Under policy ``xla`` convolutions both whose operands are sharded send what XLA sends."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, lower, mesh
from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.sent import sent_bytes

MESH = mesh(x=2, y=2, z=2)
IMAGES, KERNEL = (16, 16, 16, 8), (3, 3, 8, 32)


def convolve(x: jax.Array, w: jax.Array, groups: int = 1, stride: int = 1) -> jax.Array:
    return lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def by_images(dy: jax.Array, w: jax.Array) -> Any:
    return jax.vjp(lambda x: convolve(x, w), jnp.zeros(IMAGES))[1](dy)[0]


def by_kernel(x: jax.Array, dy: jax.Array) -> Any:
    return jax.vjp(lambda w: convolve(x, w), jnp.zeros(KERNEL))[1](dy)[0]


def by_patches(x: jax.Array, dy: jax.Array) -> Any:
    def patches(w: jax.Array) -> jax.Array:
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (4, 4), "VALID", dimension_numbers=numbers)

    return jax.vjp(patches, jnp.zeros((4, 4, 8, 32)))[1](dy)[0]


def in_groups(x: jax.Array, w: jax.Array) -> jax.Array:
    return convolve(x, w, groups=4)


def in_strides(x: jax.Array, w: jax.Array) -> jax.Array:
    return convolve(x, w, stride=2)


RESULT = (16, 16, 16, 32)
# The function, the shapes of its operands, and the shardings of these and of the result.
CASES: dict[str, tuple[Tree, tuple[tuple[int, ...], ...], tuple[P | None, ...]]] = {
    # Devices compute terms with a part of the kernel, which is shorter than the result.
    "part-of-a-kernel": (
        convolve,
        (IMAGES, KERNEL),
        (P(None, "z", "y", "x"), P(None, None, None, ("y", "x", "z")), P(None, "z", "x")),
    ),
    # Two devices have the same part.
    "part-with-copies": (
        convolve,
        (IMAGES, KERNEL),
        (P(None, "y"), P(None, None, "z", "x"), None),
    ),
    "gradient-by-images": (
        by_images,
        (RESULT, KERNEL),
        (P(None, "z", "y"), P(None, None, ("x", "z")), P("x", None, "z")),
    ),
    # Terms along the rows of images, which the kernel's gradient is computed from, with copies.
    "gradient-by-kernel-with-copies": (
        by_kernel,
        (IMAGES, RESULT),
        (P("z", None, ("x", "y")), P(None, "z"), None),
    ),
    # Too far for halos: the output leads.
    "strides": (
        in_strides,
        (IMAGES, KERNEL),
        (P(None, "x", ("y", "z")), P(*[None] * 3, "y"), None),
    ),
    # The partitioner makes groups of several features whole.
    "groups": (
        in_groups,
        ((16, 16, 16, 32), (3, 3, 8, 64)),
        (P("x", "y"), P(*[None] * 3, "z"), None),
    ),
    # Terms of groups are added up before those within groups.
    "groups-first": (
        convolve,
        (IMAGES, KERNEL),
        (P("y", "z", None, "x"), P(None, None, "x", "y"), P(None, None, None, "x")),
    ),
    # Within groups the result is sharded like the images.
    "rows-within-groups": (
        convolve,
        (IMAGES, KERNEL),
        (P(None, ("y", "z"), None, "x"), P(None, None, "x"), P(None, ("y", "z"), None, "x")),
    ),
    # The result is shorter than the kernel, and has windows of its own.
    "rows-of-a-gradient": (
        by_patches,
        ((16, 32, 32, 8), (16, 8, 8, 32)),
        (P(None, None, None, "y"), P("x", None, "y"), P("x", None, "y")),
    ),
    # Groups are along other devices than those of the images.
    "permuted-groups": (
        convolve,
        (IMAGES, KERNEL),
        (P("y", None, "x", "z"), P(), P("z", None, None, "x")),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bytes_are_those_of_xla(case: str) -> None:
    function, shapes, specs = CASES[case]
    arguments = tuple(f32(*shape) for shape in shapes)
    text = str(lower(function, MESH, arguments, specs[:2], specs[2], platform="cpu").as_text())
    result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
    assert {**sent_by_kind(result.cost(compiler="none"))} == {**as_all_reduce(sent_bytes(text))}
    assert shardcore.prove(result.partition("xla")).is_proven
