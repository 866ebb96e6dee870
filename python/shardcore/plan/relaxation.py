"""A lower bound of what every plan sends, or computes redundantly, for its products.

A plan splits each product into parts along its batch, rows, columns and summed dims (see
:mod:`~.products`), and stores each argument in parts. These degrees alone, whichever mesh axes they
use, bound the bytes that a device receives:

- A product that is summed in r parts receives ``(r - 1) / r`` of its block of the result.
- If a device needs a block of one of c parts of an operand's dim and has computed, or stores, one
  of p parts, it receives the block except what both have in common, which is at most ``1 / max(c,
  p)`` of each dim.

An operand counts for its link only, and values on several links are counted in shares that sum to
one. So no plan costs less than the cheapest choice of degrees for all products and arguments for
which the arguments fit; :class:`StrategyProblem` gives a lower bound for that choice. Degrees are
products of prime factors of the number of devices, so they cover all axes and sub-axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shardcore._core import Port, StrategyProblem
from shardcore.calculus.hardware import Hardware
from shardcore.plan.products import SUMMED, Link, Product, Products

Degrees = tuple[int, ...]
"""The number of parts of each group of dims."""

MOST_AXES = 3
"""The assumed number of physical axes of a torus where it is unknown, an upper bound."""
_MOST_ENTRIES = 12_000_000
"""How many pairs of degrees are considered; further links are left out."""
_ENTRIES_A_SECOND = 60_000
"""How many pairs are considered per second of planning time: about a fifth of it."""
_PAIRS_A_SECOND = 20_000
"""How many pairs of degrees are compared per second of planning time: about a tenth of it."""
_MOST_CHOICES = 512
"""If a product or argument has more degrees, there is no relaxation."""
_CHOICES_A_SECOND = 30
"""How many degrees are allowed per second of planning time: the solver compares them pairwise."""
_ROUNDS = 2
_SCALE = 1e9
"""Costs are scaled so that they sum to this, a size that suits the solver."""


@dataclass(frozen=True)
class Prices:
    """The prices of the relaxation."""

    second: float
    """The price of a second of FLOPs beyond the device's share."""
    byte: float
    """The price of a byte that a device receives."""
    flops_per_second: float


BYTES = Prices(second=0.0, byte=1.0, flops_per_second=math.inf)
"""Prices that count received bytes only."""


def seconds_of(chip: Hardware, options: Mapping[str, Any]) -> Prices:
    """Return prices in seconds on ``chip``, under the options of :func:`shardcore.cost`, with all
    links of a chip at their full bandwidth."""
    links = 2 * sum(chip.axis_links or [chip.physical_axes or MOST_AXES]) if chip.is_torus else 1
    rate = max(links * chip.link_bytes_per_second, chip.node_bytes_per_second)
    rate *= max(options.get("efficiency", 1.0), 1.0)
    return Prices(1.0, 1 / rate, max(chip.flops.values()))


def least_extra(
    found: Products,
    ports: Sequence[Port],
    devices: int,
    limit: float,
    prices: Prices,
    seconds: float,
) -> float:
    """Return a lower bound of what every plan costs in addition to its share of all products.

    Args:
        found: the products of the program.
        ports: its arguments.
        devices: the number of devices.
        limit: bytes of memory of a device.
        prices: the prices.
        seconds: the planning time; if it is short, fewer links are considered.
    """
    problem = _Problem(found, ports, devices, limit, prices, seconds)
    return problem.bound() if problem.is_small else 0.0


