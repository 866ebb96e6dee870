"""Does an op of JAX send under the policy ``xla`` what it sends under XLA?

As `benches.ops_sent`, for what JAX makes of one call, gradients too: several ops, of which only the
arguments and the results have shardings, random ones over 2 by 4 devices. Programs that XLA refuses
to compile are left out. Run it with
`python -m benches.jax_ops_sent [--programs N] [--list] [OP ...]`.
"""

from __future__ import annotations

import functools
import math
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from benches.ops_sent import AXES, parser_for, report
from tests.shardy.programs.registry import f32, i32, lower, mesh

MESH = mesh(**dict(AXES))
ROWS, CUBE, TABLE, IMAGE = f32(32, 64), f32(16, 32, 64), f32(64, 32), f32(16, 16, 16, 8)
HEADS, POOLED = f32(16, 32, 8, 16), f32(16, 8, 8, 8)
TOKENS, LABELS = i32(16, 8), i32(16, 32)


def conv(x: Any, w: Any, stride: int = 1, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )


def pool(x: Any, size: int = 2) -> Any:
    window = (1, size, size, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, (1, 2, 2, 1), "SAME")


def mean_pool(x: Any) -> Any:
    return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4


def picked(x: Any, labels: Any) -> Any:
    return jnp.take_along_axis(x, labels[..., None], -1)[..., 0]


def loss(x: Any, labels: Any) -> Any:
    return -picked(jax.nn.log_softmax(x), labels).mean()


def gradient(of: Callable[..., Any], argument: int = 0) -> Callable[..., Any]:
    """The function from the arguments of ``of`` and the gradient of its result to that of one."""

    def run(*given: Any) -> Any:
        *arguments, result = given
        return jax.vjp(of, *arguments)[1](result)[argument]

    return run


def repeated(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda _, c: c / (1 + jnp.abs(c).sum(-1, keepdims=True)), x)


OPS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "embed": (lambda t, i: t[i], (TABLE, TOKENS)),
    "embed, gradient": (gradient(lambda t, i: t[i]), (TABLE, TOKENS, f32(16, 8, 32))),
    "take_along_axis": (picked, (CUBE, LABELS)),
    "take_along_axis, gradient": (gradient(picked), (CUBE, LABELS, f32(16, 32))),
    "one_hot": (lambda t, i: jax.nn.one_hot(i, 64) @ t, (TABLE, TOKENS)),
    "top_k": (lambda x: lax.top_k(x, 8), (CUBE,)),
    "sort": (lambda x: jnp.sort(x, -1), (CUBE,)),
    "argmax": (lambda x: jnp.argmax(x, -1), (CUBE,)),
    "max_pool": (pool, (IMAGE,)),
    "max_pool, gradient": (gradient(pool), (IMAGE, POOLED)),
    "max_pool of 3, gradient": (gradient(lambda x: pool(x, 3)), (IMAGE, POOLED)),
    "avg_pool, gradient": (gradient(mean_pool), (IMAGE, POOLED)),
    "cumsum": (lambda x: jnp.cumsum(x, -1), (ROWS,)),
    "softmax": (jax.nn.softmax, (CUBE,)),
    "variance": (lambda x: x.var(-1), (CUBE,)),
    "sum": (lambda x: (x * x).sum(), (CUBE,)),
    "rotated halves": (lambda x: jnp.concatenate([-x[..., 32:], x[..., :32]], -1), (CUBE,)),
    "roll": (lambda x: jnp.roll(x, 1, 1), (CUBE,)),
    "shift": (lambda x: jnp.pad(x[:, :-1], ((0, 0), (1, 0), (0, 0))), (CUBE,)),
    "flip": (lambda x: x[:, ::-1], (CUBE,)),
    "stride": (lambda x: x[..., ::2], (CUBE,)),
    "conv, input gradient": (
        gradient(conv),
        (IMAGE, f32(3, 3, 8, 32), f32(16, 16, 16, 32)),
    ),
    "conv, kernel gradient": (
        gradient(conv, 1),
        (IMAGE, f32(3, 3, 8, 32), f32(16, 16, 16, 32)),
    ),
    "conv by groups": (lambda x, w: conv(x, w, 1, 8), (IMAGE, f32(3, 3, 1, 8))),
    "conv of stride 2": (lambda x, w: conv(x, w, 2), (IMAGE, f32(3, 3, 8, 32))),
    "cholesky": (lax.linalg.cholesky, (f32(16, 8, 8),)),
    "triangular_solve": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        (f32(16, 8, 8), f32(16, 8, 32)),
    ),
    "fft": (lambda x: jnp.abs(jnp.fft.fft(x)), (CUBE,)),
    "cache, one row": (
        lambda c, x, i: c.at[jnp.arange(16), i].set(x),
        (f32(16, 32, 8), f32(16, 8), i32(16)),
    ),
    "segment_sum": (lambda x, i: jax.ops.segment_sum(x, i, 16), (TABLE, i32(64))),
    "add to columns": (lambda x, i, u: x.at[:, i].add(u), (CUBE, i32(8), f32(16, 8, 64))),
    "heads, split": (lambda x: jnp.swapaxes(x.reshape(16, 32, 8, 8), 1, 2), (CUBE,)),
    "heads, merged": (lambda x: x.reshape(16, 32, 128), (HEADS,)),
    "repeat": (lambda x: jnp.repeat(x, 4, 2), (HEADS,)),
    "cross entropy": (loss, (CUBE, LABELS)),
    "cross entropy, gradient": (jax.grad(loss), (CUBE, LABELS)),
    "scores": (lambda q, k: jnp.einsum("bthd,bshd->bhts", q, k), (HEADS, HEADS)),
    "projection": (lambda x, w: jnp.einsum("bthd,hdm->btm", x, w), (HEADS, f32(8, 16, 64))),
    "projection, gradient": (
        lambda x, g: jnp.einsum("bthd,btm->hdm", x, g),
        (HEADS, f32(16, 32, 64)),
    ),
    "experts, combined": (
        lambda d, x: jnp.einsum("tec,ecm->tm", d, x),
        (f32(64, 8, 16), f32(8, 16, 32)),
    ),
    "stack": (lambda x, y: jnp.stack([x, y], 1), (ROWS, ROWS)),
    "fori_loop": (repeated, (CUBE,)),
}


def programs(name: str, count: int) -> Iterator[str]:
    """The texts of ``count`` programs of the op called ``name``."""
    function, arguments = OPS[name]
    draw = random.Random(name)
    results = jax.eval_shape(function, *arguments)
    for _ in range(count):
        given = tuple(_spec(draw, one.shape) for one in arguments)
        wanted = jax.tree.map(lambda one: _spec(draw, one.shape), results)
        yield str(lower(function, MESH, arguments, given, wanted, platform="cpu").as_text())


def _spec(draw: random.Random, shape: tuple[int, ...]) -> P:
    """Each axis is on a dim that it divides or, one time in four, on none."""
    sizes = dict(AXES)
    while True:
        dims: list[list[str]] = [[] for _ in shape]
        for axis in draw.sample(list(sizes), len(sizes)):
            if dims and draw.random() < 0.75:
                draw.choice(dims).append(axis)
        counts = [math.prod(sizes[axis] for axis in dim) for dim in dims]
        if not any(np.remainder(shape, counts)):
            return P(*(tuple(dim) or None for dim in dims))


def main() -> int:
    """Entry point."""
    options = parser_for(__doc__, OPS).parse_args()
    made = functools.partial(programs, count=options.programs)
    report(options.ops or OPS, made, "xla", options.list)
    return 0


if __name__ == "__main__":
    sys.exit(main())
