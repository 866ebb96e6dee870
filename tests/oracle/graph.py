"""Programs: one function of ops, with values, their uses, and regions.

A program is built in the order in which its text is parsed, because that decides the
order of uses: the most recent use of a value comes first, and an op's own uses are more
recent than those inside its regions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .mesh import Mesh
from .rule import OpShardingRule, identity_rule
from .sharding import TensorSharding

BARRIER = "sdy.propagation_barrier"
ELEMENTWISE = {"stablehlo.add", "stablehlo.tanh", "sdy.sharding_constraint", BARRIER}
TERMINATORS = {"func.return", "stablehlo.return", "sdy.return"}
EDGE = "sdy.data_flow_edge"
GROUP = "sdy.sharding_group"


@dataclass(eq=False)
class Value:
    """A tensor: the result of `owner`, or a block argument of it (None: of the function)."""

    shape: tuple[int, ...]
    owner: Op | None = None
    index: int = 0
    is_argument: bool = False
    element: str = "f32"
    uses: list[Use] = field(default_factory=list)


@dataclass(eq=False)
class Use:
    """Operand `index` of `user`."""

    user: Op
    index: int


@dataclass(eq=False)
class Block:
    """The only block of a region."""

    arguments: list[Value]
    ops: list[Op]


@dataclass(eq=False)
class Op:
    """An operation. Without a rule nothing propagates through it."""

    name: str
    operands: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    rule: OpShardingRule | None = None
    is_pure: bool = False
    regions: list[Block] = field(default_factory=list)
    group: int | None = None
    details: str = ""  # what else the op's text says, such as `dims = [1, 0]`
    parent: Op | None = None  # the op whose region holds this one

    def __post_init__(self) -> None:
        for index, value in enumerate(self.operands):
            value.uses.insert(0, Use(self, index))
        for index, value in enumerate(self.results):
            value.owner, value.index = self, index
        for block in self.regions:
            for index, value in enumerate(block.arguments):
                value.owner, value.index, value.is_argument = self, index, True
            for op in block.ops:
                op.parent = self

    @property
    def is_elementwise(self) -> bool:
        return self.name in ELEMENTWISE

    @property
    def is_terminator(self) -> bool:
        return self.name in TERMINATORS

    def walk(self) -> Iterator[Op]:
        """Yield this op, then those in its regions, as they stand in the text."""
        yield self
        for block in self.regions:
            for op in list(block.ops):
                yield from op.walk()


@dataclass(repr=False)
class Program:
    """A module of meshes and one function, with the shardings its text has."""

    meshes: dict[str, Mesh]
    arguments: list[Value]
    ops: list[Op]
    shardings: dict[Value, TensorSharding]
    result_shardings: list[TensorSharding | None]

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Show the MLIR text where hypothesis reports a failing program."""
        from .printing import to_mlir

        printer.text(to_mlir(self))

    def walk(self) -> Iterator[Op]:
        for op in list(self.ops):
            yield from op.walk()

    @property
    def returned(self) -> list[Value]:
        return self.ops[-1].operands

    def groups(self) -> dict[int, list[Value]]:
        """List the members of every sharding group, in program order."""
        groups: dict[int, list[Value]] = {}
        for op in self.walk():
            if op.group is not None:
                groups.setdefault(op.group, []).extend(op.operands)
        return groups

    def ops_beside(self, op: Op) -> list[Op]:
        """Return the list of ops that holds `op`."""
        blocks = [block.ops for block in op.parent.regions] if op.parent else [self.ops]
        return next(ops for ops in blocks if op in ops)

    def erase(self, op: Op) -> None:
        for value in op.operands:
            value.uses = [use for use in value.uses if use.user is not op]
        self.ops_beside(op).remove(op)


# Data-flow edges. The results of these ops are the owners of their edges.


def is_data_flow_op(op: Op) -> bool:
    return op.name in {"stablehlo.while", "stablehlo.case", "stablehlo.optimization_barrier"}


def edge_of(value: Value) -> Op | None:
    """Return the data-flow edge that holds the sharding of `value`, a target of it."""
    if value.owner is None or not is_data_flow_op(value.owner):
        return None
    owner = value.owner.results[value.index]
    return owner.uses[0].user if is_edge_input(owner) else None


def edge_from(use: Use) -> Op | None:
    """Return the data-flow edge that `use` is a source of."""
    op = use.user.parent if use.user.is_terminator else use.user
    if op is None or not is_data_flow_op(op) or use.index >= len(op.results):
        return None
    return edge_of(op.results[use.index])


def is_edge_input(value: Value) -> bool:
    return len(value.uses) == 1 and value.uses[0].user.name == EDGE


def edge_sources(edge: Op) -> list[Value]:
    owner = edge.operands[0]
    op, index = owner.owner, owner.index
    assert op is not None
    if op.name == "stablehlo.case":
        return [block.ops[-1].operands[index] for block in op.regions]
    sources = [op.operands[index]]
    if op.name == "stablehlo.while":
        sources.append(op.regions[1].ops[-1].operands[index])
    return sources


def edge_targets_in_regions(edge: Op) -> list[Value]:
    owner = edge.operands[0]
    op = owner.owner
    assert op is not None
    if op.name != "stablehlo.while":
        return []
    return [block.arguments[owner.index] for block in op.regions]


def edge_rule(edge: Op) -> OpShardingRule:
    return identity_rule(edge.results[0].shape, len(edge_sources(edge)))


def add_data_flow_edges(program: Program) -> None:
    """Put an edge after every op that needs one, for each of its results."""
    # An op comes after those inside its regions.
    for op in reversed([op for op in program.walk() if is_data_flow_op(op)]):
        ops = program.ops_beside(op)
        for owner in reversed(op.results):
            uses, owner.uses = owner.uses, []
            result = Value(owner.shape)
            edge = Op(EDGE, [owner], [result], parent=op.parent)
            ops.insert(ops.index(op) + 1, edge)
            if owner in program.shardings:
                program.shardings[result] = program.shardings[owner]
            # Each use is moved in turn to the front of the new list.
            for use in uses:
                use.user.operands[use.index] = result
                result.uses.insert(0, use)