class _Problem:
    """The choice of degrees for all products and arguments."""

    def __init__(
        self,
        found: Products,
        ports: Sequence[Port],
        devices: int,
        limit: float,
        prices: Prices,
        seconds: float,
    ) -> None:
        self._found, self._ports, self._devices = found, ports, devices
        self._most_entries = min(int(seconds * _ENTRIES_A_SECOND), _MOST_ENTRIES)
        self._most_pairs = int(seconds * _PAIRS_A_SECOND)
        self._limit, self._prices = limit, prices
        self._choices: dict[tuple[int, ...], list[Degrees]] = {}
        self._tables: dict[tuple[object, ...], list[float]] = {}
        whole = sum(port.bytes or 0 for port in ports)
        linked = {link.source for link in found.links if link.is_argument}
        # If all arguments fit unsharded, they may be replicated, so reading them sends nothing.
        self._stored = sorted(linked) if whole > limit else []
        sizes = [product.sizes for product in found.products]
        sizes += [_shape(ports[number]) for number in self._stored]
        self._sum = self._most()
        self._scale = _SCALE / self._sum if self._sum else 0.0
        self.is_small = bool(found.products) and all(
            math.comb(_num_primes(devices) + sum(size > 1 for size in each), _num_primes(devices))
            <= min(_MOST_CHOICES, seconds * _CHOICES_A_SECOND)
            for each in dict.fromkeys(sizes)
        )
        """Whether there are few enough degrees to choose from."""

    def bound(self) -> float:
        """A lower bound of the cost of every choice."""
        nodes, edges = list(self._nodes()), list(self._edges())
        if not self._sum:
            return 0.0
        rest = sum(
            (port.bytes or 0) / self._devices
            for port in self._ports
            if port.index not in self._stored
        )
        limit = max(math.ceil(min(self._limit, 2**60) - rest), 0) if self._stored else None
        problem = StrategyProblem(nodes, edges, limit)
        bound = problem.solve(rounds=_ROUNDS, threads=1).bound / self._scale
        return max(bound, 0.0) if math.isfinite(bound) else 0.0

    def _most(self) -> float:
        """An upper bound of the cost of a choice, by sizes alone."""
        of_products = sum(
            (
                each.flops / self._prices.flops_per_second * self._prices.second
                + each.result_bytes * self._prices.byte
            )
            * each.runs
            for each in self._found.products
        )
        return of_products + sum(self._weight(link) for link in self._found.links)

    def _weight(self, link: Link) -> float:
        """The cost to receive all values of a link."""
        target = self._found.products[link.target]
        runs = 1 if link.is_argument else self._found.products[link.source].runs
        return link.bytes * link.share * min(runs, target.runs) * self._prices.byte

    def _nodes(self) -> Iterator[tuple[list[float], list[int], tuple[int, int]]]:
        for product in self._found.products:
            choices = self._of(product.sizes)
            costs = [self._alone(product, degrees) * self._scale for degrees in choices]
            yield costs, [0] * len(costs), (0, 1)
        for number in self._stored:
            port = self._ports[number]
            choices = self._of(_shape(port))
            usages = [math.floor((port.bytes or 0) / math.prod(degrees)) for degrees in choices]
            yield [0.0] * len(choices), usages, (0, 1)

    def _alone(self, product: Product, degrees: Degrees) -> float:
        """The cost of a product on its own: redundant computation, and the reduction of its
        result."""
        share = 1 / math.prod(degrees) - 1 / self._devices
        seconds = max(share, 0.0) * product.flops / self._prices.flops_per_second
        block = product.result_bytes * degrees[SUMMED] / math.prod(degrees)
        received = block * (1 - 1 / degrees[SUMMED])
        return (seconds * self._prices.second + received * self._prices.byte) * product.runs

    def _edges(self) -> Iterator[tuple[tuple[int, int], list[float]]]:
        first = len(self._found.products)
        places = {number: first + place for place, number in enumerate(self._stored)}
        entries = 0
        for link in self._found.links:
            source = places.get(link.source) if link.is_argument else link.source
            if source is None or source == link.target:
                continue
            choices = self._of(self._sizes(link))
            entries += len(choices) * len(self._of(self._found.products[link.target].sizes))
            if entries > self._most_entries:
                return
            table = self._table(link)
            if table is None:
                continue
            yield (source, link.target), table

    def _sizes(self, link: Link) -> tuple[int, ...]:
        """The sizes of the groups of the source of ``link``."""
        if link.is_argument:
            return _shape(self._ports[link.source])
        return self._found.products[link.source].sizes

    def _table(self, link: Link) -> list[float] | None:
        """The cost for each pair of degrees of the source and target of ``link``; ``None`` if the
        link is left out."""
        target = self._found.products[link.target]
        if link.is_argument:
            shape = _shape(self._ports[link.source])
            made, sizes = tuple(range(len(shape))), shape
        else:
            source = self._found.products[link.source]
            shape, made, sizes = source.shapes[2], source.dims[2], source.sizes
        weight = self._weight(link) * self._scale
        taken = target.dims[link.operand]
        order = link.order
        key = (made, taken, order, shape, sizes, target.sizes, link.is_argument, weight)
        if key not in self._tables:
            self._most_pairs -= len(self._of(sizes)) * len(self._of(target.sizes))
            if self._most_pairs < 0:
                return None
            parts = _parts(shape, made, taken, order, self._devices)
            self._tables[key] = [
                weight * _received(parts, one, other, link.is_argument)
                for one in self._of(sizes)
                for other in self._of(target.sizes)
            ]
        return self._tables[key]

    def _of(self, sizes: tuple[int, ...]) -> list[Degrees]:
        """The possible degrees for groups of these sizes; degrees with empty parts are left out."""
        if sizes not in self._choices:
            found: dict[Degrees, None] = {}
            for degrees in _factorings(self._devices, [size > 1 for size in sizes]):
                clipped = (min(d, size) for d, size in zip(degrees, sizes, strict=True))
                found[tuple(clipped)] = None
            self._choices[sizes] = list(found)
        return self._choices[sizes]


