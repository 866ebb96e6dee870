"""Dims that are best sharded alike, merged into classes through the sharding rules of the ops.

A factor of a rule relates dims of an op's operands and results: for example, the contracting dim of
a product is one dim of each operand. Dims that a chain of factors relates form a *class*: the
batch, the width of the residual stream, the hidden width of a layer. Values that a loop carries are
merged with the arguments of its body. Arguments of repeated layers, whose paths differ in numbers
only, are merged with each other; or only every second one, if merging all would put two dims of one
argument into one class, as where the columns of one layer are the rows of the next. For arguments
without paths, classes that are used alike are merged (:mod:`~.alike`). If a reshape merges dims
into one, that one belongs to the class of the major dim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardcore._core import Module, Op, OpShardingRule, Result, Value
from shardcore.errors import ShardcoreError
from shardcore.plan.alike import Uses

NO_CLASS = -1
"""The class of dims of size 1, which cannot be sharded."""

_REGIONS = ("stablehlo.while", "stablehlo.case", "stablehlo.if", "sdy.manual_computation")
"""Ops that run their regions, so the values in these have classes too."""
_TAKES_OPERANDS = ("stablehlo.while", "sdy.manual_computation")
"""Those of them whose operands become the arguments of their regions."""
_PASSES = ("stablehlo.optimization_barrier", "sdy.reshard", "sdy.sharding_constraint")
"""Ops without a rule whose results equal their operands."""
_PRODUCTS = ("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution")


@dataclass(frozen=True)
class Tensor:
    """An operand's or result's type and classes, as the model needs them."""

    classes: tuple[int, ...]
    """The class of each dim."""
    sizes: tuple[int, ...]
    factors: tuple[int, ...]
    """The major factor of each dim in the op's rule; -1 if the dim has none."""
    bytes: float


@dataclass(frozen=True)
class Work:
    """Ops that share their rule, types and classes."""

    name: str
    classes: tuple[int, ...]
    """The class of each factor."""
    sizes: tuple[int, ...]
    """The size of each factor."""
    reduction: frozenset[int]
    """The reduction factors."""
    replicated: frozenset[int]
    """The factors that need replication."""
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    flops: float
    """FLOPs of one run."""

    @property
    def is_product(self) -> bool:
        """Whether it is a matrix product or a convolution."""
        return self.name in _PRODUCTS


