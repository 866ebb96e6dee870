"""The products of a program, and the data dependencies between them, for :mod:`~.relaxation`.

The dims of a product form four groups: those of both operands and the result (``BATCH``), of the
left operand and the result (``ROWS``), of the right operand and the result (``COLUMNS``), and the
contracting dims (``SUMMED``). An operand is *linked* to a product or an argument if it is computed
from it by elementwise ops, transposes and reshapes alone: then each of its elements needs an
element of that.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shardcore._core import Module, Op, OpShardingRule, Value
from shardcore.errors import ShardcoreError
from shardcore.plan.classes import functions, inside

BATCH, ROWS, COLUMNS, SUMMED = range(4)
"""The groups of the dims of a product."""

_ARITHMETIC = """
    abs add and atan2 cbrt ceil clamp convert cosine divide exponential exponential_minus_one floor
    log log_plus_one logistic maximum minimum multiply negate power rsqrt select sign sine sqrt
    subtract tanh
"""
_TRANSPOSE, _RESHAPE = "stablehlo.transpose", "stablehlo.reshape"
_BARRIER = "stablehlo.optimization_barrier"
_PASSING = {f"stablehlo.{name}" for name in _ARITHMETIC.split()} | {
    "sdy.sharding_constraint",
    _BARRIER,
    _TRANSPOSE,
    _RESHAPE,
}
"""Ops whose results need, for each element, one element of each operand of equal size."""
_MOST_STEPS = 64
"""How many values are followed back from an operand."""


@dataclass
class Product:
    """A product: a matrix product or a convolution."""

    sizes: tuple[int, ...]
    """The number of elements of each group."""
    dims: tuple[tuple[int, ...], ...]
    """The group of each dim of both operands and of the result."""
    shapes: tuple[tuple[int, ...], ...]
    """The shapes of both operands and of the result."""
    result_bytes: int
    runs: int
    """How often it runs in a step."""

    @property
    def flops(self) -> float:
        """FLOPs of one run on one device."""
        return 2.0 * math.prod(self.sizes)


@dataclass
class Link:
    """A link from an operand of a product to the product or argument that it is computed from."""

    source: int
    """The number of the source: a product, or an argument."""
    is_argument: bool
    target: int
    """The number of the product."""
    operand: int
    """The number of the operand."""
    values: list[Value]
    """The values on the way, including both ends."""
    order: tuple[int, ...] | None
    """For each dim of the operand the dim of the source; ``None`` after a reshape."""
    share: float = 1.0
    """The share of the sent bytes of these values that counts for this link, so that no value
    counts more than once."""

    @property
    def bytes(self) -> int:
        """The bytes of the smallest of the values."""
        return min(value.bytes or 0 for value in self.values)


@dataclass
class Products:
    """The products of a program, and their links."""

    products: list[Product] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)


def products(module: Module, trips: Sequence[int]) -> Products:
    """Return the products of ``module``.

    Args:
        module: the program propagated as XLA does, with calls inlined.
        trips: the trip count of each loop, in program order.
    """
    found = Products()
    made: dict[Value, tuple[Op, int]] = {}
    numbers: dict[Value, int] = {}
    listed: list[tuple[Op, int]] = []
    entry: tuple[Value, ...] = ()
    left = iter(trips)
    rules: dict[int | None, OpShardingRule | None] = {}
    main = module.entry
    for function in functions(module):
        if function.function != main:
            continue
        [block] = function.regions[0]
        entry = block.arguments
        for op, runs in _ops(function, 1, left):
            for place, value in enumerate(op.results):
                made[value] = (op, place)
            product = _product(module, op, runs, rules)
            if product is not None:
                numbers[op.results[0]] = len(found.products)
                found.products.append(product)
                listed.append((op, len(listed)))
    arguments = {value: number for number, value in enumerate(entry)}
    for op, number in listed:
        for place, value in enumerate(op.operands):
            link = _link(value, made, numbers, arguments, number, place)
            if link is not None:
                found.links.append(link)
    count: dict[Value, int] = {}
    for link in found.links:
        for value in link.values:
            count[value] = count.get(value, 0) + 1
    for link in found.links:
        link.share = 1 / max(count[value] for value in link.values)
    return found


def _ops(parent: Op, runs: int, trips: Iterator[int]) -> Iterator[tuple[Op, int]]:
    """The ops inside ``parent`` that certainly run, and how often; branches are left out."""

    def runs_inside(op: Op, runs: int) -> int | None:
        if op.name == "stablehlo.while":
            return runs * next(trips, 0)
        return 0 if op.regions else None

    return ((op, times) for op, times in inside(parent, runs, runs_inside) if times)


def _product(
    module: Module, op: Op, runs: int, rules: dict[int | None, OpShardingRule | None]
) -> Product | None:
    """``op`` as a product; ``None`` if it is no product. ``rules`` are known, by signature."""
    if op.name != "stablehlo.dot_general" or len(op.operands) != 2:
        return None
    if op.signature is None or op.signature not in rules:
        try:
            rules[op.signature] = module.rule(op.results[0])
        except ShardcoreError:
            rules[op.signature] = None
    rule = rules[op.signature]
    shapes = [value.shape for value in (*op.operands, *op.results)]
    is_known = all(shape is not None and None not in shape for shape in shapes)
    if rule is None or not is_known or 0 in rule.factor_sizes:
        return None
    sides = [
        [dim[0] if dim else None for dim in mapping]
        for mapping in (*rule.operand_mappings, *rule.result_mappings)
    ]
    left, right, result = map(set, sides)
    sizes = [1, 1, 1, 1]
    # Dims of size 1 may have no factor.
    group: dict[int | None, int] = {None: BATCH}
    for factor, size in enumerate(rule.factor_sizes):
        if factor not in result:
            group[factor] = SUMMED
        elif factor not in left or factor not in right:
            group[factor] = ROWS if factor in left else COLUMNS
        else:
            group[factor] = BATCH
        sizes[group[factor]] *= size
    return Product(
        tuple(sizes),
        tuple(tuple(group[factor] for factor in side) for side in sides),
        tuple(tuple(size or 1 for size in shape or ()) for shape in shapes),
        op.results[0].bytes or 0,
        runs,
    )


def _link(
    value: Value,
    made: dict[Value, tuple[Op, int]],
    numbers: dict[Value, int],
    arguments: dict[Value, int],
    target: int,
    operand: int,
) -> Link | None:
    """The link of the operand ``value``: to the nearest product or argument that it is computed
    from."""
    rank = len(value.shape or ())
    queue: deque[tuple[Value, list[Value], tuple[int, ...] | None]] = deque()
    queue.append((value, [value], tuple(range(rank))))
    seen = {value}
    while queue and len(seen) <= _MOST_STEPS:
        current, path, order = queue.popleft()
        for known, is_argument in ((numbers, False), (arguments, True)):
            if current in known:
                return Link(known[current], is_argument, target, operand, path, order)
        op, place = made.get(current, (None, 0))
        if op is None or op.name not in _PASSING:
            continue
        taken = op.operands
        if op.name == _BARRIER:
            taken = taken[place : place + 1]
        for each in taken:
            if each not in seen and _size(each) == _size(current):
                seen.add(each)
                queue.append((each, [*path, each], _behind(op, each, order)))
    return None


def _size(value: Value) -> int:
    """The number of elements; 0 if it is unknown."""
    return math.prod(size or 0 for size in value.shape or (0,)) if value.shape != () else 1


def _behind(op: Op, operand: Value, order: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """``order``, which maps dims of a result of ``op``, mapped to the dims of ``operand``."""
    if order is None or op.name == _RESHAPE:
        return None
    if op.name == _TRANSPOSE:
        dims = op.attributes["permutation"]
        return tuple(dims[dim] for dim in order)
    return order if operand.shape == op.results[0].shape else None
