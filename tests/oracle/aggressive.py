"""Aggressive factor propagation: conflicts between factors are settled by preference."""

from __future__ import annotations

from collections.abc import Sequence

from . import axis
from .axis import AxisRef
from .basic import (
    DirectionOf,
    compatible_major_axes,
    prefix_fitting_factor,
    prefix_free_of_other_factors,
    truncate_conflicts,
)
from .mesh import Mesh
from .projection import Projection, TensorFactorShardings


def propagate_aggressive(
    projection: Projection,
    direction_of: DirectionOf,
    factor_sizes: Sequence[int],
    mesh: Mesh,
    conservative: bool,
    is_elementwise: bool,
) -> set[int]:
    """Propagate along the factors in order of preference, tensor by tensor.

    Results go first, then operands. Returns the indices of the tensors sharded further.
    """
    wanted = [
        compatible_major_axes(projection, factor, direction_of(factor))
        for factor in range(len(factor_sizes))
    ]
    if not any(wanted):
        return set()
    preferred = _by_preference(projection, wanted, factor_sizes, mesh, is_elementwise)

    num_operands = len(projection.operands)
    tensors = list(enumerate(projection.tensors))
    updated = set()
    for index, row in tensors[num_operands:] + tensors[:num_operands]:
        for factor in preferred:
            if factor not in row.factors:
                continue
            axes = _fitting_axes(wanted[factor], row, factor, factor_sizes, mesh, conservative)
            if is_elementwise and index < num_operands:
                axes = _no_further_than_results(axes, factor, projection.results)
            if axes and row.expand(factor, axes):
                updated.add(index)
    return updated


def _by_preference(
    projection: Projection,
    wanted: Sequence[Sequence[AxisRef]],
    factor_sizes: Sequence[int],
    mesh: Mesh,
    is_elementwise: bool,
) -> list[int]:
    """Sort factors by their source: the largest tensor sharded along the wanted axes.

    The largest source comes first; through elementwise ops then the most sharded factor;
    then the first source among the tensors, then the first factor.
    """

    def key(factor: int) -> tuple[int, int, int, int]:
        size, index = _source(projection, wanted[factor], factor, factor_sizes)
        shards = axis.total_size(wanted[factor], mesh) if is_elementwise else 0
        return (-size, -shards, index, factor)

    return sorted(range(len(factor_sizes)), key=key)


def _source(
    projection: Projection, wanted: Sequence[AxisRef], factor: int, factor_sizes: Sequence[int]
) -> tuple[int, int]:
    """Return (size, index) of the largest tensor whose axes start with the wanted ones."""
    best = (-1, -1)
    for index, row in enumerate(projection.tensors):
        if wanted and factor in row.factors:
            size = 1
            for other in row.factors:
                size *= factor_sizes[other]
            if axis.is_list_prefix(wanted, row.factors[factor].axes) and size > best[0]:
                best = (size, index)
    return best


def _fitting_axes(
    wanted: Sequence[AxisRef],
    row: TensorFactorShardings,
    factor: int,
    factor_sizes: Sequence[int],
    mesh: Mesh,
    conservative: bool,
) -> list[AxisRef]:
    """Return how much of the wanted axes this tensor can take along `factor`."""
    axes = truncate_conflicts(
        wanted,
        lambda ref, size_before: prefix_fitting_factor(
            ref, row, factor, size_before, factor_sizes[factor], mesh
        ),
        mesh,
        conservative,
    )
    if not axis.is_strict_list_prefix(row.factors[factor].axes, axes):
        return []
    return truncate_conflicts(
        axes,
        lambda ref, _: prefix_free_of_other_factors(ref, row, factor),
        mesh,
        conservative,
    )


def _no_further_than_results(
    axes: list[AxisRef], factor: int, results: Sequence[TensorFactorShardings]
) -> list[AxisRef]:
    """Truncate `axes` to the axes that a result has along `factor`.

    Between operands of an elementwise op only axes that the result has too are
    propagated: with others the operand would have to be resharded.
    """
    for row in results:
        if factor in row.factors and axis.is_strict_list_prefix(row.factors[factor].axes, axes):
            axes = row.factors[factor].axes
    return axes
