"""Converts shardings to ``PartitionSpec``, and reports those that have none."""

from __future__ import annotations

from typing import Any

from jax.sharding import PartitionSpec

from shardcore._core import AxisRef, TensorSharding
from shardcore.errors import Diagnostic
from shardcore.expected import expect
from shardcore.jax.mistakes import mistakes


def partition_spec(sharding: TensorSharding | None, name: str = "the value") -> Any:
    """Return ``sharding`` as a ``PartitionSpec`` without trailing ``None``, as JAX writes it.

    Open dims count as closed, since results have none. Without a sharding it is ``P()``.

    Raises:
        LoweringError: it has sub-axes, which a spec cannot name (``unsayable-sharding``).
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
    """Return the spec of a sharding whose axes are whole."""
    build: Any = PartitionSpec
    if sharding is None:
        return build()
    entries: list[str | tuple[str, ...] | None] = []
    for dim in sharding.dims:
        names = tuple(axis.name for axis in dim.axes)
        entries.append(names[0] if len(names) == 1 else names or None)
    while entries and entries[-1] is None:
        entries.pop()
    if sharding.unreduced:
        return build(*entries, unreduced={axis.name for axis in sharding.unreduced})
    return build(*entries)
