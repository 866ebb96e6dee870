"""For each value the program arguments that it depends on, and the results that depend on it.

Sets of arguments and results are bit sets. A graph is a list of nodes with operands first; what a
node calls is not considered here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

__all__ = ["Flow", "Node", "flow"]


class Node(NamedTuple):
    """An instruction."""

    name: Hashable
    operands: Sequence[Hashable]
    tuple_index: int | None = None
    """The index of the tuple element that it reads; ``None`` if it reads none."""
    is_tuple: bool = False
    """Whether it is a tuple of its operands."""
    depends: tuple[int, ...] = ()
    """For each element, the operands that it is computed from, as a bit set; by default all."""


class Flow(NamedTuple):
    """Sets of arguments and results, by name of the value."""

    sources: dict[Hashable, int]
    """The arguments that each value is computed from."""
    source_elements: dict[Hashable, list[int]]
    """The arguments that each element of a tuple is computed from."""
    targets: dict[Hashable, int]
    """The results that are computed from each value."""
    target_elements: dict[Hashable, dict[int, int]]
    """The results that are computed from each element of a tuple, for elements used on their
    own."""

    def of(self, name: Hashable) -> tuple[int, int]:
        """Return the sources and targets of the value ``name``."""
        return self.sources.get(name, 0), self.targets.get(name, 0)


def flow(
    nodes: Sequence[Node],
    given: Mapping[Hashable, int],
    given_elements: Mapping[Hashable, list[int]],
    root: Hashable,
    wanted: int | Sequence[int],
) -> Flow:
    """Return the flow of ``nodes``.

    Args:
        nodes: the instructions, operands first.
        given: the sources of values without operands.
        given_elements: the same, for each element of tuples.
        root: the name of the result.
        wanted: the targets of the root, or of each of its elements.
    """
    sources = dict(given)
    elements = dict(given_elements)
    for node in nodes:
        if node.name in sources:
            continue
        if node.tuple_index is not None:
            known = elements.get(node.operands[0])
            if known is not None and node.tuple_index < len(known):
                sources[node.name] = known[node.tuple_index]
                continue
        rows = [sources.get(operand, 0) for operand in node.operands]
        if node.is_tuple:
            elements[node.name] = rows
        elif node.depends:
            elements[node.name] = [
                _union(row for at, row in enumerate(rows) if bits >> at & 1)
                for bits in node.depends
            ]
        sources[node.name] = _union(rows)
    targets: dict[Hashable, int] = {}
    of_elements: dict[Hashable, dict[int, int]] = {}
    if isinstance(wanted, int):
        targets[root] = wanted
    else:
        targets[root] = 0
        of_elements[root] = dict(enumerate(wanted))
    for node in reversed(nodes):
        own = targets.get(node.name, 0)
        parts = of_elements.get(node.name)
        if node.tuple_index is not None:
            row = of_elements.setdefault(node.operands[0], {})
            row[node.tuple_index] = row.get(node.tuple_index, 0) | own
            continue
        if parts and not node.is_tuple and not node.depends:
            own |= _union(parts.values())
        targets[node.name] = own
        for place, operand in enumerate(node.operands):
            more = 0
            if parts and node.is_tuple:
                more = parts.get(place, 0)
            elif parts and node.depends:
                used = (row for at, row in parts.items() if _has(node.depends, at, place))
                more = _union(used)
            targets[operand] = targets.get(operand, 0) | own | more
    for name, parts in of_elements.items():
        targets[name] = targets.get(name, 0) | _union(parts.values())
    return Flow(sources, elements, targets, of_elements)


def _has(depends: tuple[int, ...], element: int, place: int) -> bool:
    return element < len(depends) and bool(depends[element] >> place & 1)


def _union(rows: Iterable[int]) -> int:
    union = 0
    for row in rows:
        union |= row
    return union
