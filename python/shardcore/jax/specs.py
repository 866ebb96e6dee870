"""Converts shardings to ``PartitionSpec``, and reports those that have none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from shardcore._core import AxisRef, TensorSharding
from shardcore.errors import Diagnostic
from shardcore.expected import expect
from shardcore.jax.mistakes import mistakes
from shardcore.jax.versions import needs

_KIND = re.compile(r"unreduced=(\w+)\{[^{}]*\}>")


def partition_spec(sharding: TensorSharding | None, name: str = "the value") -> Any:
    """Return ``sharding`` as a ``PartitionSpec`` without trailing ``None``, as JAX writes it.

    Open dims count as closed, since results have none. Without a sharding it is ``P()``.

    Raises:
        LoweringError: it has sub-axes, which a spec cannot name (``unsayable-sharding``), or is
            unreduced by a maximum or a minimum, which JAX can say since 0.11 (``jax-version``).
    """
    if sharding is not None:
        expect(sharding, TensorSharding)
    problems = unsayable(sharding, name)
    if problems:
        raise mistakes(*problems)
    return trimmed_spec(sharding)


def unsayable(sharding: TensorSharding | None, name: str) -> list[Diagnostic]:
    """Return one mistake for each sub-axis, which a ``PartitionSpec`` cannot name, and for a
    reduction that is not the sum.
    """
    if sharding is None:
        return []
    axes = [axis for dim in sharding.dims for axis in dim.axes]
    problems = [
        _problem(sharding, axis, name)
        for axis in (*axes, *sharding.replicated, *sharding.unreduced)
        if not axis.is_full
    ]
    if sharding.reduction_op != "sum":
        message = f"a PartitionSpec cannot say the {sharding.reduction_op} in {sharding} of {name}"
        problems.append(Diagnostic("unsayable-sharding", message, "reduce the value first"))
    return problems


def _problem(sharding: TensorSharding, axis: AxisRef, name: str) -> Diagnostic:
    """The mistake that the sharding of ``name`` has ``axis``, a sub-axis."""
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
    """Return the spec of a sharding whose axes are whole.

    Raises:
        LoweringError: JAX has no such spec in this version (``jax-version``).
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
    kind = reduction(sharding)
    options = {} if kind == "sum" else {"unreduced_kind": unreduced_kind(kind)}
    return build(*entries, unreduced={axis.name for axis in sharding.unreduced}, **options)


def reduction(sharding: TensorSharding) -> str:
    """What the terms along the unreduced axes of ``sharding`` are reduced by."""
    found = _KIND.search(str(sharding))
    return found[1] if found else "sum"


def implicit_axes(axes: Iterable[str], mesh: AbstractMesh | jax.sharding.Mesh) -> list[str]:
    """Those of ``axes`` that are not explicit in ``mesh``: JAX has arrays that are unreduced over
    explicit ones only.
    """
    types = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    return [axis for axis in axes if types.get(axis) is not AxisType.Explicit]


def unreduced_kind(name: str) -> Any:
    """Return JAX's ``UnreducedKind`` of this name.

    Raises:
        LoweringError: this JAX has sums only (``jax-version``).
    """
    kinds = getattr(jax.sharding, "UnreducedKind", None)
    if kinds is None:
        raise needs("0.11", f"PartitionSpec of arrays that are unreduced by {name}")
    return kinds[name]
