"""The table of ops that ``shardcore measure`` times: each group of ops determines one figure of a
chip.

Ops come in families of growing sizes. A family ends where the next op would take too long or too
much memory, so the same table suits a few CPU cores and a large accelerator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding

# JAX has no static types for these functions.
_Shape: Any = jax.ShapeDtypeStruct
_Spec: Any = jax.sharding.PartitionSpec
_lax: Any = jax.lax

F32, BF16, I32 = jnp.float32, jnp.bfloat16, jnp.int32
TRIPS = 16
"""Trips of the loops that read the same arrays again and again."""


@dataclass(frozen=True, eq=False)
class Op:
    """An op of the table: a function of arrays. Integer arrays are indices into the first array."""

    group: str
    """The figure that its time determines, as a group of :mod:`shardcore.costs.fit`."""
    name: str
    function: Callable[..., Any]
    shapes: tuple[jax.ShapeDtypeStruct, ...]
    flops: float = 0.0
    moved_bytes: float = 0.0
    donates: bool = False
    """Whether its first argument is donated to its result, which is that argument of the next
    run."""

    @property
    def bytes(self) -> int:
        """Bytes of its arguments together."""
        return sum(math.prod(each.shape) * each.dtype.itemsize for each in self.shapes)


def array(*sizes: int, dtype: Any = F32) -> jax.ShapeDtypeStruct:
    """An array of these sizes."""
    found: jax.ShapeDtypeStruct = _Shape(sizes, dtype)
    return found


def families(devices: list[Any]) -> Iterator[list[Op]]:
    """The families of ops, each from the smallest op to the largest."""
    yield [Op("one tiny op", "add 8", lambda x: x + 1.0, (array(8),))]
    yield [
        Op("many tiny ops", f"{n} products 8x8", partial(_chain, n), (array(8, 8),))
        for n in (16, 64)
    ]
    yield [
        Op("many tiny ops", f"scan of {n}", _scan, (array(8, 8), array(n, 8, 8))) for n in (16, 128)
    ]
    yield from _streams()
    yield from _elements()
    for dtype in (F32, BF16):
        yield from _products(dtype)
    yield from _convolutions()
    yield from _scattered()
    yield from _sorts()
    if len(devices) > 1:
        yield from _collectives(devices)


def _chain(count: int, x: Any) -> Any:
    for _ in range(count):
        x = jnp.tanh(x @ x)
    return x


def _scan(x: Any, weights: Any) -> Any:
    return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0]


def _again(x: Any, y: Any) -> Any:
    # Three arrays, as in products and optimizer updates.
    return jax.lax.fori_loop(0, TRIPS, lambda _, x: x * 0.5 + y, x)


def _products_again(a: Any, x: Any) -> Any:
    return jax.lax.fori_loop(0, TRIPS, lambda _, x: jnp.tanh(a @ x), x)


def _streams() -> Iterator[list[Op]]:
    sizes = [4**power for power in range(8, 15)]
    yield [
        Op(
            "new arrays",
            f"outer sum {n}",
            lambda x, y: x[:, None] + y,
            (array(n // 1024), array(1024)),
        )
        for n in (2**power for power in range(16, 29, 2))
    ]
    for name, function, count in (
        ("read", lambda x: x.sum(-1), 1),
        ("update", lambda x, y: x * 0.5 + y, 3),
    ):
        yield [
            Op(
                "streams",
                f"{name} {n}",
                function,
                (array(n // 1024, 1024),) * max(1, count - 1),
                moved_bytes=4.0 * n * count,
                donates=count > 1,
            )
            for n in sizes
        ]
    yield [
        Op("streams again", f"update {n} in a loop", _again, (array(n),) * 2)
        for n in (2**power for power in range(14, 28, 2))
    ]
    yield [
        Op("streams again", f"matrix {n} in a loop", _products_again, (array(n, n), array(n)))
        for n in (256, 512, 1024, 2048, 4096, 8192)
    ]


def _polynomial(x: Any) -> Any:
    y = x
    for number in range(16):
        y = y * x + 0.1 * number
    return y


def _elements() -> Iterator[list[Op]]:
    sizes = [2**power for power in range(18, 28, 2)]
    yield [Op("elements", f"polynomial {n}", _polynomial, (array(n // 1024, 1024),)) for n in sizes]
    for name, function in (("exp", jnp.exp), ("tanh", jnp.tanh), ("logistic", jax.nn.sigmoid)):
        chained = partial(_three_times, function)
        shapes = [(array(n // 1024, 1024),) for n in sizes]
        yield [
            Op("exponentials", f"{name} {n}", chained, shape)
            for n, shape in zip(sizes, shapes, strict=True)
        ]
    yield [
        Op("exponentials", f"softmax {n}", jax.nn.softmax, (array(n // 1024, 1024),)) for n in sizes
    ]


def _three_times(function: Callable[[Any], Any], x: Any) -> Any:
    for _ in range(3):
        x = function(x * 0.25)
    return x


def _product(group: str, form: str, sizes: dict[str, int], dtype: Any) -> Op:
    """The einsum ``form`` of arrays whose dims have these ``sizes``."""
    first, second = form.partition("->")[0].split(",")
    shapes = tuple(array(*(sizes[i] for i in one), dtype=dtype) for one in (first, second))
    name = f"{form} {'x'.join(map(str, sizes.values()))}"
    flops = 2.0 * math.prod(sizes.values())
    return Op(group, f"{name} {dtype.dtype.name}", partial(jnp.einsum, form), shapes, flops)


def _products(dtype: Any) -> Iterator[list[Op]]:
    group = f"products of {'f32' if dtype is F32 else 'bf16'}"
    plain = "mk,kn->mn"
    cubes = [{"m": n, "n": n, "k": n} for n in (128, 256, 512, 1024, 2048, 4096, 8192)]
    # The second is the one in gradients of weights.
    for form in (plain, "km,kn->mn"):
        yield [_product(group, form, each, dtype) for each in cubes]
    for m, n, k in ((2, 1, 8), (1, 4, 2)):
        sizes = [{"m": m * s, "n": n * s, "k": k * s} for s in (128, 256, 512, 1024)]
        yield [_product(group, plain, each, dtype) for each in sizes]
    for depth in (32, 128):
        sizes = [{"m": s, "n": s, "k": depth} for s in (512, 1024, 2048, 8192)]
        yield [_product(group, plain, each, dtype) for each in sizes]
    sizes = [{"m": 64, "n": s, "k": s} for s in (512, 1024, 2048, 8192)]
    yield [_product(group, plain, each, dtype) for each in sizes]
    for form in ("bqd,bkd->bqk", "bqk,bkd->bqd"):
        sizes = [
            {"b": b, "q": s, "k": s, "d": 64} for b, s in ((8, 128), (8, 256), (8, 512), (64, 1024))
        ]
        yield [_product(group, form, each, dtype) for each in sizes]
    odd = [{"m": s + 1, "n": s + 1, "k": s + 1} for s in (256, 1024, 4096)]
    yield [_product("misaligned products", plain, each, dtype) for each in odd]


_IMAGES = ("NHWC", "HWIO", "NHWC")


def _convolve(stride: int, x: Any, filters: Any) -> Any:
    return jax.lax.conv_general_dilated(
        x, filters, (stride, stride), "SAME", dimension_numbers=_IMAGES
    )


def _convolve_back(argument: int, x: Any, filters: Any) -> Any:
    return jax.grad(lambda *both: (_convolve(1, *both) ** 2).sum(), argument)(x, filters)


def _convolutions() -> Iterator[list[Op]]:
    for name, function, width in (
        ("3x3", partial(_convolve, 1), 3),
        ("3x3 strided", partial(_convolve, 2), 3),
        ("1x1", partial(_convolve, 1), 1),
        ("3x3 by images", partial(_convolve_back, 0), 3),
        ("3x3 by filters", partial(_convolve_back, 1), 3),
    ):
        yield [
            Op(
                "convolutions",
                f"{name} {batch}x{size}x{size}x{channels}",
                function,
                (array(batch, size, size, channels), array(width, width, channels, channels)),
            )
            for batch, size, channels in ((4, 28, 32), (8, 28, 64), (32, 28, 128), (64, 56, 256))
        ]


def _scattered() -> Iterator[list[Op]]:
    sizes = (256, 512, 1024, 2048, 8192)
    yield [Op("scattered", f"transpose {n}", lambda x: x.T, (array(n, n),)) for n in sizes]
    yield [
        Op("scattered", f"transposed sum {n}", lambda x, y: x.T * 2.0 + y, (array(n, n),) * 2)
        for n in sizes
    ]
    yield [
        Op(
            "scattered",
            f"heads {b}x{s}",
            lambda x: x.transpose(0, 2, 1, 3),
            (array(b, s, 8, 64),),
        )
        for b, s in ((1, 512), (4, 512), (8, 1024), (32, 4096))
    ]
    counts = (2048, 8192, 32768, 524288)
    for name, function, donates in (
        ("gather of", _gather, False),
        ("bags of", _bags, False),
        ("scatter to", _scatter, True),
    ):
        yield [
            Op(
                "scattered",
                f"{name} {n}",
                function,
                (
                    array(n, 256),
                    # Indices like those of tokens: batch and time.
                    array(n // 256, 128, dtype=I32),
                    *([array(n // 256, 128, 256)] if donates else []),
                ),
                donates=donates,
            )
            for n in counts
        ]


def _gather(x: Any, i: Any) -> Any:
    return x[i]


def _bags(x: Any, i: Any) -> Any:
    return x[i].sum(1)


def _scatter(x: Any, i: Any, y: Any) -> Any:
    return x.at[i].add(y)


def _sorts() -> Iterator[list[Op]]:
    for width in (64, 1024, 16384):
        yield [
            Op("sorts", f"rows {n}x{width}", lambda x: jnp.sort(x, -1), (array(n, width),))
            for n in (16, 256, 4096)
        ]
    yield [
        Op("sorts", f"ranks of {n}", lambda x: jnp.argsort(x), (array(n),))
        for n in (2**14, 2**17, 2**20, 2**23)
    ]


def _collectives(devices: list[Any]) -> Iterator[list[Op]]:
    mesh = Mesh(devices, ("d",))
    count = len(devices)
    split, whole = _Spec("d"), _Spec()
    for name, function, out in (
        ("all_gather", lambda x: _lax.all_gather(x, "d", tiled=True), whole),
        ("all_reduce", lambda x: _lax.psum(x, "d"), whole),
        ("all_to_all", lambda x: _lax.all_to_all(x, "d", 1, 0, tiled=True), split),
        (
            "permute",
            lambda x: _lax.ppermute(x, "d", [(i, (i + 1) % count) for i in range(count)]),
            split,
        ),
    ):
        mapped = jax.shard_map(function, mesh=mesh, in_specs=split, out_specs=out, check_vma=False)
        yield [
            Op(
                "collectives",
                f"{name} {n}",
                mapped,
                (_Shape((count * count, n // count), F32, sharding=NamedSharding(mesh, split)),),
            )
            for n in (2**power * count for power in range(10, 27, 4))
        ]
