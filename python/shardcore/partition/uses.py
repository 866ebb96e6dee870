"""What a program does with its arguments, as far as the choice of test data depends on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from shardcore import Block, Module, Op, Value

__all__ = ["Use", "uses"]

_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        "abs", "all_gather", "all_to_all", "broadcast", "broadcast_in_dim", "collective_permute",
        "concatenate", "dynamic_broadcast_in_dim", "dynamic_reshape", "negate",
        "optimization_barrier", "pad", "reshape", "reverse", "slice", "sort", "transpose",
    )
)  # fmt: skip
"""Ops that move elements of their operands into the result, perhaps with the other sign."""
_ARITHMETIC = frozenset(
    f"stablehlo.{name}"
    for name in (
        "add", "and", "clamp", "compare", "divide", "maximum", "minimum", "multiply", "not", "or",
        "remainder", "subtract",
    )
)  # fmt: skip
"""Arithmetic ops that compute indices and loop bounds."""
_PRODUCTS = frozenset(
    f"stablehlo.{name}" for name in ("convolution", "dot", "dot_general", "multiply", "power")
)
_DIVISIONS = frozenset(("stablehlo.divide", "stablehlo.remainder"))
_FOLDS = frozenset(
    f"stablehlo.{name}"
    for name in ("all_reduce", "map", "reduce", "reduce_scatter", "reduce_window", "scatter")
)
"""Ops whose body combines elements of their operands, such as reductions."""
_RETURNS = ("func.return", "sdy.return", "stablehlo.return", "chlo.return")
_MOST_PASSES = 8
"""How many iterations of a loop a value is followed for; half as many in a nested loop, and so on,
so that the work stays bounded in deep nests."""


@dataclass
class Use:
    """What a program does with one argument."""

    index_of: int = 0
    """The size of the largest dim that it indexes; 0 if it is no index."""
    is_bound: bool = False
    """Whether it determines the trip count of a loop."""
    is_divisor: bool = False
    """Whether something is divided by its elements."""
    is_factor: bool = False
    """Whether its elements are multiplied: integers with each other, or floats by a reduction."""
    all_of: int = 0
    """How many of its boolean elements one all-reduction combines; 0 if none."""
    all_results: int = 0
    """How many results such all-reductions have."""
    any_of: int = 0
    """How many of its boolean elements one any-reduction combines; 0 if none."""
    any_results: int = 0
    """How many results such any-reductions have."""


class _Flow(NamedTuple):
    """The arguments that a value depends on, as bit sets."""

    moved: int = 0
    """The arguments whose elements, or products of them, the value contains."""
    computed: int = 0
    """The arguments from which the value is computed by other arithmetic."""

    def __or__(self, other: _Flow) -> _Flow:
        return _Flow(self.moved | other.moved, self.computed | other.computed)


_NOTHING = _Flow()


def uses(module: Module) -> list[Use]:
    """Return what ``module`` does with each argument of its entry function."""
    functions = {op.attributes["sym_name"]: op for op in module.ops() if op.name == "func.func"}
    entry = functions.get("main") or next(iter(functions.values()), None)
    if entry is None or not entry.regions[0]:
        return []
    count = len(entry.regions[0][0].arguments)
    walk = _Walk(functions, [Use() for _ in range(count)])
    walk.block(entry.regions[0][0], [_Flow(1 << at, 1 << at) for at in range(count)])
    return walk.found


class _Walk:
    """Follows the arguments through a program, op by op."""

    def __init__(self, functions: dict[str, Op], found: list[Use]) -> None:
        self.functions = functions
        self.found = found
        self.depth = 0
        """The number of enclosing loops."""
        self.flows: dict[Value, _Flow] = {}
        self.calls: dict[tuple[str, tuple[_Flow, ...]], list[_Flow]] = {}

    def of(self, value: Value) -> _Flow:
        return self.flows.get(value, _NOTHING)

    def mark(self, arguments: int, change: Callable[[Use], object]) -> None:
        """Apply ``change`` to the uses of ``arguments``, a bit set."""
        for at in _numbers(arguments):
            change(self.found[at])

    def block(self, block: Block, flows: Sequence[_Flow]) -> list[_Flow]:
        """Follow ``flows``, the flows of the arguments of ``block``, to the values that it
        returns."""
        self.flows.update(zip(block.arguments, flows, strict=False))
        for op in block.ops:
            if op.name in _RETURNS:
                return [self.of(value) for value in op.operands]
            found = self.op(op, [self.of(value) for value in op.operands])
            self.flows.update(
                (value, flow) for value, flow in zip(op.results, found, strict=False) if any(flow)
            )
        return []

    def op(self, op: Op, flows: list[_Flow]) -> list[_Flow]:
        """The flows of the results of ``op``, given those of its operands."""
        name = op.name
        if name == "stablehlo.while":
            return self.loop(op, flows)
        if name in ("stablehlo.if", "stablehlo.case"):
            branches = [self.block(blocks[0], []) for blocks in op.regions]
            return [_union(each) for each in zip(*branches, strict=False)]
        if name in ("func.call", "stablehlo.composite"):
            return self.call(op, flows)
        if name in ("sdy.manual_computation", "sdy.named_computation"):
            return self.block(op.regions[0][0], flows)
        if not any(map(any, flows)):
            return []
        self.look_at(op, flows)
        return [self.through(op, flows)] * len(op.results)

    def call(self, op: Op, flows: list[_Flow]) -> list[_Flow]:
        attributes = op.attributes
        name = str(attributes.get("callee") or attributes.get("decomposition"))
        callee = self.functions.get(name)
        key = (name, tuple(flows))
        if callee is None or not callee.regions[0]:
            return []
        if key not in self.calls:
            # A recursive call adds nothing.
            self.calls[key] = []
            self.calls[key] = self.block(callee.regions[0][0], flows)
        return self.calls[key]

    def loop(self, op: Op, flows: list[_Flow]) -> list[_Flow]:
        condition, body = (blocks[0] for blocks in op.regions)
        passes = max(_MOST_PASSES >> self.depth, 1)
        self.depth += 1
        for _ in range(passes):
            after = self.block(body, flows)
            joined = [a | b for a, b in zip(flows, after, strict=False)]
            if joined == flows:
                break
            flows = joined
        self.depth -= 1
        [goes_on] = self.block(condition, flows) or [_NOTHING]
        self.mark(goes_on.computed, lambda use: setattr(use, "is_bound", True))
        return flows

    def through(self, op: Op, flows: list[_Flow]) -> _Flow:
        """The flow of the result of ``op``, given those of its operands."""
        name = op.name
        is_boolean = bool(op.results) and op.results[0].dtype == "i1"
        if name in ("stablehlo.select", "stablehlo.dynamic_update_slice"):
            return _union(flows[1:] if name.endswith("select") else flows[:2])
        if name in ("stablehlo.dynamic_slice", "stablehlo.gather"):
            return flows[0]
        if name == "stablehlo.convert":
            was_boolean = op.operands[0].dtype == "i1"
            return flows[0] if is_boolean == was_boolean else _Flow(0, flows[0].computed)
        if name == "stablehlo.multiply":
            return _union(flows)
        if name in _MOVES or name.startswith("sdy.") or name == "stablehlo.custom_call":
            return _union(flows)
        if name in _ARITHMETIC:
            return _Flow(0, _union(flows).computed)
        return _NOTHING

    def look_at(self, op: Op, flows: list[_Flow]) -> None:
        """Note what ``op`` does with the arguments that reach its operands."""
        name = op.name
        dtype = op.operands[0].dtype or ""
        if name in _PRODUCTS and _is_integer(dtype):
            # A product with a constant needs no special data.
            if all(flow.moved for flow in flows[:2]):
                self.mark(_union(flows[:2]).moved, _is_factor)
        elif name in _DIVISIONS:
            self.mark(flows[1].moved, lambda use: setattr(use, "is_divisor", True))
        elif name in _FOLDS:
            self.fold(op, flows)
        for at, length in _indexed(op):
            self.mark(flows[at].computed, partial(_index_of, length))

    def fold(self, op: Op, flows: list[_Flow]) -> None:
        """Note what the body of a reduction does."""
        [[body]] = op.regions
        names = {each.name.removeprefix("stablehlo.") for each in body.ops}
        moved = _union(flows).moved
        whole, left = (
            math.prod(n or 1 for n in value.shape or ())
            for value in (op.operands[0], op.results[0])
        )
        length = max(whole // max(left, 1), 4)
        if op.operands[0].dtype != "i1":
            if "multiply" in names:
                self.mark(moved, _is_factor)
        elif names & {"and", "minimum", "multiply"}:
            self.mark(moved, partial(_all_of, length, left))
        elif names & {"or", "maximum", "add"}:
            self.mark(moved, partial(_any_of, length, left))


def _is_factor(use: Use) -> None:
    use.is_factor = True


def _all_of(length: int, results: int, use: Use) -> None:
    if length > use.all_of:
        use.all_of, use.all_results = length, results


def _any_of(length: int, results: int, use: Use) -> None:
    if length > use.any_of:
        use.any_of, use.any_results = length, results


def _index_of(length: int, use: Use) -> None:
    use.index_of = max(use.index_of, length)


def _is_integer(dtype: str) -> bool:
    return dtype.startswith(("i", "ui", "si")) and dtype != "i1"


def _indexed(op: Op) -> Iterator[tuple[int, int]]:
    """The operands of ``op`` that are indices: the operand's number and the size of the largest dim
    that it indexes."""
    name = op.name
    if name in ("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice"):
        first = 1 if name == "stablehlo.dynamic_slice" else 2
        part = op.results[0] if first == 1 else op.operands[1]
        for at, (length, size) in enumerate(
            zip(op.operands[0].shape or (), part.shape or (), strict=False)
        ):
            if length != size:
                yield first + at, length or 0
    elif name == "stablehlo.gather":
        dims = op.attributes["dimension_numbers"].get("start_index_map", ())
        yield 1, _longest(op.operands[0], dims)
    elif name == "stablehlo.scatter":
        numbers = op.attributes["scatter_dimension_numbers"]
        dims = numbers.get("scatter_dims_to_operand_dims", ())
        yield len(op.results), _longest(op.operands[0], dims)
    elif name == "stablehlo.torch_index_select":
        yield 1, _longest(op.operands[0], [op.attributes["dim"]])


def _longest(value: Value, dims: Iterable[int]) -> int:
    return max(((value.shape or ())[dim] or 0 for dim in dims), default=0)


def _union(flows: Iterable[_Flow]) -> _Flow:
    whole = _NOTHING
    for flow in flows:
        whole |= flow
    return whole


def _numbers(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