class DimClasses:
    """The classes of the dims of a program, and its ops by classes."""

    def __init__(
        self,
        result: Result,
        tied: Iterable[list[int]],
        unnamed: Iterable[int],
        trips: list[int],
    ) -> None:
        """Merge the dims of ``result``, the program propagated as XLA does.

        Args:
            result: any propagated program; its shardings do not matter.
            tied: groups of arguments, by number, that are to be sharded alike.
            unnamed: the numbers of the arguments without paths.
            trips: the trip count of each loop, in program order.
        """
        self.module: Module = result._as_xla(keep_ports=True)[0]
        """The program, propagated as XLA does."""
        self._start: dict[Value, int] = {}
        self._parents: list[int] = []
        self._filled: set[int | None] = set()
        """The first dims of broadcast scalars. These relate no dims: each user can make its own
        shard for free."""
        self._rules: dict[int, OpShardingRule | None] = {}
        self._ops: list[tuple[Op, OpShardingRule, int]] = []
        self._trips = iter(trips)
        entry: tuple[Value, ...] = ()
        returned: tuple[Value, ...] = ()
        main = self.module.entry
        for op in functions(self.module):
            self._visit_blocks(op, 1)
            if op.function == main:
                [block] = op.regions[0]
                entry, returned = block.arguments, block.ops[-1].operands
        for group in tied:
            layers = [entry[number] for number in group]
            step = 2 if self._would_join(layers) else 1
            for number in range(step, len(layers)):
                self._merge_dims(layers[number % step], layers[number])
        for group in self._alike([entry[number] for number in unnamed]):
            for other in group[1:]:
                self._union(group[0], other)
        self.arguments = [self.of(value) for value in entry]
        """The classes of the dims of each argument."""
        self.results = [self.of(value) for value in returned]
        """The classes of the dims of each result."""
        self.work = self._grouped()
        """The distinct ops, with how often each runs."""

    def ops(self) -> Iterator[Op]:
        """Yield the ops of the program that have a sharding rule, in order."""
        return (op for op, _, _ in self._ops)

    def first_values(self) -> list[tuple[Value, tuple[int, ...], float]]:
        """Return, for each tuple of classes, the first result with it and the bytes of all of
        them."""
        found: dict[tuple[int, ...], tuple[Value, float]] = {}
        for op, _, runs in self._ops:
            for value in op.results:
                classes = self.of(value)
                first, total = found.get(classes, (value, 0.0))
                found[classes] = (first, total + (value.bytes or 0) * runs)
        return [(value, classes, total) for classes, (value, total) in found.items()]

    def of(self, value: Value) -> tuple[int, ...]:
        """Return the class of each dim of ``value``."""
        start = self._dims(value)
        if start is None:
            return ()
        shape = value.shape or ()
        return tuple(
            NO_CLASS if size == 1 else self._find(start + dim) for dim, size in enumerate(shape)
        )

    def _visit_blocks(self, op: Op, runs: int) -> None:
        for inner, times in inside(op, runs, self._runs_inside):
            if inner.name in _REGIONS:
                self._merge_regions(inner)
            else:
                self._visit(inner, times)

    def _runs_inside(self, op: Op, runs: int) -> int | None:
        if op.name not in _REGIONS:
            return None
        return runs * max(next(self._trips, 1), 1) if op.name == "stablehlo.while" else runs

    def _visit(self, op: Op, runs: int) -> None:
        if op.name in _PASSES:
            for value, passed in zip(op.operands, op.results, strict=True):
                self._merge_dims(value, passed)
            return
        rule = self._rule(op)
        if rule is None:
            return
        sides = (
            (op.operands, rule.operand_mappings),
            (op.results, rule.result_mappings),
        )
        if op.name == "stablehlo.broadcast_in_dim" and not any(rule.operand_mappings):
            self._filled |= {self._dims(value) for value in op.results}
        first: dict[int, int] = {}
        blocked = set(rule.blocked_propagation)
        sizes = rule.factor_sizes
        for values, mappings in sides:
            for value, mapping in zip(values, mappings, strict=True):
                start = self._dims(value)
                if start is None or start in self._filled:
                    continue
                for dim, factors in enumerate(mapping):
                    factor = _major(factors, sizes)
                    if factor < 0 or factor in blocked:
                        continue
                    self._union(first.setdefault(factor, start + dim), start + dim)
        self._ops.append((op, rule, runs))

    def _rule(self, op: Op) -> OpShardingRule | None:
        signature = op.signature
        if signature is None or not op.results:
            return None
        if signature not in self._rules:
            try:
                self._rules[signature] = self.module.rule(op.results[0])
            except ShardcoreError:
                self._rules[signature] = _pointwise(op)
        return self._rules[signature]

    def _merge_regions(self, op: Op) -> None:
        is_loop = op.name == "stablehlo.while"
        for number, region in enumerate(op.regions):
            # The first region of a while loop returns its condition.
            returns_results = not is_loop or number > 0
            for block in region:
                if op.name in _TAKES_OPERANDS:
                    for value, argument in zip(op.operands, block.arguments, strict=False):
                        self._merge_dims(value, argument)
                last = block.ops[-1] if block.ops and returns_results else None
                if last is not None and len(last.operands) == len(op.results):
                    for value, result in zip(last.operands, op.results, strict=True):
                        self._merge_dims(value, result)
        if is_loop:
            for value, result in zip(op.operands, op.results, strict=False):
                self._merge_dims(value, result)

    def _merge_dims(self, one: Value, other: Value) -> None:
        """Merge the dims of equal size; dims along manual axes have different sizes inside."""
        first, second = self._dims(one), self._dims(other)
        if first is None or second is None:
            return
        sizes = zip(one.shape or (), other.shape or (), strict=True)
        for dim, (size, other_size) in enumerate(sizes):
            if size == other_size:
                self._union(first + dim, second + dim)

    def _would_join(self, layers: Sequence[Value]) -> bool:
        """Whether tying all ``layers`` would put two dims of one layer into one class, as where the
        columns of one layer are the rows of the next."""
        parents: dict[int, int] = {}

        def find(number: int) -> int:
            while (above := parents.setdefault(number, number)) != number:
                # Halves the path, so that a chain of all layers is not walked for each.
                number = parents[number] = parents[above]
            return number

        starts = [start for start in map(self._dims, layers) if start is not None]
        dims = range(len(layers[0].shape or ()))
        own = [[self._find(start + dim) for dim in dims] for start in starts]
        for row in own[1:]:
            for one, other in zip(own[0], row, strict=True):
                parents[find(one)] = find(other)
        return any(len(set(map(find, row))) < len(set(row)) for row in own)

    def _alike(self, arguments: Sequence[Value]) -> Iterator[list[int]]:
        """The groups of classes of ``arguments`` that are used alike."""
        wanted = {number for value in arguments for number in self.of(value)} - {NO_CLASS}
        if not wanted:
            return
        uses = Uses(wanted)
        for op, _, _ in self._ops:
            for place, value in enumerate((*op.operands, *op.results)):
                uses.add(op.signature, place, self.of(value))
        yield from uses.alike()

    def _dims(self, value: Value) -> int | None:
        """The number of the first dim of ``value``; ``None`` if its shape is unknown."""
        known = self._start.get(value)
        if known is None:
            shape = value.shape
            if shape is None or None in shape:
                return None
            known = self._start[value] = len(self._parents)
            self._parents += range(known, known + len(shape))
        return known

    def _find(self, dim: int) -> int:
        parents = self._parents
        while parents[dim] != dim:
            parents[dim] = dim = parents[parents[dim]]
        return dim

    def _union(self, one: int, other: int) -> None:
        one, other = self._find(one), self._find(other)
        if one != other:
            self._parents[max(one, other)] = min(one, other)

    def _grouped(self) -> dict[Work, int]:
        """The ops of the program, grouped by rule, types and classes."""
        found: dict[Work, int] = {}
        known: dict[tuple[object, ...], Work] = {}
        for op, rule, runs in self._ops:
            classes = tuple(map(self.of, (*op.operands, *op.results)))
            key = (op.signature, classes)
            work = known.get(key)
            if work is None:
                work = known[key] = _work(op, rule, classes)
            found[work] = found.get(work, 0) + runs
        return found


