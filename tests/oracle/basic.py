"""Basic factor propagation: along each factor, the axes that conflict with no tensor."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence

from . import axis
from .axis import AxisRef
from .mesh import Mesh
from .projection import FactorSharding, Projection, TensorFactorShardings


class Direction(enum.IntFlag):
    """The directions in which shardings propagate through an op: forward, backward."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3


# The direction of propagation along a factor.
DirectionOf = Callable[[int], Direction]


def propagate_basic(
    projection: Projection,
    direction_of: DirectionOf,
    factor_sizes: Sequence[int],
    mesh: Mesh,
    conservative: bool,
) -> set[int]:
    """Propagate along every factor; return the indices of the tensors it sharded further."""
    updated = set()
    for factor, factor_size in enumerate(factor_sizes):
        axes = truncate_conflicts(
            compatible_major_axes(projection, factor, direction_of(factor)),
            lambda ref, size_before, factor=factor, factor_size=factor_size: (
                _prefix_without_conflict(ref, projection, factor, size_before, factor_size, mesh)
            ),
            mesh,
            conservative,
        )
        for index, row in enumerate(projection.tensors):
            if row.expand(factor, axes):
                updated.add(index)
    return updated


def compatible_major_axes(
    projection: Projection, factor: int, direction: Direction
) -> list[AxisRef]:
    """Return the longest list of axes that is compatible with the axes of all tensors.

    Conflicts with other factors and with replicated axes are ignored here. Only the
    tensors that `direction` propagates from may make the list longer.
    """
    if direction == Direction.NONE:
        return []
    rows = [(row, Direction.FORWARD) for row in projection.operands]
    rows += [(row, Direction.BACKWARD) for row in projection.results]
    if direction == Direction.BACKWARD:
        rows = rows[len(projection.operands) :] + rows[: len(projection.operands)]
    agreed: list[AxisRef] = []
    can_expand = True
    for row, source in rows:
        can_expand = can_expand and source in direction
        if factor in row.factors:
            agreed, can_expand = _agree(agreed, row.factors[factor].axes, can_expand)
    return agreed


def _agree(
    old: Sequence[AxisRef], new: Sequence[AxisRef], can_expand: bool
) -> tuple[list[AxisRef], bool]:
    """Return the prefix that `old` and `new` agree on, and whether it may be extended."""
    agreed: list[AxisRef] = []
    for at, (left, right) in enumerate(zip(old, new, strict=False)):
        if left == right:
            agreed.append(left)
        elif axis.is_prefix(right, left):
            # If `new` ends here it may be extended by the remainder of `left`.
            if len(new) > at + 1:
                return [*agreed, right], False
            agreed.append(left)
        elif axis.is_prefix(left, right):
            if len(old) > at + 1 or not can_expand:
                return [*agreed, left], False
            agreed.append(right)
        else:
            return agreed, False
    agreed += old[len(new) :]
    if can_expand:
        agreed += new[len(old) :]
    return agreed, can_expand


def truncate_conflicts(
    axes: Sequence[AxisRef],
    longest_prefix: Callable[[AxisRef, int], AxisRef | None],
    mesh: Mesh,
    conservative: bool,
) -> list[AxisRef]:
    """Keep axes up to the first conflict.

    `longest_prefix` gets an axis and the product of the sizes before it. Conservative
    propagation does not split axes into sub-axes.
    """
    result: list[AxisRef] = []
    for ref in axes:
        prefix = longest_prefix(ref, axis.total_size(result, mesh))
        if prefix is None or (conservative and not prefix.is_full):
            break
        result.append(prefix)
        if prefix != ref:
            break
    return result


def _prefix_without_conflict(
    ref: AxisRef,
    projection: Projection,
    factor: int,
    size_before: int,
    factor_size: int,
    mesh: Mesh,
) -> AxisRef | None:
    """Return the longest prefix of `ref` that can shard `factor` in every tensor."""
    prefix: AxisRef | None = ref
    for row in projection.tensors:
        if prefix is not None:
            prefix = prefix_free_of_other_factors(prefix, row, factor)
        if prefix is not None and factor in row.factors:
            prefix = prefix_fitting_factor(prefix, row, factor, size_before, factor_size, mesh)
    return prefix


def prefix_free_of_other_factors(
    ref: AxisRef, row: TensorFactorShardings, factor: int
) -> AxisRef | None:
    prefix: AxisRef | None = ref
    for other in observed_factor_order(row):
        if other != factor and prefix is not None:
            taken = row.factors[other].overflow + row.factors[other].axes
            prefix = axis.prefix_without_overlaps(prefix, taken)
    return prefix


def observed_factor_order(row: TensorFactorShardings) -> list[int]:
    """Return the tensor's factors in the order in which the reference iterates over them.

    The order is observable if a sub-axis cannot coexist with the axes of one factor, but
    a prefix of it, shortened by another factor, can. The reference stores a row in a hash
    table (of at least 64 buckets, which is enough for 47 factors), in which factor f has
    bucket 37·f modulo the size.
    """
    return sorted(row.factors, key=lambda factor: 37 * factor % 64)


def prefix_fitting_factor(
    ref: AxisRef,
    row: TensorFactorShardings,
    factor: int,
    size_before: int,
    factor_size: int,
    mesh: Mesh,
) -> AxisRef | None:
    """Return the longest prefix of `ref` that can shard `factor` of the tensor."""
    sharding = row.factors[factor]
    prefix = axis.prefix_without_overlaps(ref, [*row.replicated, *row.unreduced])
    if prefix is None:
        return None
    if any(axis.contains(own, prefix) for own in sharding.axes):
        return prefix
    if not sharding.is_closed and not sharding.overflow:
        if sharding.is_minor_most:
            return prefix
        part = _dividing_part(prefix, size_before, factor_size, mesh)
        if part is not None:
            return part
    return _own_last_axis(sharding, prefix)


def _dividing_part(ref: AxisRef, size_before: int, factor_size: int, mesh: Mesh) -> AxisRef | None:
    """Return the major part of `ref` whose size divides the unsharded part of a factor."""
    assert factor_size % size_before == 0, "all that came before divides it"
    size = ref.size_in(mesh)
    part = math.gcd(factor_size // size_before, size)
    if part == size:
        return ref
    return AxisRef(ref.name, ref.start, part) if part > 1 else None


def _own_last_axis(sharding: FactorSharding, ref: AxisRef) -> AxisRef | None:
    """Return the last axis of the factor's sharding, if `ref` only extends it.

    All axes before are equal, so the factor keeps its present sharding.
    """
    if sharding.axes and axis.is_prefix(sharding.axes[-1], ref):
        return sharding.axes[-1]
    return None
