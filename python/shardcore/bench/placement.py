"""The placement of activations: by sharding constraints, for a partitioner, or by explicit
collectives.

Both classes have the same methods, which the layers of :mod:`shardcore.bench.decoder` call. With
explicit collectives, code runs inside ``shard_map`` and sees the arrays of one device.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from shardcore.bench.kernels import Kernel, flash_attention, plain_attention, seen
from shardcore.bench.models import Layers
from shardcore.bench.parameters import shapes
from shardcore.bench.training import Training

Weights = dict[str, jax.Array]


def _attention(run: Training, kind: Layers, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    if not run.flash:
        return plain_attention(q, k, v, run.platform)
    kernel = Kernel(run.platform, seen(run.time, kind.windows), run.narrow_attention)
    return flash_attention(q, k, v, kernel).astype(jnp.bfloat16)


@dataclass(frozen=True)
class ByConstraints:
    """Arrays are global and have sharding constraints."""

    run: Training

    def rows(self, x: jax.Array) -> jax.Array:
        """Constrain activations of shape (batch, time, width or hidden units)."""
        spec = P(self.run.batch_axes, self.run.time_axis, "tensor")
        return jax.lax.with_sharding_constraint(x, spec)

    def heads(self, x: jax.Array) -> jax.Array:
        """Constrain activations of shape (batch, time, heads, head)."""
        return jax.lax.with_sharding_constraint(x, self._heads)

    def enter(self, y: jax.Array) -> jax.Array:
        """Prepare the operand of products whose results are sharded over ``tensor``."""
        return y

    def leave(self, y: jax.Array) -> jax.Array:
        """Complete the result of products whose operands are sharded over ``tensor``."""
        return y

    @property
    def parts(self) -> int:
        """The number of devices that a sequence is divided over."""
        return self.run.sizes.get("context", 1)

    def operand(self, y: jax.Array) -> jax.Array:
        """Place an operand of products, or of their gradients, that is scaled to a narrow type."""
        return y

    def attend(self, kind: Layers, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        """Attention; each device has its own batch, heads and queries."""

        def local(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
            return _attention(self.run, kind, q, *_whole_time(self.run, k, v))

        spec = self._heads
        return jax.shard_map(local, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)(q, k, v)

    def mix(
        self, place: int, route: Callable[[jax.Array, Weights], jax.Array], y: jax.Array, p: Weights
    ) -> jax.Array:
        """Run ``route``, a mixture of experts, on the tokens of each device with gathered
        weights."""
        run = self.run
        suffix = f".{place}" if place else ""
        known = shapes(run.model)
        specs = {name: P(*run.spec(name + suffix, known[name + suffix])[1:]) for name in p}
        tensor = run.sizes.get("tensor", 1) > 1

        def local(y: jax.Array, p: Weights) -> jax.Array:
            whole = {name: gather(w, specs[name], run.gathered(name)) for name, w in p.items()}
            found = route(y, whole)
            if not tensor:
                return found
            return jax.lax.psum_scatter(found, "tensor", scatter_dimension=2, tiled=True)

        rows = P(run.batch_axes, run.time_axis, None)
        out = P(run.batch_axes, run.time_axis, "tensor")
        return jax.shard_map(local, in_specs=(rows, specs), out_specs=out, check_vma=False)(y, p)

    @property
    def _heads(self) -> P:
        return P(self.run.batch_axes, self.run.time_axis, "tensor", None)


@dataclass(frozen=True)
class ByHand:
    """Arrays are those of one device."""

    run: Training

    def rows(self, x: jax.Array) -> jax.Array:
        """Return activations of shape (batch, time, width or hidden units) unchanged."""
        return x

    heads = rows
    parts = 1

    def enter(self, y: jax.Array) -> jax.Array:
        """Prepare the operand of products whose results are sharded over ``tensor``."""
        if self.run.sizes.get("tensor", 1) == 1:
            return y
        if self.run.sequence_parallel:
            return jax.lax.all_gather(y, "tensor", axis=1, tiled=True)
        return spread(y, ("tensor",))

    def leave(self, y: jax.Array) -> jax.Array:
        """Complete the result of products whose operands are sharded over ``tensor``."""
        if self.run.sizes.get("tensor", 1) == 1:
            return y
        if self.run.sequence_parallel:
            return jax.lax.psum_scatter(y, "tensor", scatter_dimension=1, tiled=True)
        return summed(y, ("tensor",))

    def operand(self, y: jax.Array) -> jax.Array:
        """Return an operand of a narrow type unchanged: it is gathered before it is scaled."""
        return y

    def attend(self, kind: Layers, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        """Attention over the keys and values of all devices along ``context``."""
        return _attention(self.run, kind, q, *_whole_time(self.run, k, v))

    def mix(
        self, place: int, route: Callable[[jax.Array, Weights], jax.Array], y: jax.Array, p: Weights
    ) -> jax.Array:
        """Run ``route``, a mixture of experts."""
        return route(y, p)


def entries(spec: P) -> list[tuple[str, ...]]:
    """The axes that shard each dim under ``spec``."""
    return [
        () if entry is None else entry if isinstance(entry, tuple) else (entry,) for entry in spec
    ]


def gather(weight: jax.Array, spec: P, axes: tuple[str, ...]) -> jax.Array:
    """Gather ``weight`` along ``axes``; along axes that do not shard it, sum its gradient."""
    for dim, found in enumerate(entries(spec)):
        if axes and found == axes:
            return jax.lax.all_gather(weight, axes, axis=dim, tiled=True)
    return spread(weight, axes) if axes else weight


def _whole_time(run: Training, k: jax.Array, v: jax.Array) -> tuple[jax.Array, jax.Array]:
    axis = run.time_axis
    if axis is None:
        return k, v
    whole = functools.partial(jax.lax.all_gather, axis_name=axis, axis=1, tiled=True)
    return whole(k), whole(v)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def spread(x: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """``x``, which is equal along ``axes``; its gradient is summed along them."""
    return x


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def summed(x: jax.Array, axes: tuple[str, ...]) -> jax.Array:
    """The sum of ``x`` along ``axes``; its gradient is equal along them."""
    return jax.lax.psum(x, axes)


def _same(x: jax.Array, axes: tuple[str, ...]) -> tuple[jax.Array, None]:
    return x, None


def _sum(x: jax.Array, axes: tuple[str, ...]) -> tuple[jax.Array, None]:
    return jax.lax.psum(x, axes), None


def _spread_backward(axes: tuple[str, ...], _: None, gradient: jax.Array) -> tuple[Any]:
    return (jax.lax.psum(gradient, axes),)


def _summed_backward(axes: tuple[str, ...], _: None, gradient: jax.Array) -> tuple[Any]:
    return (gradient,)


spread.defvjp(_same, _spread_backward)
summed.defvjp(_sum, _summed_backward)
