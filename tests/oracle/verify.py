"""The invariants of meshes, shardings and rules.

Each function returns the names of those that are violated, in the order they are checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from . import axis
from .axis import AxisRef
from .mesh import Mesh
from .rule import OpShardingRule, TensorMapping
from .sharding import TensorSharding


def mesh_errors(mesh: Mesh) -> list[str]:
    errors = []
    names = [name for name, _ in mesh.axes]
    ids = list(mesh.device_ids)
    if any(size < 1 for _, size in mesh.axes):
        errors.append("axis-size")
    if any(device < 0 for device in ids):
        errors.append("device-id-negative")
    if not mesh.axes:
        if len(ids) > 1:
            errors.append("device-ids-without-axes")
        return errors
    if len(set(names)) < len(names):
        errors.append("axis-duplicate")
    if ids and len(ids) != mesh.num_devices:
        errors.append("device-ids-count")
    elif ids and sorted(ids) != list(range(mesh.num_devices)):
        errors.append("device-ids-not-a-permutation")
    elif ids and ids == sorted(ids):
        errors.append("device-ids-redundant")
    return errors


def sharding_errors(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> list[str]:
    if mesh.is_maximal:
        empty = not sharding.dims and not sharding.replicated and not sharding.unreduced
        return [] if empty else ["maximal-sharding-not-empty"]
    if len(sharding.dims) != len(shape):
        return ["rank-mismatch"]

    lists = [dim.axes for dim in sharding.dims] + [sharding.replicated, sharding.unreduced]
    refs = [ref for axes in lists for ref in axes]
    known = {name for name, _ in mesh.axes}
    if any(ref.name not in known for ref in refs):
        return ["axis-unknown"]

    errors = []
    if any(dim.priority is not None and dim.is_closed and not dim.axes for dim in sharding.dims):
        errors.append("priority-of-empty-closed-dim")
    if len(set(refs)) < len(refs):
        errors.append("axis-duplicate")
    for axes in lists:
        if any(axis.can_merge(a, b) for a, b in itertools.pairwise(axes)):
            errors.append("sub-axes-mergeable")
    for axes in (sharding.replicated, sharding.unreduced):
        if sorted(axes, key=axis.mesh_order(mesh)) != list(axes):
            errors.append("axes-not-in-mesh-order")
    errors += _sub_axis_errors(refs, mesh)
    return errors


def _sub_axis_errors(refs: Sequence[AxisRef], mesh: Mesh) -> list[str]:
    errors = []
    for position, ref in enumerate(refs):
        if ref.pre_size is not None and ref.sub_size is not None:
            full_size = mesh.axis_size(ref.name)
            if ref.pre_size < 1:
                errors.append("sub-axis-pre-size")
            elif ref.sub_size <= 1:
                errors.append("sub-axis-size")
            elif full_size % ref.end_in(mesh) != 0:
                errors.append("sub-axis-does-not-divide-axis")
            elif ref.sub_size == full_size:
                errors.append("sub-axis-is-full-axis")
        if any(axis.overlaps(ref, other) for other in refs[:position]):
            errors.append("axis-overlap")
    return errors


def rule_errors(
    rule: OpShardingRule,
    operand_shapes: Sequence[Sequence[int]],
    result_shapes: Sequence[Sequence[int]],
) -> list[str]:
    errors = []
    for mappings, shapes in ((rule.operands, operand_shapes), (rule.results, result_shapes)):
        if len(mappings) != len(shapes) or not mappings:
            errors.append("mapping-count")
            continue
        for mapping, shape in zip(mappings, shapes, strict=True):
            errors += _mapping_errors(rule, mapping, shape)

    used = {f for mapping in rule.tensors for factors in mapping for f in factors}
    if any(f not in used for f in range(len(rule.factor_sizes))):
        errors.append("factor-unused")
    special = [*rule.reduction, *rule.need_replication, *rule.permutation]
    for kind in (rule.reduction, rule.need_replication, rule.permutation, rule.blocked):
        if sorted(set(kind)) != list(kind):
            errors.append("special-factors-not-sorted")
        if any(not 0 <= f < len(rule.factor_sizes) for f in kind):
            errors.append("special-factor-unknown")
    if len(set(special)) < len(special):
        errors.append("special-factor-of-two-kinds")
    in_results = {f for mapping in rule.results for factors in mapping for f in factors}
    if in_results.intersection(rule.reduction):
        errors.append("reduction-factor-in-result")
    return errors


def _mapping_errors(
    rule: OpShardingRule, mapping: TensorMapping, shape: Sequence[int]
) -> list[str]:
    errors = []
    if len(mapping) != len(shape):
        errors.append("mapping-rank")
    seen: set[int] = set()
    for factors in mapping:
        if not factors:
            errors.append("dim-without-factor")
        for factor in factors:
            if not 0 <= factor < len(rule.factor_sizes):
                errors.append("factor-unknown")
            elif factor in seen:
                errors.append("factor-used-twice")
            elif len(factors) > 1 and rule.factor_sizes[factor] == 1:
                errors.append("factor-of-size-one-among-others")
            seen.add(factor)
    return errors
