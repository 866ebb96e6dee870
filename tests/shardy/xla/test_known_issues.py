"""Where XLA is known to be wrong: it is, on such programs, with the installed jaxlib, and only
there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore import Module
from shardcore.diagnose.known_issues import KNOWN_ISSUES, suspects

LOST, SHIFTED, MALFORMED = (issue.url.rsplit("/", 1)[-1] for issue in KNOWN_ISSUES)
HERE = Module.parse("func.func @main() { return }").shardy


def updated(x: jax.Array, start: jax.Array) -> jax.Array:
    return lax.dynamic_update_slice(x, jnp.full((2, 1), 99.0), (jnp.int32(0), start))


def updated_by_two(x: jax.Array, start: jax.Array) -> jax.Array:
    return lax.dynamic_update_slice(x, jnp.full((2, 2), 99.0), (jnp.int32(0), start))


def updated_rows(x: jax.Array, start: jax.Array) -> jax.Array:
    """Along the dim that is not sharded."""
    return lax.dynamic_update_slice(x, jnp.full((1, 8), 99.0), (start, jnp.int32(0)))


def updated_in_range(x: jax.Array, start: jax.Array) -> jax.Array:
    return lax.dynamic_update_slice(x, jnp.full((2, 1), 99.0) * start, (0, 7))


def sliced(x: jax.Array, start: jax.Array) -> jax.Array:
    return jnp.pad(lax.dynamic_slice(x, (jnp.int32(0), start), (2, 4)), ((0, 0), (0, 4)))


def sliced_rows(x: jax.Array, start: jax.Array) -> jax.Array:
    return jnp.tile(lax.dynamic_slice(x, (start, jnp.int32(0)), (1, 8)), (2, 1))


def roll(x: jax.Array, by: int) -> jax.Array:
    """A roll of columns as the derivative of one has it."""
    size, zero = x.shape[1], 0.0
    end = lax.pad(x, zero, [(0, 0, 0), (by - size, 0, 0)])
    start = lax.pad(x, zero, [(0, 0, 0), (0, -by, 0)])
    return lax.concatenate([end, start], 1)


def rolled_twice(x: jax.Array, _: jax.Array) -> jax.Array:
    return roll(x, 1) + roll(x, 3)


def rolled_again(x: jax.Array, _: jax.Array) -> jax.Array:
    return roll(roll(x, 1), 3)


def rolled_once(x: jax.Array, _: jax.Array) -> jax.Array:
    return roll(x, 3)


def rolled_apart(x: jax.Array, _: jax.Array) -> jax.Array:
    return roll(x, 1) + roll(jnp.sin(x), 3)


CASES: list[tuple[Callable[..., Any], int, int, set[str]]] = [
    # A function, the number of columns and of devices, and the issues it may have.
    (updated, 8, 4, {LOST}),
    (updated, 8, 2, {LOST}),
    (updated_by_two, 8, 4, set()),
    (updated_rows, 8, 4, set()),
    (updated_in_range, 8, 4, set()),
    (sliced, 8, 2, {SHIFTED}),
    (sliced_rows, 8, 4, set()),
    (rolled_twice, 4, 4, {MALFORMED}),
    (rolled_again, 4, 4, {MALFORMED}),
    (rolled_twice, 8, 4, {MALFORMED}),
    (rolled_twice, 8, 2, set()),
    (rolled_once, 4, 4, set()),
    (rolled_apart, 4, 4, set()),
]


def is_wrong(function: Callable[..., Any], columns: int, devices: int) -> tuple[bool, str]:
    """Whether XLA computes something else on several devices, or nothing; and the program."""
    mesh = Mesh(np.array(jax.devices("cpu")[:devices]), ("x",))
    sharded = NamedSharding(mesh, P(None, "x"))
    given = np.random.default_rng(0).normal(size=(2, columns)).astype(np.float32)
    arguments = given, np.int32(columns)
    jitted = jax.jit(
        function, in_shardings=(sharded, NamedSharding(mesh, P())), out_shardings=sharded
    )
    lowered = jitted.lower(*arguments)
    wanted = jax.jit(function)(*arguments)
    try:
        found = lowered.compile()(*arguments)
    except jax.errors.JaxRuntimeError:
        return True, lowered.as_text()
    return not np.allclose(found, wanted), lowered.as_text()


@pytest.mark.parametrize(
    ("function", "columns", "devices", "issues"),
    CASES,
    ids=[f"{case[0].__name__}-{case[1]}-{case[2]}" for case in CASES],
)
def test_what_xla_does(
    function: Callable[..., Any], columns: int, devices: int, issues: set[str]
) -> None:
    wrong, text = is_wrong(function, columns, devices)
    found = suspects(Module.parse(text).propagate().module.ops(), HERE)
    here = {
        issue.url.rsplit("/", 1)[-1]
        for issue in KNOWN_ISSUES
        if HERE in issue.versions and issue.url.rsplit("/", 1)[-1] in issues
    }
    assert {each.issue.url.rsplit("/", 1)[-1] for each in found} == here
    assert wrong == bool(here)
