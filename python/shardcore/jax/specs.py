"""Converts shardings to ``PartitionSpec``, and reports those that no spec can say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from shardcore._core import AxisRef, TensorSharding
from shardcore.errors import Diagnostic
from shardcore.expected import expect
from shardcore.jax.mistakes import mistakes
from shardcore.jax.versions import needs


def partition_spec(sharding: TensorSharding | None, name: str = "the value") -> Any:
    """Return ``sharding`` as a ``PartitionSpec`` without trailing ``None``, as JAX writes it.

    Open dims count as closed, as JAX arrays have no open dims. Without a sharding it is ``P()``.

    Raises:
        LoweringError: it has sub-axes, which a spec cannot name (``unsayable-sharding``), or is
            unreduced by a maximum or a minimum, which needs JAX 0.11 (``jax-version``).
    """
    if sharding is not None:
        expect(sharding, TensorSharding)
    problems = unsayable(sharding, name)
    if problems:
        raise mistakes(*problems)
    return trimmed_spec(sharding)


def unsayable(sharding: TensorSharding | None, name: str) -> list[Diagnostic]:
    """Return one diagnostic for each sub-axis: a ``PartitionSpec`` cannot name these."""
    if sharding is None:
        return []
    axes = [axis for dim in sharding.dims for axis in dim.axes]
    return [
        _problem(sharding, axis, name)
        for axis in (*axes, *sharding.replicated, *sharding.unreduced)
        if not axis.is_full
    ]


def _problem(sharding: TensorSharding, axis: AxisRef, name: str) -> Diagnostic:
    """The diagnostic that the sharding of ``name`` has the sub-axis ``axis``."""
    hint = "split the axis in the mesh"
    if sharding.mesh is not None and axis.size is not None and axis.pre_size is not None:
        whole = sharding.mesh.axis_size(axis.name)
        sizes = (axis.pre_size, axis.size, whole // (axis.pre_size * axis.size))
        parts = " and ".join(str(size) for size in sizes if size > 1)
        hint = f'split axis "{axis.name}"={whole} of the mesh into axes of {parts}'
    return Diagnostic(
        "unsayable-sharding",
        f"a PartitionSpec cannot say {axis}, a part of an axis, in {sharding} of {name}",
        hint,
    )


def trimmed_spec(sharding: TensorSharding | None) -> Any:
    """Return the spec of a sharding without sub-axes, without trailing ``None``.

    Raises:
        LoweringError: this version of JAX has no such spec (``jax-version``).
    """
    build: Any = PartitionSpec
    if sharding is None:
        return build()
    entries: list[str | tuple[str, ...] | None] = []
    for dim in sharding.dims:
        names = tuple(axis.name for axis in dim.axes)
        entries.append(names[0] if len(names) == 1 else names or None)
    while entries and entries[-1] is None:
        entries.pop()
    if not sharding.unreduced:
        return build(*entries)
    kind = sharding.reduction_op
    options = {} if kind == "sum" else {"unreduced_kind": unreduced_kind(kind)}
    return build(*entries, unreduced={axis.name for axis in sharding.unreduced}, **options)


def implicit_axes(axes: Iterable[str], mesh: AbstractMesh | jax.sharding.Mesh) -> list[str]:
    """The names in ``axes`` whose axis is not explicit in ``mesh``: JAX arrays can be unreduced
    over explicit axes only.
    """
    types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    return [axis for axis in axes if types.get(axis) is not AxisType.Explicit]


def unreduced_kind(name: str) -> Any:
    """Return JAX's ``UnreducedKind`` of this name.

    Raises:
        LoweringError: this version of JAX has sums only (``jax-version``).
    """
    kinds = getattr(jax.sharding, "UnreducedKind", None)
    if kinds is None:
        raise needs("0.11", f"PartitionSpec of arrays that are unreduced by {name}")
    return kinds[name]
