"""The collectives of shardcore's plan, in a form to compare with those of a compiler."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardcore.explain.compiled import KINDS
from shardcore.explain.device_groups import Groups, joined, normalized
from shardcore.explain.hlo_text import element_count
from shardcore.explain.reach import Flow, Node, flow
from shardcore.simulate.groups import listed_groups
from shardcore.simulate.site import Site

if TYPE_CHECKING:
    from shardcore._core import Block, Mesh, Op, Value
    from shardcore.costs.program import Cost
    from shardcore.costs.records import CollectiveCost

__all__ = ["Planned", "planned"]

_KINDS = frozenset(KINDS.values())
_REDUCTIONS = frozenset({"all_reduce", "reduce_scatter"})


@dataclass(frozen=True)
class Planned:
    """A collective of the per-device program."""

    row: CollectiveCost
    kind: str
    groups: Groups
    elements: int
    """As in :attr:`shardcore.explain.compiled.Part.elements`."""
    stack: str
    """The name stack of the op that needs it."""
    locations: tuple[str, ...]
    """The locations of the op that needs it, and of the op that it was inserted for."""
    sources: int
    """The program arguments that its operand is computed from, as a bit set."""
    targets: int
    """The program results that are computed from it, as a bit set."""
    sent: int
    """A number that is equal for collectives that send equal values."""
    summands: tuple[str, ...] = ()
    """The locations of the ops whose partial sums are added before it reduces them; empty if there
    is one."""
    after: int | None = None
    """The index in the plan of the collective whose result it sends, reduced or rearranged."""
    sum: int | None = None
    """The index of the first of the collectives whose results are added together with its own."""


def planned(cost: Cost) -> list[Planned]:
    """Return the collectives of the per-device program that ``cost`` counts, in its order."""
    rows = cost.collectives
    trial = next((row.trial for row in rows if row.trial is not None), None)
    if trial is None:
        return []
    ops = trial.local.module.ops()
    own = [op for op in ops if op.name.removeprefix("stablehlo.") in _KINDS]
    if len(own) != len(rows):
        # A collective without a row in the cost, from a user's rule.
        named = {op.results[0].name: op for op in own}
        pairs = [(row, named[row.op]) for row in rows if row.op in named]
    else:
        pairs = list(zip(rows, own, strict=True))
    required = dict(zip(map(id, rows), cost.rows.required_stacks, strict=True))
    reached = _flow(ops)
    numbers = _numbers(ops)
    meshes = {**trial.local.source.meshes, **trial.local.module.meshes}
    found = [_planned(row, op, required[id(row)], reached, numbers, meshes) for row, op in pairs]
    return _related(found, ops, pairs)


def _planned(
    row: CollectiveCost,
    op: Op,
    stack: str,
    reached: dict[Value, tuple[int, int]],
    numbers: dict[Value, int],
    meshes: dict[str, Mesh],
) -> Planned:
    kind = op.name.removeprefix("stablehlo.")
    operand, result = op.operands[0], op.results[0]
    attributes = op.attributes
    if kind == "collective_permute":
        pairs = attributes["source_target_pairs"]
        groups = joined((one, other) for one, other in pairs if one != other)
    else:
        groups = normalized(listed_groups(Site(op, (), "<program>", meshes=meshes)))
    whole = result if kind == "all_gather" else operand
    return Planned(
        row=row,
        kind=kind,
        groups=groups,
        elements=element_count(tuple(size or 1 for size in whole.shape or ())),
        stack=stack,
        locations=tuple(
            dict.fromkeys(at for at in (row.cause_location, row.location, op.location) if at)
        ),
        sources=reached.get(operand, (0, 0))[0],
        targets=reached.get(result, (0, 0))[1],
        sent=numbers[operand],
    )


def _summands(sum: Value, makers: dict[Value, Op]) -> tuple[str, ...]:
    """The locations of the ops that compute the values of which ``sum`` is the sum."""
    found: dict[str, None] = {}
    seen, left = {sum}, [sum]
    while left:
        op = makers.get(left.pop())
        if op is not None and op.name == "stablehlo.add":
            left += (new := {*op.operands} - seen)
            seen |= new
        elif op is not None and op.location:
            found[op.location] = None
    return tuple(found) if len(seen) > 1 else ()


def _numbers(ops: Sequence[Op]) -> dict[Value, int]:
    """A number for each value; equal ops with equal operands have equal results."""
    known: dict[Hashable, int] = {}
    numbers: dict[Value, int] = {}
    for op in ops:
        own: Hashable = op
        if op.signature is not None and not op.regions:
            inputs = (numbers.setdefault(each, ~len(numbers)) for each in op.operands)
            own = (op.signature, *inputs)
        elif op.name == "stablehlo.constant":
            dtype, shape, data = op.elements()
            own = (dtype, *shape, data) if len(data) <= _SMALL else op
        for at, result in enumerate(op.results):
            numbers[result] = known.setdefault((own, at), len(known))
    return numbers


_SMALL = 256
"""The size up to which constants are compared."""

_PASSED_ON = frozenset(
    f"stablehlo.{name}"
    for name in ("convert", "reshape", "transpose", "reduce", "broadcast_in_dim", "slice")
)


def _related(
    plan: list[Planned], ops: Sequence[Op], pairs: Sequence[tuple[CollectiveCost, Op]]
) -> list[Planned]:
    """``plan`` with the fields that relate collectives whose results are used together."""
    made_by: dict[Value, int] = {op.results[0]: at for at, (_, op) in enumerate(pairs)}
    places = {op: at for at, (_, op) in enumerate(pairs)}
    after: dict[int, int] = {}
    sums = list(range(len(plan)))

    def first(at: int) -> int:
        while sums[at] != at:
            at = sums[at]
        return at

    for op in ops:
        known = [made_by[operand] for operand in op.operands if operand in made_by]
        if not known:
            continue
        if op in places:
            after[places[op]] = known[0]
        elif op.name == "stablehlo.add":
            # Partial sums over the same devices are added first, and then reduced once.
            one, other = first(known[0]), first(known[-1])
            if plan[one].groups == plan[other].groups and len(known) == 2:
                sums[max(one, other)] = min(one, other)
            if op.results:
                made_by[op.results[0]] = min(one, other)
        elif op.name in _PASSED_ON and op.results:
            made_by[op.results[0]] = known[0]
    makers = {value: op for op in ops for value in op.results}
    related = []
    for at, row in enumerate(plan):
        op = pairs[at][1]
        # What the program itself reduces is needed by that op alone.
        is_inserted = row.kind in _REDUCTIONS and row.row.cause != op.name
        own = _summands(op.operands[0], makers) if is_inserted else ()
        related.append(
            replace(
                row,
                locations=tuple(dict.fromkeys([*row.locations, *own])),
                summands=own,
                after=after.get(at),
                sum=first(at) if first(at) != at else None,
            )
        )
    return related


def _flow(ops: Sequence[Op]) -> dict[Value, tuple[int, int]]:
    """For each value the arguments and the results of the entry function that it is connected
    to."""
    function = next((op for op in ops if op.name == "func.func"), None)
    if function is None:
        return {}
    block = function.regions[0][0]
    given: dict[Hashable, int] = {value: 1 << at for at, value in enumerate(block.arguments)}
    known: dict[Value, tuple[int, int]] = {}
    count = len(block.ops[-1].operands)
    left: list[tuple[Block, dict[Hashable, int], list[int]]] = [
        (block, given, [1 << at for at in range(count)])
    ]
    while left:
        inside, sources, wanted = left.pop()
        nodes, holders = list(_nodes(inside.ops)), []
        nodes.append(Node("end", inside.ops[-1].operands, is_tuple=True))
        found = flow(nodes, sources, {}, "end", wanted)
        for op in inside.ops:
            for value in op.results:
                known[value] = found.of(value)
            if op.regions and op.name in ("stablehlo.while", "stablehlo.case", "stablehlo.if"):
                holders.append(op)
        for argument in inside.arguments:
            known[argument] = found.of(argument)
        for op in holders:
            left += _inner(op, found)
    return known


def _inner(op: Op, around: Flow) -> Iterator[tuple[Block, dict[Hashable, int], list[int]]]:
    """The blocks of ``op`` with the flow that is known at its boundary."""
    wanted = [around.of(value)[1] for value in op.results]
    for region in op.regions[-1:] if op.name == "stablehlo.while" else op.regions:
        [block] = region
        given: dict[Hashable, int] = dict(around.sources)
        given.update(
            (argument, around.of(operand)[0])
            for argument, operand in zip(block.arguments, op.operands, strict=False)
        )
        yield block, given, wanted


def _nodes(ops: Sequence[Op]) -> Iterator[Node]:
    for op in ops:
        operands = list(op.operands)
        if op.regions:
            # Values from outside that the regions use.
            operands += [
                operand for region in op.regions for block in region for operand in _used(block)
            ]
        for value in op.results:
            yield Node(value, operands)


def _used(block: Block) -> Iterator[Value]:
    for op in block.ops:
        yield from op.operands
        for region in op.regions:
            for inner in region:
                yield from _used(inner)
