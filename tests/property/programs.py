"""hypothesis strategies for small programs, in the oracle's representation.

Every op has its rule as an attribute, so propagation through it needs no rule registry.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.oracle.graph import GROUP, Block, Op, Program, Value
from tests.oracle.mesh import Mesh
from tests.oracle.rule import OpShardingRule, identity_rule
from tests.oracle.sharding import TensorSharding
from tests.property.strategies import meshes, one_in, rules, shapes, shardings


@dataclass(frozen=True)
class Features:
    """What the programs may contain.

    Dead ops with priorities are not for the reference: it erases them, and dies when the turn of
    the priority comes.
    """

    max_ops: int = 6
    priorities: bool = False
    unreduced: bool = False
    groups: bool = False
    regions: bool = False
    other_meshes: bool = False
    dead_ops: bool = False


@dataclass
class Builder:
    """Draws one program."""

    draw: DrawFn
    features: Features
    meshes: dict[str, Mesh]
    shardings: dict[Value, TensorSharding] = field(default_factory=dict)

    def sharding(self, rank: int, priorities: bool = True) -> TensorSharding:
        names = list(self.meshes)
        name = "mesh" if not self.draw(one_in(8)) else self.draw(st.sampled_from(names))
        priorities = priorities and self.features.priorities
        return self.draw(
            shardings(self.meshes[name], rank, name, priorities, self.features.unreduced)
        )

    def annotate(self, values: Sequence[Value], priorities: bool = True) -> None:
        """Give all of `values` a sharding, or none of them."""
        if values and self.draw(one_in(3)):
            for value in values:
                self.shardings[value] = self.sharding(len(value.shape), priorities)

    def op(self, pool: Sequence[Value]) -> Op:
        """Draw an op on values of `pool`."""
        makers = [self.custom_call] * 4 + [self.add, self.tanh, self.transpose, self.constraint]
        makers += [self.broadcast, self.reshape]
        if self.features.regions:
            makers += [self.barrier, self.loop]
        return self.draw(st.sampled_from(makers))(pool)

    def value(self, pool: Sequence[Value]) -> Value:
        """Pick a value, more often a late one."""
        index = min(self.draw(st.integers(0, len(pool) - 1)) for _ in range(2))
        return pool[len(pool) - 1 - index]

    def finish(self, op: Op, can_die: bool = True) -> Op:
        op.is_pure = can_die and self.features.dead_ops and self.draw(st.booleans())
        self.annotate(op.results)
        return op

    def custom_call(self, pool: Sequence[Value]) -> Op:
        operands = [self.value(pool) for _ in range(self.draw(st.sampled_from((1, 1, 2, 2, 3))))]
        rule = self.draw(rules([value.shape for value in operands]))
        results = [Value(rule.shape(mapping)) for mapping in rule.results]
        return self.finish(Op("stablehlo.custom_call", operands, results, rule))

    def add(self, pool: Sequence[Value]) -> Op:
        left = self.value(pool)
        right = self.draw(st.sampled_from([v for v in pool if v.shape == left.shape]))
        return self.elementwise("stablehlo.add", [left, right])

    def tanh(self, pool: Sequence[Value]) -> Op:
        return self.elementwise("stablehlo.tanh", [self.value(pool)])

    def elementwise(self, name: str, operands: list[Value]) -> Op:
        shape = operands[0].shape
        rule = identity_rule(shape, len(operands))
        if self.draw(one_in(4)):
            # Any rule will do, as long as its tensors have these shapes.
            rule = self.draw(rules([shape] * len(operands), [shape]))
        op = Op(name, operands, [Value(shape)], rule)
        self.finish(op)
        op.is_pure = True
        return op

    def transpose(self, pool: Sequence[Value]) -> Op:
        value = self.value(pool)
        order = self.draw(st.permutations(range(len(value.shape))))
        operand = tuple((dim,) for dim in range(len(order)))
        rule = OpShardingRule(value.shape, (operand,), (tuple((dim,) for dim in order),))
        result = Value(tuple(value.shape[dim] for dim in order))
        op = Op("stablehlo.transpose", [value], [result], rule, details=f"dims = {list(order)}")
        self.finish(op)
        op.is_pure = True
        return op

    def reshape(self, pool: Sequence[Value]) -> Op:
        """Flatten a value."""
        value = self.value(pool)
        # Dims of size 1 have factors of their own, numbered last.
        order = sorted(range(len(value.shape)), key=lambda dim: value.shape[dim] == 1)
        sizes = tuple(value.shape[dim] for dim in order) or (1,)
        operand = tuple((order.index(dim),) for dim in range(len(order)))
        result = (tuple(f for f, size in enumerate(sizes) if size > 1) or (0,),)
        rule = OpShardingRule(sizes, (operand,), (result,))
        op = Op("stablehlo.reshape", [value], [Value((math.prod(value.shape),))], rule)
        self.finish(op)
        op.is_pure = True
        return op

    def broadcast(self, pool: Sequence[Value]) -> Op:
        """Add a major dim to a value."""
        value = self.value(pool)
        shape = (self.draw(st.sampled_from((2, 3, 4, 8))), *value.shape)
        result = tuple((dim,) for dim in range(len(shape)))
        rule = OpShardingRule(shape, (result[1:],), (result,))
        dims = list(range(1, len(shape)))
        name = "stablehlo.broadcast_in_dim"
        op = Op(name, [value], [Value(shape)], rule, details=f"dims = {dims}")
        self.finish(op)
        op.is_pure = True
        return op

    def constraint(self, pool: Sequence[Value]) -> Op:
        value = self.value(pool)
        result = Value(value.shape)
        self.shardings[result] = self.sharding(len(value.shape))
        rule = identity_rule(value.shape)
        return Op("sdy.sharding_constraint", [value], [result], rule)

    def barrier(self, pool: Sequence[Value]) -> Op:
        operands = [self.value(pool) for _ in range(self.draw(st.integers(1, 3)))]
        results = [Value(value.shape) for value in operands]
        op = Op("stablehlo.optimization_barrier", operands, results)
        self.annotate(results, priorities=False)
        return op

    def loop(self, pool: Sequence[Value]) -> Op:
        operands = [self.value(pool) for _ in range(self.draw(st.integers(1, 3)))]
        carried = [value.shape for value in operands]
        regions = [self.loop_condition(carried), self.loop_body(carried)]
        results = [Value(shape) for shape in carried]
        op = Op("stablehlo.while", operands, results, regions=regions)
        self.annotate(results, priorities=False)
        return op

    def loop_condition(self, carried: Sequence[tuple[int, ...]]) -> Block:
        arguments = [Value(shape) for shape in carried]
        test = Value((), element="i1")
        op = Op("stablehlo.custom_call", arguments[:1], [test])
        return Block(arguments, [op, Op("stablehlo.return", [test])])

    def loop_body(self, carried: Sequence[tuple[int, ...]]) -> Block:
        arguments = [Value(shape) for shape in carried]
        pool, ops = list(arguments), []
        for _ in range(self.draw(st.integers(0, 3))):
            op = self.draw(st.sampled_from([self.custom_call, self.add, self.tanh]))(pool)
            ops.append(op)
            pool += op.results
        returned = [
            self.draw(st.sampled_from([v for v in pool[::-1] if v.shape == shape]))
            for shape in carried
        ]
        ops.append(Op("stablehlo.return", returned))
        ops[-1:-1] = self.keeping_alive(ops)
        return Block(arguments, ops)

    def keeping_alive(self, ops: Sequence[Op]) -> list[Op]:
        """Use what would make an op die, unless dead ops are wanted."""
        if self.features.dead_ops:
            return []
        unused = [v for op in ops if op.is_pure for v in op.results[:1] if not v.uses]
        return [Op("stablehlo.custom_call", [value], [Value(())]) for value in unused]

    def group(self, pool: Sequence[Value], number: int, grouped: set[Value]) -> list[Op]:
        """Put some values of one shape in a group; at most the first keeps its sharding."""
        free = [v for v in pool if v not in grouped and not is_constraint(v)]
        if not free:
            return []
        shape = self.draw(st.sampled_from(free)).shape
        same = [v for v in free if v.shape == shape]
        members = self.draw(st.lists(st.sampled_from(same), min_size=1, max_size=3, unique=True))
        for member in members[1:]:
            owner = member.owner
            for value in owner.results if owner else [member]:
                self.shardings.pop(value, None)
        grouped.update(members)
        return [Op(GROUP, [member], group=number) for member in members]


def is_constraint(value: Value) -> bool:
    return value.owner is not None and value.owner.name == "sdy.sharding_constraint"


@st.composite
def programs(draw: DrawFn, features: Features = Features()) -> Program:
    """Draw a program of a few ops that share values."""
    all_meshes = {"mesh": draw(meshes())}
    if features.other_meshes and draw(one_in(3)):
        all_meshes["same"] = all_meshes["mesh"]
        all_meshes["empty"] = Mesh()
        all_meshes["maximal"] = Mesh((), (0,))
        all_meshes["other"] = draw(meshes())
    builder = Builder(draw, features, all_meshes)
    arguments = [Value(draw(shapes())) for _ in range(draw(st.integers(1, 3)))]
    for value in arguments:
        builder.annotate([value])

    pool, ops = list(arguments), []
    for _ in range(draw(st.integers(1, features.max_ops))):
        op = builder.op(pool)
        ops.append(op)
        pool += op.results
    if features.groups:
        grouped: set[Value] = set()
        for number in range(draw(st.integers(0, 2))):
            ops += builder.group(pool, number, grouped)
    ops.append(Op("func.return", [builder.value(pool) for _ in range(draw(st.integers(1, 3)))]))
    ops[-1:-1] = builder.keeping_alive(ops)
    result_shardings = [
        builder.sharding(len(value.shape)) if draw(one_in(3)) else None
        for value in ops[-1].operands
    ]
    return Program(all_meshes, arguments, ops, builder.shardings, result_shardings)


@st.composite
def single_ops(draw: DrawFn) -> Program:
    """Draw a program of one op with any rule, of which all tensors may have shardings."""
    builder = Builder(draw, Features(), {"mesh": draw(meshes())})
    rule = draw(rules())
    arguments = [Value(rule.shape(mapping)) for mapping in rule.operands]
    results = [Value(rule.shape(mapping)) for mapping in rule.results]
    for value in arguments:
        if not draw(one_in(3)):
            builder.shardings[value] = builder.sharding(len(value.shape))
    if draw(st.booleans()):
        for value in results:
            builder.shardings[value] = builder.sharding(len(value.shape))
    op = Op("stablehlo.custom_call", arguments, results, rule)
    return Program(
        builder.meshes,
        arguments,
        [op, Op("func.return", results)],
        builder.shardings,
        [None] * len(results),
    )
