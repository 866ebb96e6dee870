"""Random small programs, in the oracle's representation.

Every op has its rule as an attribute, so propagation through it needs no rule registry.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hypothesis.strategies import SearchStrategy

from tests.oracle.axis import AxisRef
from tests.oracle.graph import BARRIER, GROUP, Block, Op, Program, Value
from tests.oracle.mesh import Mesh
from tests.oracle.rule import OpShardingRule, identity_rule
from tests.oracle.sharding import DimSharding, TensorSharding
from tests.property.choices import Choices, chosen
from tests.property.strategies import (
    make_axis_list,
    make_mesh,
    make_rule,
    make_shape,
    make_sharding,
)


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
    """Makes one program."""

    c: Choices
    features: Features
    meshes: dict[str, Mesh]
    shardings: dict[Value, TensorSharding] = field(default_factory=dict)
    models: list[list[AxisRef]] = field(default_factory=list)
    index: Value = field(default_factory=lambda: Value((), element="i32"))

    def __post_init__(self) -> None:
        self.models = [make_axis_list(self.c, self.meshes["mesh"]) for _ in range(2)]

    def sharding(self, rank: int, priorities: bool = True) -> TensorSharding:
        name = self.c.of(list(self.meshes)) if self.c.one_in(8) else "mesh"
        return make_sharding(
            self.c,
            self.meshes[name],
            rank,
            name,
            priorities=priorities and self.features.priorities,
            unreduced=self.features.unreduced,
            models=self.models if self.meshes[name] == self.meshes["mesh"] else (),
        )

    def annotate(self, values: Sequence[Value], priorities: bool = True) -> None:
        """Give all of `values` a sharding, or none of them."""
        if values and self.c.one_in(3):
            for value in values:
                self.shardings[value] = self.sharding(len(value.shape), priorities)

    def value(self, pool: Sequence[Value]) -> Value:
        """Pick a value, more often a late one or one with many uses."""
        shared = [v for v in pool if len(v.uses) > 1]
        if shared and self.c.one_in(3):
            return shared[0]
        return pool[-1 - min(self.c.integer(0, len(pool) - 1) for _ in range(2))]

    def op(self, pool: Sequence[Value]) -> Op:
        """Make an op on values of `pool`."""
        makers = [self.custom_call] * 4
        makers += [self.add, self.tanh, self.transpose, self.constraint]
        makers += [self.broadcast, self.reshape, self.slice, self.barrier]
        if self.features.regions:
            makers += [self.optimization_barrier, self.loop, self.loop, self.case]
        return self.c.of(makers)(pool)

    def custom_call(self, pool: Sequence[Value]) -> Op:
        operands = [self.value(pool) for _ in range(self.c.of((1, 1, 2, 2, 3)))]
        rule = make_rule(self.c, [value.shape for value in operands])
        results = [Value(rule.shape(mapping)) for mapping in rule.results]
        self.annotate(results)
        is_pure = self.features.dead_ops and self.c.one_in(2)
        return Op("stablehlo.custom_call", operands, results, rule, is_pure)

    def pure_op(
        self,
        name: str,
        operands: list[Value],
        shape: tuple[int, ...],
        rule: OpShardingRule,
        details: str = "",
    ) -> Op:
        result = Value(shape)
        self.annotate([result])
        return Op(f"stablehlo.{name}", operands, [result], rule, is_pure=True, details=details)

    def add(self, pool: Sequence[Value]) -> Op:
        left = self.value(pool)
        right = self.c.of([v for v in pool if v.shape == left.shape])
        return self.elementwise("add", [left, right])

    def tanh(self, pool: Sequence[Value]) -> Op:
        return self.elementwise("tanh", [self.value(pool)])

    def elementwise(self, name: str, operands: list[Value]) -> Op:
        shape = operands[0].shape
        rule = identity_rule(shape, len(operands))
        if self.c.one_in(4):
            # Any rule will do, as long as its tensors have these shapes.
            rule = make_rule(self.c, [shape] * len(operands), [shape])
        return self.pure_op(name, operands, shape, rule)

    def transpose(self, pool: Sequence[Value]) -> Op:
        value = self.value(pool)
        order = self.c.permutation(range(len(value.shape)))
        operand = tuple((dim,) for dim in range(len(order)))
        rule = OpShardingRule(value.shape, (operand,), (tuple((dim,) for dim in order),))
        shape = tuple(value.shape[dim] for dim in order)
        return self.pure_op("transpose", [value], shape, rule, f"dims = {order}")

    def reshape(self, pool: Sequence[Value]) -> Op:
        """Flatten a value."""
        value = self.value(pool)
        # Dims of size 1 have factors of their own, numbered last.
        order = sorted(range(len(value.shape)), key=lambda dim: value.shape[dim] == 1)
        sizes = tuple(value.shape[dim] for dim in order) or (1,)
        operand = tuple((order.index(dim),) for dim in range(len(order)))
        result = (tuple(f for f, size in enumerate(sizes) if size > 1) or (0,),)
        rule = OpShardingRule(sizes, (operand,), (result,))
        return self.pure_op("reshape", [value], (math.prod(value.shape),), rule)

    def broadcast(self, pool: Sequence[Value]) -> Op:
        """Add a major dim to a value."""
        value = self.value(pool)
        shape = (self.c.of((8, 2, 3, 4)), *value.shape)
        result = tuple((dim,) for dim in range(len(shape)))
        rule = OpShardingRule(shape, (result[1:],), (result,))
        dims = list(range(1, len(shape)))
        return self.pure_op("broadcast_in_dim", [value], shape, rule, f"dims = {dims}")

    def slice(self, pool: Sequence[Value]) -> Op:
        """Take a slice as large as the value itself, at an index that is computed."""
        value = self.value(pool)
        rank = len(value.shape)
        mapping = tuple((dim,) for dim in range(rank))
        rule = OpShardingRule(value.shape, (mapping,) + ((),) * rank, (mapping,))
        details = f"sizes = {list(value.shape)}"
        operands = [value] + [self.index] * rank
        return self.pure_op("dynamic_slice", operands, value.shape, rule, details)

    def constraint(self, pool: Sequence[Value]) -> Op:
        value = self.value(pool)
        result = Value(value.shape)
        self.shardings[result] = self.sharding(len(value.shape))
        return Op("sdy.sharding_constraint", [value], [result], identity_rule(value.shape))

    def barrier(self, pool: Sequence[Value]) -> Op:
        value = self.value(pool)
        result = Value(value.shape)
        self.annotate([result])
        rule = identity_rule(value.shape)
        direction = f"allowed_direction={self.c.of(('FORWARD', 'BACKWARD', 'NONE'))}"
        return Op(BARRIER, [value], [result], rule, is_pure=True, details=direction)

    def optimization_barrier(self, pool: Sequence[Value]) -> Op:
        operands = [self.value(pool) for _ in range(self.c.integer(1, 3))]
        results = [Value(value.shape) for value in operands]
        self.annotate(results, priorities=False)
        return Op("stablehlo.optimization_barrier", operands, results)

    def loop(self, pool: Sequence[Value]) -> Op:
        operands = [self.value(pool) for _ in range(self.c.integer(1, 3))]
        carried = [value.shape for value in operands]
        regions = [self.loop_condition(carried), self.loop_body(carried)]
        results = [Value(shape) for shape in carried]
        self.annotate(results, priorities=False)
        return Op("stablehlo.while", operands, results, regions=regions)

    def loop_condition(self, carried: Sequence[tuple[int, ...]]) -> Block:
        arguments = [Value(shape) for shape in carried]
        test = Value((), element="i1")
        op = Op("stablehlo.custom_call", arguments[:1], [test])
        return Block(arguments, [op, Op("stablehlo.return", [test])])

    def loop_body(self, carried: Sequence[tuple[int, ...]]) -> Block:
        arguments = [Value(shape) for shape in carried]
        pool, ops = list(arguments), []
        for _ in range(self.c.integer(0, 3)):
            op = self.c.of([self.custom_call, self.add, self.tanh])(pool)
            ops.append(op)
            pool += op.results
        same_shape = [[v for v in pool[::-1] if v.shape == shape] for shape in carried]
        ops.append(Op("stablehlo.return", [self.c.of(values) for values in same_shape]))
        ops[-1:-1] = self.keeping_alive(ops)
        return Block(arguments, ops)

    def case(self, pool: Sequence[Value]) -> Op:
        shapes = [self.value(pool).shape for _ in range(self.c.integer(1, 2))]
        regions = [self.branch(pool, shapes) for _ in range(self.c.integer(2, 3))]
        results = [Value(shape) for shape in shapes]
        self.annotate(results, priorities=False)
        return Op("stablehlo.case", [self.index], results, regions=regions)

    def branch(self, outer: Sequence[Value], shapes: Sequence[tuple[int, ...]]) -> Block:
        pool, ops = list(outer), []
        for _ in range(self.c.integer(0, 2)):
            op = self.c.of([self.custom_call, self.add, self.tanh])(pool)
            ops.append(op)
            pool += op.results
        same_shape = [[v for v in pool[::-1] if v.shape == shape] for shape in shapes]
        ops.append(Op("stablehlo.return", [self.c.of(values) for values in same_shape]))
        ops[-1:-1] = self.keeping_alive(ops)
        return Block([], ops)

    def keeping_alive(self, ops: Sequence[Op]) -> list[Op]:
        """Use what would make an op die, unless dead ops are wanted."""
        if self.features.dead_ops:
            return []
        unused = [v for op in ops if op.is_pure for v in op.results if not v.uses]
        return [Op("stablehlo.custom_call", [value], [Value(())]) for value in unused]

    def group(self, pool: Sequence[Value], number: int, grouped: set[Value]) -> list[Op]:
        """Put some values of one shape in a group; at most the first keeps its sharding."""
        free = [v for v in pool if v not in grouped and not is_constraint(v)]
        if not free:
            return []
        shape = self.c.of(free).shape
        members = self.c.permutation([v for v in free if v.shape == shape])[: self.c.integer(1, 3)]
        for member in members[1:]:
            for value in member.owner.results if member.owner else [member]:
                self.shardings.pop(value, None)
        grouped.update(members)
        return [Op(GROUP, [member], group=number) for member in members]


def is_constraint(value: Value) -> bool:
    return value.owner is not None and value.owner.name == "sdy.sharding_constraint"


def make_program(c: Choices, features: Features) -> Program:
    """Make a program of a few ops that share values."""
    meshes = {"mesh": make_mesh(c)}
    if features.other_meshes and c.one_in(3):
        meshes["same"] = meshes["mesh"]
        meshes["empty"] = Mesh()
        meshes["maximal"] = Mesh((), (0,))
        meshes["other"] = make_mesh(c)
    builder = Builder(c, features, meshes)
    arguments = [Value(make_shape(c)) for _ in range(c.integer(1, 3))]
    for value in arguments:
        builder.annotate([value])

    pool, ops = list(arguments), []
    for _ in range(c.integer(1, features.max_ops)):
        ops.append(builder.op(pool))
        pool += ops[-1].results
    grouped: set[Value] = set()
    for number in range(c.integer(0, 2) if features.groups else 0):
        ops += builder.group(pool, number, grouped)
    ops.append(Op("func.return", [builder.value(pool) for _ in range(c.integer(1, 3))]))
    ops[-1:-1] = builder.keeping_alive(ops)
    result_shardings = [
        builder.sharding(len(value.shape)) if c.one_in(3) else None for value in ops[-1].operands
    ]
    if builder.index.uses:
        arguments.append(builder.index)
    return Program(meshes, arguments, ops, builder.shardings, result_shardings)


def make_single_op(c: Choices) -> Program:
    """Make a program of one op with any rule, of which all tensors may have shardings."""
    builder = Builder(c, Features(), {"mesh": make_mesh(c)})
    rule = make_rule(c)
    arguments = [Value(rule.shape(mapping)) for mapping in rule.operands]
    results = [Value(rule.shape(mapping)) for mapping in rule.results]
    for value in arguments:
        if not c.one_in(3):
            builder.shardings[value] = builder.sharding(len(value.shape))
    if c.one_in(2):
        for value in results:
            builder.shardings[value] = builder.sharding(len(value.shape))
    ops = [
        Op("stablehlo.custom_call", arguments, results, rule),
        Op("func.return", results),
    ]
    return Program(builder.meshes, arguments, ops, builder.shardings, [None] * len(results))


def programs(features: Features = Features()) -> SearchStrategy[Program]:
    """The hypothesis strategy of all programs with these features."""
    return chosen(lambda c: make_program(c, features), 100 * features.max_ops)


def single_ops() -> SearchStrategy[Program]:
    """The hypothesis strategy of all programs of one op."""
    return chosen(make_single_op, 200)


def showing_order_of_factors(num_factors: int) -> Iterator[Program]:
    """Yield programs whose result depends on the order in which factors are looked at.

    "x":(1)12 cannot coexist with "x":(8)3, but its prefix "x":(1)2, which "x":(2)2 leaves, can.
    """
    mapping = tuple((factor,) for factor in range(num_factors))
    rule = OpShardingRule((24,) * num_factors, (((0,),),), (mapping,), is_custom=True)
    for first, second in itertools.permutations({1, 2, num_factors - 2, num_factors - 1}, 2):
        dims = [DimSharding()] * num_factors
        dims[first] = DimSharding((AxisRef("x", 2, 2),))
        dims[second] = DimSharding((AxisRef("x", 8, 3),))
        argument, result = Value((24,)), Value((24,) * num_factors)
        shardings = {
            argument: TensorSharding("mesh", (DimSharding((AxisRef("x", 1, 12),)),)),
            result: TensorSharding("mesh", tuple(dims)),
        }
        op = Op("stablehlo.custom_call", [argument], [result], rule)
        meshes = {"mesh": Mesh((("x", 24),))}
        yield Program(meshes, [argument], [op, Op("func.return", [result])], shardings, [None])


def showing_order_of_uses(with_edge: bool) -> Program:
    """Build a program whose result depends on the order of the uses of one value.

    The value gets its sharding from its last use. The first use would then pass it on to dim 0 of
    another tensor, the second to dim 1.
    """
    value, other = Value((8,)), Value((8, 8))
    ops = []
    used = value
    if with_edge:
        used = Value((8,))
        ops.append(Op("stablehlo.optimization_barrier", [value], [used]))
    for mapping in (((0,), (1,)), ((1,), (0,))):
        rule = OpShardingRule((8, 8), (((0,),), mapping), ((),), is_custom=True)
        ops.append(Op("stablehlo.custom_call", [used, other], [Value(())], rule))
    constrained = Value((8,))
    ops.append(Op("sdy.sharding_constraint", [used], [constrained], identity_rule((8,))))
    ops.append(Op("func.return", [constrained]))
    shardings = {constrained: TensorSharding("mesh", (DimSharding((AxisRef("x"),)),))}
    return Program({"mesh": Mesh((("x", 2),))}, [value, other], ops, shardings, [None])
