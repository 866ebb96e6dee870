"""Meshes, axis refs, shardings and rules print and parse as the oracle's do."""

from __future__ import annotations

import pickle

import pytest
import shardcore
from hypothesis import given

from tests.oracle import axis, text, verify
from tests.oracle.axis import AxisRef
from tests.oracle.rule import OpShardingRule
from tests.oracle.sharding import TensorSharding
from tests.property.choices import Choices, chosen
from tests.property.strategies import (
    make_any_sharding,
    make_axis_ref,
    make_mesh,
    make_rule,
    make_shape,
    make_sharding,
)

anything = chosen(lambda c: c)


def ours(ref: AxisRef) -> shardcore.AxisRef:
    return shardcore.AxisRef(ref.name, ref.pre_size, ref.sub_size)


def same_refs(mine: tuple[shardcore.AxisRef, ...], theirs: tuple[AxisRef, ...]) -> bool:
    return mine == tuple(map(ours, theirs))


def plain_text(value: object) -> str:
    """Drop the name of the attribute, which may stand in front."""
    printed = str(value)
    return printed[printed.index("<") :]


@given(anything)
def test_meshes(c: Choices) -> None:
    theirs = make_mesh(c, device_orders=True)
    mine = shardcore.Mesh(theirs.axes, theirs.device_ids or None)
    assert plain_text(mine) == str(theirs)
    assert shardcore.Mesh.parse(str(theirs)) == mine
    assert text.parse_mesh(str(mine)) == theirs
    assert pickle.loads(pickle.dumps(mine)) == mine
    assert tuple(mine.shape.items()) == theirs.axes
    assert mine.num_devices == theirs.num_devices
    for device, at in theirs.placements():
        assert mine.coordinates(device) == at
        assert mine.device_at(at) == device


@given(anything)
def test_axis_refs(c: Choices) -> None:
    mesh = make_mesh(c)
    first, second = make_axis_ref(c, mesh), make_axis_ref(c, mesh)
    mine, other = ours(first), ours(second)
    assert str(mine) == str(first)
    assert shardcore.AxisRef.parse(str(first)) == mine
    assert text.parse_axis_ref(str(mine)) == first
    assert mine.contains(other) == axis.contains(first, second)
    assert mine.overlaps(other) == axis.overlaps(first, second)
    assert mine.can_coexist(other) == axis.can_coexist(first, second)
    assert mine.size_in(shardcore.Mesh(mesh.axes)) == first.size_in(mesh)
    assert (mine == other) == (first == second)
    if first.name == second.name:
        by_place = axis.mesh_order(mesh)
        assert (mine < other) == (by_place(first) < by_place(second))


@given(anything)
def test_shardings(c: Choices) -> None:
    mesh, rank = make_mesh(c, device_orders=True), c.integer(0, 4)
    name = c.of(("mesh", mesh))
    theirs = make_sharding(c, mesh, rank, name, priorities=True, unreduced=True)
    mine = shardcore.TensorSharding.parse(str(theirs), shardcore.Mesh.parse(str(mesh)))
    assert plain_text(mine) == str(theirs)
    assert text.parse_sharding(str(mine)) == theirs
    assert pickle.loads(pickle.dumps(mine)) == mine
    assert mine.rank == rank
    assert mine.is_fully_replicated == theirs.is_fully_replicated
    assert same_refs(mine.replicated, theirs.replicated)
    assert same_refs(mine.unreduced, theirs.unreduced)
    for index, (my_dim, their_dim) in enumerate(zip(mine.dims, theirs.dims, strict=True)):
        assert str(my_dim) == str(their_dim)
        assert shardcore.DimSharding.parse(str(their_dim)) == my_dim
        assert text.parse_dim_sharding(str(my_dim)) == their_dim
        assert same_refs(my_dim.axes, their_dim.axes)
        assert my_dim.is_closed == their_dim.is_closed
        assert my_dim.priority == their_dim.priority
        assert mine.sharded_size(index) == their_dim.sharded_size(mesh)


def is_accepted(sharding: TensorSharding, mesh: shardcore.Mesh) -> bool:
    try:
        shardcore.TensorSharding.parse(str(sharding), mesh)
    except shardcore.VerificationError:
        return False
    return True


@given(anything)
def test_verification_of_shardings(c: Choices) -> None:
    mesh, shape = make_mesh(c), make_shape(c)
    sharding = make_any_sharding(c, mesh, len(shape))
    errors = verify.sharding_errors(sharding, mesh, shape)
    assert is_accepted(sharding, shardcore.Mesh(mesh.axes)) == (not errors), errors


@given(anything)
def test_rules(c: Choices) -> None:
    theirs = make_rule(c)
    mine = shardcore.OpShardingRule.parse(str(theirs))
    assert plain_text(mine) == str(theirs)
    assert text.parse_rule(str(mine)) == theirs
    assert pickle.loads(pickle.dumps(mine)) == mine
    assert mine.factor_sizes == theirs.factor_sizes
    assert mine.operand_mappings == theirs.operands
    assert mine.result_mappings == theirs.results
    assert mine.reduction == theirs.reduction
    assert mine.need_replication == theirs.need_replication
    assert mine.permutation == theirs.permutation
    assert mine.blocked_propagation == theirs.blocked
    pass_through = filter(theirs.is_pass_through, range(len(theirs.factor_sizes)))
    assert mine.pass_through == tuple(pass_through)
    mine.check_shapes(
        [theirs.shape(mapping) for mapping in theirs.operands],
        [theirs.shape(mapping) for mapping in theirs.results],
    )


def break_rule(c: Choices, rule: OpShardingRule) -> OpShardingRule:
    """Change one thing about a rule, after which it may or may not hold."""
    sizes = list(rule.factor_sizes)
    tensors = [[list(dim) for dim in mapping] for mapping in rule.tensors]
    special = [list(rule.reduction), list(rule.need_replication), list(rule.permutation)]
    dims = [dim for mapping in tensors for dim in mapping]
    change = c.integer(0, 2)
    if change == 0 and dims and sizes:
        c.of(dims).append(c.integer(0, len(sizes) - 1))
    elif change == 1 and sizes:
        c.of(special).insert(0, c.integer(0, len(sizes) - 1))
    else:
        sizes.append(c.of((1, 2)))
        if dims:
            c.of(dims).append(len(sizes) - 1)
    mappings = tuple(tuple(tuple(dim) for dim in mapping) for mapping in tensors)
    count = len(rule.operands)
    return OpShardingRule(tuple(sizes), mappings[:count], mappings[count:], *map(tuple, special))


@given(anything)
def test_verification_of_rules(c: Choices) -> None:
    rule = break_rule(c, make_rule(c))
    operands = [rule.shape(mapping) for mapping in rule.operands]
    results = [rule.shape(mapping) for mapping in rule.results]
    if not verify.rule_errors(rule, operands, results):
        shardcore.OpShardingRule.parse(str(rule)).check_shapes(operands, results)
        return
    with pytest.raises(shardcore.VerificationError):
        shardcore.OpShardingRule.parse(str(rule))
