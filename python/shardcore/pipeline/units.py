"""Finds the layers of a per-device program: loops, or repeated blocks of ops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from shardcore._core import Module, Op, Value
from shardcore.costs.records import LoopTrips
from shardcore.pipeline.repeated_blocks import runs

LEAST_LAYERS = 2
_HEAVY = ("stablehlo.dot_general", "stablehlo.convolution", "stablehlo.custom_call")
"""Ops that a layer must contain."""
COLLECTIVES = (
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_permute",
    "stablehlo.reduce_scatter",
)
_SHORT = 0.1
"""Loops without a backward pass are no layers if they have less than this part of the products of
the longest loop."""


@dataclass(frozen=True)
class Unit:
    """One layer, or equal layers that a loop runs."""

    count: int
    """The number of layers."""
    forward: tuple[int, ...]
    """The indices of the ops of its forward pass in the function body: a block, or a loop."""
    backward: int | None = None
    """The index of the loop of its backward pass."""


@dataclass(frozen=True)
class Body:
    """The body of the entry function, with its layers."""

    arguments: tuple[Value, ...]
    ops: tuple[Op, ...]
    units: tuple[Unit, ...]
    results: tuple[Value, ...]
    makers: Mapping[str, int] = field(repr=False)
    """The index of the op that defines each value."""

    @property
    def is_looped(self) -> bool:
        """Whether the layers are in loops."""
        return any(unit.count > 1 for unit in self.units)


def read(module: Module, loops: Iterable[LoopTrips]) -> Body:
    """Return the body of the entry function of ``module``, in which all calls are inlined.

    ``loops`` has the trip counts of its loops. If it has no layers, there are no units.
    """
    [function] = (op for op in module.ops() if op.name == "func.func")
    block = function.regions[0][0]
    ops = tuple(block.ops)
    makers = {value.name: place for place, op in enumerate(ops) for value in op.results}
    trips = {loop.op: loop.trips or 1 for loop in loops}
    units = _loops(ops, trips, makers) or _blocks(ops)
    return Body(tuple(block.arguments), ops, tuple(units), ops[-1].operands, makers)


def _loops(
    ops: Sequence[Op], trips: Mapping[str | None, int], makers: Mapping[str, int]
) -> list[Unit]:
    """The loops of layers, each with its backward loop, which reads what it stacked."""
    sizes = {
        place: trips.get(op.results[0].name, 1)
        for place, op in enumerate(ops)
        if op.name == "stablehlo.while" and op.results
    }
    long = {place: n for place, n in sizes.items() if n >= LEAST_LAYERS}
    if not long:
        return []
    work = {place: n * _products(ops[place]) for place, n in long.items()}
    most = max(work.values())
    taken: set[int] = set()
    units = []
    for place, count in long.items():
        if place in taken or work[place] == 0:
            continue
        stacked = {v.name for v in ops[place].results if v.shape and v.shape[0] == count}
        backward = next(
            (
                other
                for other, n in long.items()
                if other > place
                and n == count
                and other not in taken
                and stacked & _sources(ops, makers, ops[other].operands)
            ),
            None,
        )
        if backward is None and work[place] < most * _SHORT:
            continue
        taken |= {place} if backward is None else {place, backward}
        units.append(Unit(count, (place,), backward))
    return units


def _sources(ops: Sequence[Op], makers: Mapping[str, int], values: Iterable[Value]) -> set[str]:
    """``values``, and the values that these are made from by ops with one operand, such as a
    barrier."""
    found: set[str] = set()
    left = list(values)
    while left:
        value = left.pop()
        if value.name in found:
            continue
        found.add(value.name)
        place = makers.get(value.name)
        if place is None:
            continue
        op = ops[place]
        if op.name == "stablehlo.optimization_barrier":
            at = next(n for n, result in enumerate(op.results) if result.name == value.name)
            left.append(op.operands[at])
        elif len(op.operands) == 1:
            left.append(op.operands[0])
    return found


def _products(op: Op) -> int:
    """The number of products in the regions of ``op``."""
    inner = [each for region in op.regions for block in region for each in block.ops]
    return sum((each.name in _HEAVY) + _products(each) for each in inner)


def _blocks(ops: Sequence[Op]) -> list[Unit]:
    """The blocks of the first of the longest runs of equal blocks with products. Ops computed from
    constants alone are in no block, because several blocks may share them.
    """
    constants: set[str] = set()
    places = []
    for place, op in enumerate(ops):
        if any(name not in constants for name in taken(op)):
            places.append(place)
        else:
            constants |= {value.name for value in op.results}
    found = [
        run
        for run in runs([_key(ops[place]) for place in places], LEAST_LAYERS)
        if any(ops[places[at]].name in _HEAVY for at in run.block(0))
    ]
    if not found:
        return []
    counts: Counter[int] = Counter()
    for run in found:
        counts[run.count] += run.period
    layers = max(counts, key=lambda count: (counts[count] * count, count))
    first = min((run for run in found if abs(run.count - layers) <= 1), key=lambda run: run.start)
    blocks = (tuple(places[at] for at in first.block(number)) for number in range(first.count))
    return [Unit(1, block) for block in blocks]


def taken(op: Op) -> list[str]:
    """Return the names of the values that ``op`` uses: its operands, and values from outside that
    its regions use.
    """
    found = [value.name for value in op.operands]
    used, own = [], set()
    blocks = [block for region in op.regions for block in region]
    # Regions may be nested deeper than Python recurses.
    while blocks:
        block = blocks.pop()
        own |= {value.name for value in block.arguments}
        for each in block.ops:
            used += [value.name for value in each.operands]
            own |= {value.name for value in each.results}
            blocks += [inner for region in each.regions for inner in region]
    return [*found, *(name for name in used if name not in own)]


def _key(op: Op) -> str:
    """A key that equal ops share; the channel handles of collectives are left out."""
    if op.signature is not None and op.name not in COLLECTIVES:
        return f"{op.name} {op.signature}"
    return f"{op.name} {[value.type for value in (*op.operands, *op.results)]}"
