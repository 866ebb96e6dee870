"""Projection: from dim shardings to factor shardings and back.

With the rule `([ij])->([i, j]) {i=2, j=4}` over the mesh <"x"=4, "y"=2>, the operand
[{"x", "y"}] projects to i: "x":(1)2 and j: "x":(2)2, "y".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import axis
from .axis import AxisRef
from .mesh import Mesh
from .rule import OpShardingRule, TensorMapping
from .sharding import DimSharding, TensorSharding


@dataclass
class FactorSharding:
    """The axes along which one tensor shards one factor.

    `overflow` are the axes that follow in the dim but do not divide the unsharded part of
    the factor. They are kept to restore the dim, and block the factors minor to this one.
    """

    axes: list[AxisRef] = field(default_factory=list)
    is_closed: bool = False
    is_minor_most: bool = False
    overflow: list[AxisRef] = field(default_factory=list)


@dataclass
class TensorFactorShardings:
    """One row of the tensor-by-factor table, and the axes that shard no factor."""

    factors: dict[int, FactorSharding] = field(default_factory=dict)
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()

    def expand(self, factor: int, axes: Sequence[AxisRef]) -> bool:
        """Shard `factor` along `axes` if they extend what it has; tell whether they did."""
        sharding = self.factors.get(factor)
        if sharding is None or not axis.is_strict_list_prefix(sharding.axes, axes):
            return False
        sharding.axes = list(axes)
        return True


@dataclass
class Projection:
    """The tensor-by-factor table of one op."""

    operands: list[TensorFactorShardings]
    results: list[TensorFactorShardings]

    @property
    def tensors(self) -> list[TensorFactorShardings]:
        return self.operands + self.results


def project(
    rule: OpShardingRule,
    operands: Sequence[TensorSharding | None],
    results: Sequence[TensorSharding | None],
    mesh: Mesh,
) -> Projection:
    """Project every tensor of an op; a missing sharding is fully open."""

    def rows(
        mappings: Sequence[TensorMapping], shardings: Sequence[TensorSharding | None]
    ) -> list[TensorFactorShardings]:
        pairs = zip(mappings, shardings, strict=True)
        return [project_tensor(mapping, s, rule.factor_sizes, mesh) for mapping, s in pairs]

    return Projection(rows(rule.operands, operands), rows(rule.results, results))


def project_tensor(
    mapping: TensorMapping,
    sharding: TensorSharding | None,
    factor_sizes: Sequence[int],
    mesh: Mesh,
) -> TensorFactorShardings:
    if sharding is None:
        sharding = TensorSharding("", (DimSharding(),) * len(mapping))
    row = TensorFactorShardings({}, sharding.replicated, sharding.unreduced)
    for factors, dim in zip(mapping, sharding.dims, strict=True):
        row.factors.update(_project_dim(factors, dim, factor_sizes, mesh))
    return row


def _project_dim(
    factors: Sequence[int], dim: DimSharding, factor_sizes: Sequence[int], mesh: Mesh
) -> dict[int, FactorSharding]:
    """Assign the axes of a dim to its factors, major to minor."""
    axes = list(dim.axes)  # the axes that are not assigned yet
    row: dict[int, FactorSharding] = {}
    for factor in factors:
        is_minor_most = factor == factors[-1]
        row[factor] = sharding = FactorSharding([], dim.is_closed, is_minor_most)
        if is_minor_most:
            # The last factor takes all remaining axes, also those that do not divide it: the
            # dim is then padded.
            for ref in axes:
                axis.append_or_merge(sharding.axes, ref, mesh)
            break
        size_left = _take(factor_sizes[factor], axes, sharding.axes, mesh)
        if size_left > 1 and axes:
            for ref in axes:
                axis.append_or_merge(sharding.overflow, ref, mesh)
            # Factors minor to an overflow cannot be sharded: the next one is closed, and
            # the row does not have the others.
            after = factors[factors.index(factor) + 1]
            row[after] = FactorSharding([], True, after == factors[-1])
            break
    return row


def _take(size: int, axes: list[AxisRef], taken: list[AxisRef], mesh: Mesh) -> int:
    """Move axes that divide `size` from the front of `axes` to `taken`.

    Splits an axis of which only a major part divides. Returns the size left unsharded.
    """
    while axes:
        axis_size = axes[0].size_in(mesh)
        part = math.gcd(size, axis_size)
        if part == axis_size:
            taken.append(axes.pop(0))
        elif part > 1:
            major, axes[0] = axis.split(axes[0], part, mesh)
            taken.append(major)
        else:
            break
        size //= part
    return size


def unproject_tensor(
    mapping: TensorMapping,
    row: TensorFactorShardings,
    factor_sizes: Sequence[int],
    mesh_name: str,
    mesh: Mesh,
) -> TensorSharding:
    """Combine the factor shardings of one tensor to dim shardings.

    A dim ends at the first factor that has overflow axes or is not fully sharded: the axes
    of its minor factors would need a strided view, and are left out.
    """
    dims = []
    for factors in mapping:
        axes: list[AxisRef] = []
        is_closed = False
        for factor in factors:
            sharding = row.factors[factor]
            is_closed = is_closed or sharding.is_closed
            _extend(axes, sharding.axes, mesh)
            _extend(axes, sharding.overflow, mesh)
            if sharding.overflow:
                break
            if axis.total_size(sharding.axes, mesh) < factor_sizes[factor]:
                break
        dims.append(DimSharding(tuple(axes), is_closed))
    return TensorSharding(mesh_name, tuple(dims), row.replicated, row.unreduced)


def _extend(axes: list[AxisRef], more: Sequence[AxisRef], mesh: Mesh) -> None:
    """Append `more`, of which the first may continue the last of `axes`."""
    if more:
        axis.append_or_merge(axes, more[0], mesh)
        axes.extend(more[1:])
