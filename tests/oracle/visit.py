"""One visit of one op: propagation among the shardings of its tensors."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from .aggressive import propagate_aggressive
from .basic import Direction, DirectionOf, propagate_basic
from .mesh import Mesh
from .projection import project, unproject_tensor
from .rule import OpShardingRule
from .sharding import TensorSharding, common_mesh_name


class Strategy(enum.Enum):
    """How conflicts between factors are resolved."""

    BASIC = "basic"
    AGGRESSIVE = "aggressive"


@dataclass(frozen=True)
class SweepOptions:
    """Options that are the same for all visits of one sweep over a program."""

    meshes: dict[str, Mesh]
    strategy: Strategy = Strategy.BASIC
    conservative: bool = False


def both_ways(_factor: int) -> Direction:
    return Direction.BOTH


def visit(
    rule: OpShardingRule,
    operands: Sequence[TensorSharding | None],
    results: Sequence[TensorSharding | None],
    options: SweepOptions,
    direction_of: DirectionOf = both_ways,
    is_elementwise: bool = False,
) -> list[tuple[int, TensorSharding]]:
    """Return the updates, as (index of the tensor, its new sharding), operands first.

    All are computed from the shardings at the start of the visit. Nothing propagates among
    tensors over different meshes, or over a maximal mesh.
    """
    mesh_name = common_mesh_name([*operands, *results], options.meshes)
    if mesh_name is None or options.meshes[mesh_name].is_maximal:
        return []
    mesh = options.meshes[mesh_name]
    projection = project(rule, operands, results, mesh)

    def direction_along(factor: int) -> Direction:
        return Direction.NONE if factor in rule.blocked else direction_of(factor)

    if options.strategy is Strategy.BASIC:
        changed = propagate_basic(
            projection, direction_along, rule.factor_sizes, mesh, options.conservative
        )
    else:
        changed = propagate_aggressive(
            projection,
            direction_along,
            rule.factor_sizes,
            mesh,
            options.conservative,
            is_elementwise,
        )

    updates = []
    for index in sorted(changed):
        old = [*operands, *results][index]
        new = unproject_tensor(
            rule.tensors[index], projection.tensors[index], rule.factor_sizes, mesh_name, mesh
        )
        if new != old and not (old is None and new.has_no_axes):
            updates.append((index, new))
    return updates