_Parts = list[tuple[tuple[int, ...], tuple[int, ...], bool]]
"""Corresponding dims: their groups in the source and in the target, and whether they are divided
evenly."""


def _parts(
    shape: Sequence[int],
    made: Sequence[int],
    taken: Sequence[int],
    order: tuple[int, ...] | None,
    devices: int,
) -> _Parts:
    """The dims of an operand, by the groups that they belong to in the source and in the target."""
    if order is None:
        is_even = all(size == 1 or size % devices == 0 for size in shape)
        return [(tuple(dict.fromkeys(made)), tuple(dict.fromkeys(taken)), is_even)]
    pairs = [(made[dim], taken[place], shape[dim]) for place, dim in enumerate(order)]
    found: list[tuple[set[int], set[int], list[int]]] = []
    for one, other, size in pairs:
        own, theirs, sizes = {one}, {other}, [size]
        for each in [each for each in found if one in each[0] or other in each[1]]:
            found.remove(each)
            own, theirs, sizes = own | each[0], theirs | each[1], sizes + each[2]
        found.append((own, theirs, sizes))
    return [
        (tuple(sorted(own)), tuple(sorted(theirs)), _is_even(sizes, devices))
        for own, theirs, sizes in found
    ]


def _is_even(sizes: Sequence[int], devices: int) -> bool:
    """Whether dims of these sizes are divided evenly, however they are divided."""
    large = [size for size in sizes if size > 1]
    least = 1 if len(large) == 1 else devices
    return all(
        size >= least and all(size % part == 0 for part in _divisors(devices) if part <= size)
        for size in large
    )


def _divisors(number: int) -> set[int]:
    found = {1}
    for prime in _primes(number):
        found |= {part * prime for part in found}
    return found


def _received(parts: _Parts, one: Degrees, other: Degrees, is_argument: bool) -> float:
    """The least share of a tensor that a device receives."""
    block = common = 1.0
    for made, taken, is_even in parts:
        own = math.prod(one[group] for group in made)
        needed = math.prod(other[group] for group in taken)
        block /= needed
        common /= max(own, needed) if is_even else needed
    if not is_argument:
        # Partial sums stay in parts.
        common = min(common, 1 / math.prod(one)) if all(e for _, _, e in parts) else common
    return max(block - common, 0.0)


def _shape(port: Port) -> tuple[int, ...]:
    return tuple(size or 1 for size in port.shape or ())


def _num_primes(number: int) -> int:
    return sum(1 for _ in _primes(number))


def _primes(number: int) -> Iterator[int]:
    """The prime factors of ``number``."""
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            yield divisor
            number //= divisor
        divisor += 1 if divisor * divisor <= number else max(number - divisor, 1)


def _factorings(number: int, allowed: Sequence[bool]) -> list[Degrees]:
    """Numbers whose product divides ``number``, with 1 in places that are not allowed."""
    found: dict[Degrees, None] = {(1,) * len(allowed): None}
    for prime in _primes(number):
        for degrees in list(found):
            for place, may in enumerate(allowed):
                if may:
                    more = list(degrees)
                    more[place] *= prime
                    found[tuple(more)] = None
    return list(found)