def functions(module: Module) -> list[Op]:
    """Return the functions of ``module``, a program propagated as XLA does, that run: all if some
    calls are not inlined, else the entry function only.
    """
    ops = module.ops()
    every = [op for op in ops if op.name == "func.func" and op.regions and op.regions[0]]
    if any(op.name in ("func.call", "stablehlo.composite") for op in ops):
        return every
    main = module.entry
    return [op for op in every if op.function == main]


def inside(
    op: Op, runs: int, runs_inside: Callable[[Op, int], int | None]
) -> Iterator[tuple[Op, int]]:
    """Yield the ops in the regions of ``op``, in order, and how often each runs.

    ``runs_inside(op, runs)`` gives the number of runs of an op's regions; for ``None`` the regions
    are left out.
    """
    # A loop, because regions may be nested deeper than Python's recursion limit.
    around = [(_children(op), runs)]
    while around:
        ops, runs = around[-1]
        inner = next(ops, None)
        if inner is None:
            around.pop()
            continue
        yield inner, runs
        times = runs_inside(inner, runs)
        if times is not None:
            around.append((_children(inner), times))


def _children(op: Op) -> Iterator[Op]:
    return (inner for region in op.regions for block in region for inner in block.ops)


def _major(factors: Iterable[int], sizes: tuple[int, ...]) -> int:
    """The major factor of a dim that can be sharded; -1 if there is none."""
    return next((factor for factor in factors if sizes[factor] > 1), -1)


def _pointwise(op: Op) -> OpShardingRule | None:
    """An elementwise rule for a CHLO op that has no rule, if all its shapes are equal."""
    values = (*op.operands, *op.results)
    shape = op.results[0].shape
    if not op.name.startswith("chlo.") or shape is None or any(v.shape != shape for v in values):
        return None
    dims = [[dim] for dim in range(len(shape))]
    return OpShardingRule(
        [size or 1 for size in shape],
        [dims] * len(op.operands),
        [dims] * len(op.results),
    )


def _work(op: Op, rule: OpShardingRule, classes: tuple[tuple[int, ...], ...]) -> Work:
    sizes = rule.factor_sizes
    mappings = (*rule.operand_mappings, *rule.result_mappings)
    of_factors = [NO_CLASS] * len(sizes)
    tensors = []
    for value, mapping, found in zip((*op.operands, *op.results), mappings, classes, strict=True):
        factors = tuple(_major(dim, sizes) for dim in mapping)
        for factor, of_dim in zip(factors, found, strict=False):
            if factor >= 0:
                of_factors[factor] = of_dim
        shape = tuple(size or 1 for size in value.shape or ())
        tensors.append(Tensor(found, shape, factors, float(value.bytes or 0)))
    count = len(op.operands)
    return Work(
        op.name,
        tuple(of_factors),
        sizes,
        frozenset(rule.reduction),
        frozenset(rule.need_replication),
        tuple(tensors[:count]),
        tuple(tensors[count:]),
        _flops(op, sizes, tensors),
    )


def _flops(op: Op, sizes: tuple[int, ...], tensors: list[Tensor]) -> float:
    if op.name == "stablehlo.convolution":
        kernel, result = tensors[1], tensors[2]
        # The output features are in both shapes, but are multiplied once.
        features = [
            size
            for size, factor in zip(kernel.sizes, kernel.factors, strict=True)
            if factor >= 0 and factor in result.factors
        ]
        return 2.0 * math.prod(result.sizes) * math.prod(kernel.sizes) / math.prod(features)
    if op.name in _PRODUCTS:
        return 2.0 * math.prod(sizes)
    return float(max((math.prod(tensor.sizes) for tensor in tensors), default=0))


def class_bytes(work: Mapping[Work, int]) -> Iterator[tuple[int, float]]:
    """Yield, for each class and each distinct result with it, the bytes of all such results."""
    for each, count in work.items():
        for tensor in each.results:
            for found in set(tensor.classes) - {NO_CLASS}:
                yield found, tensor.bytes * count
