"""Finds the first op whose result differs between the devices and the global program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shardcore.partition.placement import scatter
from shardcore.partition.rounding import NOTHING, Size, gap, is_rounding, orders, size
from shardcore.simulate import Simulator

if TYPE_CHECKING:
    from shardcore._core import Module, Op, Value
    from shardcore.partition.partitioned import Partitioned

Array = np.ndarray[Any, np.dtype[Any]]
Key = tuple[int, int]
"""The number of an op of the source program, and the number of its result."""

_MOST_SOURCES = 8
"""A value computed from more source values than this is not compared."""
_MOST_ORDERS = 2


@dataclass(frozen=True)
class DifferingOp:
    """The first op whose result on the devices differs from that in the global program."""

    name: str
    """The op's name, such as ``stablehlo.add``."""
    result: str
    """The name of its result, such as ``%3``."""
    location: str | None
    """Its location in the user's source."""
    largest: float
    """The largest difference."""
    reordering: float
    """How much other orders of summation change the result."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        where = f" at {self.location}" if self.location else ""
        return f"{self.result} ({self.name}){where}, by up to {self.largest:g}"


def first_difference(
    partitioned: Partitioned,
    arrays: Sequence[Array],
    wrong: Sequence[int],
    *,
    dtype: str | None,
    tolerance: float,
) -> DifferingOp | None:
    """Return the first differing op on ``arrays``, among those that the results depend on.

    An op in a loop or a function is compared at its first execution only. ``None`` if there is no
    such op, as where a result is an argument.

    Args:
        partitioned: the per-device program.
        arrays: the arguments.
        wrong: the indices of the differing results.
        dtype: the type in which narrower floats are computed.
        tolerance: the allowed difference, relative to the largest element, beside what other orders
            of summation explain.
    """
    known = _Known(partitioned.source, arrays, partitioned.num_devices, dtype)
    checked = _Checked(partitioned, known, tolerance)
    checked.run(arrays, dtype)
    return _Search(partitioned.source, checked).first(wrong)


class _Known:
    """The values of the global program, and how much other orders of summation change them."""

    def __init__(
        self, source: Module, arrays: Sequence[Array], num_devices: int, dtype: str | None
    ) -> None:
        self.values: dict[Key, Array] = {}
        self.changes: dict[Key, Size] = {}
        Simulator(source, dtype=dtype).watched(self._keep, *arrays)
        for order in orders(num_devices)[:_MOST_ORDERS]:
            self._seen: set[int] = set()
            Simulator(source, dtype=dtype, order=order).watched(self._compare, *arrays)

    def _keep(self, op: Op, results: Sequence[Any]) -> None:
        for key, result in _arrays(op, results):
            self.values.setdefault(key, result)

    def _compare(self, op: Op, results: Sequence[Any]) -> None:
        if _number(op) in self._seen:
            return
        self._seen.add(_number(op))
        for key, result in _arrays(op, results):
            theirs = self.values.get(key)
            if theirs is not None and theirs.shape == result.shape:
                change = size(gap(result, theirs))
                self.changes[key] = change.most(self.changes.get(key, NOTHING))


class _Checked:
    """For each source op whose result was found on the devices: whether it agrees, and the gap."""

    def __init__(self, partitioned: Partitioned, known: _Known, tolerance: float) -> None:
        self._partitioned = partitioned
        self._known = known
        self._tolerance = tolerance
        source = partitioned.source
        self._ops = {_number(op): op for op in source.ops()}
        self._alike = _alike(source.ops(), partitioned.module.ops())
        self._sources: dict[Value, set[Key]] = {}
        self._seen: set[int] = set()
        self.gaps: dict[Key, float] = {}
        """For each result that was compared, the smallest of its differences."""
        self.agrees: set[Key] = set()

    def run(self, arrays: Sequence[Array], dtype: str | None) -> None:
        """Run the devices, and compare their values with those of the global program."""
        partitioned = self._partitioned
        count = partitioned.num_devices
        pairs = zip(arrays, partitioned.arguments, strict=True)
        held = [scatter(array, port, count) for array, port in pairs]
        Simulator(partitioned.module, dtype=dtype).watched(self._check, *held, devices=count)

    def _check(self, op: Op, results: Sequence[Any]) -> None:
        if _number(op) in self._seen:
            return
        self._seen.add(_number(op))
        numbers = self._of_source(op)
        for (_, at), result in _arrays(op, results):
            if not numbers:
                # Ops that partitioning inserts only assemble a value from parts, or move it.
                found = [self._sources.get(value, set()) for value in op.operands]
                keys = set().union(*found)
            else:
                keys = {(number, at) for number in numbers}
            if len(keys) <= _MOST_SOURCES:
                self._sources[op.results[at]] = keys
                for key in keys - self.agrees:
                    self._compare(key, result)

    def _of_source(self, op: Op) -> set[int]:
        """The numbers of the source ops that ``op`` may compute: that with its number, and that
        which is alike, as numbers are new in a program that was printed and read again."""
        number = _number(op)
        found = set()
        for known in (number, self._partitioned.origin.original(number)):
            if known in self._ops and self._ops[known].name == op.name:
                found.add(known)
                break
        if number in self._alike:
            found.add(self._alike[number])
        return found

    def _compare(self, key: Key, result: Array) -> None:
        theirs = self._known.values.get(key)
        if theirs is None or theirs.dtype != result.dtype:
            return
        found = _gap(self._ops[key[0]].results[key[1]], result, theirs)
        if found is None:
            return
        self.gaps[key] = min(found.largest, self.gaps.get(key, np.inf))
        change = self._known.changes.get(key, NOTHING)
        if is_rounding(found, theirs, self._tolerance, change):
            self.agrees.add(key)

    def change(self, key: Key) -> float:
        """How much other orders of summation change a result."""
        return self._known.changes.get(key, NOTHING).largest


def _alike(source: Sequence[Op], local: Sequence[Op]) -> dict[int, int]:
    """For ops of the devices' program, by number, the ops of ``source`` that they are by the text.

    Names of values are kept where this package prints the program. Where most values with one name
    are of different ops, other tools have numbered them anew: then ops of each kind are matched in
    their order, if both programs have as many.
    """
    named = {_name(op): op for op in source if op.results}
    pairs = [(op, named[_name(op)]) for op in local if op.results and _name(op) in named]
    if sum(mine.name == theirs.name for mine, theirs in pairs) * 2 >= len(named):
        return {_number(mine): _number(theirs) for mine, theirs in pairs}
    found: dict[int, int] = {}
    for kind in {op.name for op in source}:
        mine, theirs = ([op for op in ops if op.name == kind] for ops in (local, source))
        if len(mine) == len(theirs):
            found.update(zip(map(_number, mine), map(_number, theirs), strict=True))
    return found


def _name(op: Op) -> tuple[str, str]:
    return op.results[0].function, op.results[0].name


class _Search:
    """Follows differing results backwards to the first op that causes a difference."""

    def __init__(self, source: Module, checked: _Checked) -> None:
        self._checked = checked
        self._functions = {
            op.attributes["sym_name"]: op for op in source.ops() if op.name == "func.func"
        }
        self._made_by: dict[Value, tuple[Op, int]] = {}
        self._place: dict[int, int] = {}
        for place, op in enumerate(source.ops()):
            self._place[_number(op)] = place
            for at, value in enumerate(op.results):
                self._made_by[value] = op, at

    def first(self, wrong: Sequence[int]) -> DifferingOp | None:
        """The first differing op among those that the results at ``wrong`` depend on."""
        functions = list(self._functions.values())
        main = self._functions.get("main", functions[0] if functions else None)
        if main is None:
            return None
        returned = _returned(main)
        found = self._within([returned[at] for at in wrong if at < len(returned)], are_wrong=True)
        inner = found
        while inner is not None:
            found = inner
            inner = self._inside(found[0])
        if found is None:
            return None
        op, at = found
        key = _number(op), at
        largest = self._checked.gaps.get(key, np.inf)
        value = op.results[at]
        return DifferingOp(
            op.name, value.qualified_name, op.location, largest, self._checked.change(key)
        )

    def _inside(self, op: Op) -> tuple[Op, int] | None:
        """The first differing op in the regions of ``op``, or in the function that it calls."""
        callee = op.attributes.get("callee") if op.name == "func.call" else None
        function = self._functions.get(callee) if callee is not None else None
        regions = _returned(op) if function is None else _returned(function)
        found = self._within(regions)
        return found if found is not None and self._differs(found) else None

    def _differs(self, found: tuple[Op, int]) -> bool:
        return (_number(found[0]), found[1]) in self._checked.gaps

    def _within(self, values: Sequence[Value], are_wrong: bool = False) -> tuple[Op, int] | None:
        """The first differing op among those that ``values`` depend on, reached through results
        that differ. If no op in question could be compared, the last of these results.
        ``are_wrong`` says that ``values`` differ as a whole, even if each of them agrees within the
        tolerance."""
        pending = list(values)
        wrong = set(values) if are_wrong else set()
        seen: set[Key] = set()
        last: tuple[Op, int] | None = None
        found: list[tuple[Op, int]] = []
        while pending:
            value = pending.pop()
            made = self._made_by.get(value)
            if made is None:
                continue
            key = _number(made[0]), made[1]
            if key in seen or (key in self._checked.agrees and value not in wrong):
                continue
            seen.add(key)
            last = last or made
            if self._differs(made):
                found.append(made)
            pending += _operands(made[0])
        return min(found, key=lambda made: self._place[_number(made[0])], default=last)


def _number(op: Op) -> int:
    """The number of ``op`` in its module, which is its hash."""
    return hash(op)


def _arrays(op: Op, results: Sequence[Any]) -> Iterator[tuple[Key, Array]]:
    """The results of ``op`` that are arrays, each with its key."""
    for at, result in enumerate(results):
        if isinstance(result, np.ndarray):
            yield (_number(op), at), result


def _returned(op: Op) -> list[Value]:
    """The values that the regions of ``op`` return."""
    ends = [region[0].ops[-1] for region in op.regions if region and region[0].ops]
    return [value for end in ends for value in end.operands]


def _operands(op: Op) -> list[Value]:
    """The operands of ``op``, and of the ops in its regions."""
    found = list(op.operands)
    for region in op.regions:
        for block in region:
            for inner in block.ops:
                found += _operands(inner)
    return found


def _gap(value: Value, mine: Array, theirs: Array) -> Size | None:
    """By how much the values that the devices hold of ``value`` differ; ``None`` if they are no
    parts of it, such as terms of a sum in other shapes."""
    if len(theirs) > 1 or value.sharding is None or value.sharding.mesh is None:
        is_alike = mine.shape[1:] == theirs.shape[1:]
        if not is_alike or (len(theirs) > 1 and len(mine) not in (1, len(theirs))):
            return None
        pairs = ((row, theirs[at if len(theirs) > 1 else 0]) for at, row in enumerate(mine))
        return _most(pairs)
    shape = theirs.shape[1:]
    if tuple(value.sharding.local_shape(shape)) != mine.shape[1:]:
        return None
    pairs = (
        (_part(mine[device if len(mine) > 1 else 0], theirs[0][part].shape), theirs[0][part])
        for device, part in value.sharding.device_slices(shape).items()
    )
    return _most(pairs)


def _most(pairs: Iterable[tuple[Array, Array]]) -> Size:
    """The largest difference over all pairs of arrays."""
    found = NOTHING
    for mine, theirs in pairs:
        found = found.most(size(gap(mine, theirs)))
    return found


def _part(held: Array, shape: Sequence[int]) -> Array:
    """A device's shard without the padding."""
    return held[tuple(slice(0, length) for length in shape)]
