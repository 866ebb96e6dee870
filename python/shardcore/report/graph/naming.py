"""Ways to group ops: by scope, by source line, or by position; and the names of the groups.

Scopes are those of :mod:`shardcore.costs.scopes`. Scopes that differ only in numbers, such as those
of layers, are merged: ``decoder/layer_*/mlp``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from shardcore.costs.scopes import scope_of
from shardcore.labels import file_line
from shardcore.report.graph.grouped import Group
from shardcore.report.graph.model import Graph, Node

_MAX_DEPTH = 8
"""How many levels of scopes are distinguished."""
_LINES = (1, 10, 100, 1000)
"""How many consecutive source lines form one group."""
_PARTS = (20, 5)
"""The numbers of parts, for a program that has neither scopes nor lines."""

_PLACE = re.compile(r"(.+):(\d+):\d+\Z", re.DOTALL)
_NUMBER = re.compile(r"\d+")

Naming = Callable[[int, Node], "Group | None"]
"""Returns the group of an op, given its number; ``None`` for the group of the op before it."""


@dataclass(frozen=True)
class Way:
    """A way to group the ops of a graph."""

    folding: str
    """A description, such as ``"by source line"``."""
    names: Sequence[Group]
    """The label of each group."""
    groups: Sequence[int | None]
    """For each node the number of its group; ``None`` for tensors."""


def ways(graph: Graph) -> Iterator[Way]:
    """Yield ways to group the ops of ``graph``, the finest first; their number is bounded."""
    for folding, naming in _namings(graph):
        yield Way(folding, *_groups(graph, naming))


def ops_of(graph: Graph, scope: str) -> list[int]:
    """Return the ops of ``graph`` in groups called ``scope``, or in the scope of this name, such as
    ``decoder/layer_3``.
    """
    found = {
        number
        for way in ways(graph)
        for number, group in enumerate(way.groups)
        if group is not None and way.names[group].name == scope
    }
    for number, node in enumerate(graph.nodes):
        if node.kind == "op" and f"{_scope(node)}/".startswith(f"{scope}/"):
            found.add(number)
    return sorted(found)


def _scope(op: Node) -> str:
    return scope_of(op.stack)[0]


def _namings(graph: Graph) -> Iterator[tuple[str, Naming]]:
    ops = [node for node in graph.nodes if node.kind == "op"]
    depths = [scope.count("/") + 1 for scope in map(_scope, ops) if scope]
    # If few ops have a scope, lines are more useful.
    if 2 * len(depths) >= len(ops):
        yield "by scope and source line", _by_scope_and_line
        for depth in range(min(_MAX_DEPTH, max(depths, default=0)), 0, -1):
            yield f"by scope to depth {depth}", partial(_by_scope, depth)
    if any(_line(op) is not None for op in ops):
        for lines in _LINES:
            what = "source line" if lines == 1 else f"{lines} source lines"
            yield f"by {what}", partial(_by_line, lines)
    for parts in _PARTS:
        yield "by order", partial(_by_order, max(1, -(-len(ops) // parts)))


def _groups(graph: Graph, naming: Naming) -> tuple[list[Group], list[int | None]]:
    numbers: dict[Group, int] = {}
    groups: list[int | None] = []
    last: Group | None = None
    count = 0
    for node in graph.nodes:
        if node.kind == "tensor":
            groups.append(None)
            continue
        last = naming(count, node) or last or Group("elsewhere")
        groups.append(numbers.setdefault(last, len(numbers)))
        count += 1
    return list(numbers), groups


def _by_scope_and_line(number: int, op: Node) -> Group | None:
    line = _by_line(1, number, op)
    if line is None or not _scope(op):
        return line or _by_scope(_MAX_DEPTH, number, op)
    scope = _by_scope(_MAX_DEPTH, number, op)
    return line if scope is None else Group(f"{scope.name} {line.name}", scope.note)


def _by_scope(depth: int, number: int, op: Node) -> Group | None:
    scope, direction = scope_of(op.stack)
    if not scope:
        return _by_line(_LINES[-1], number, op)
    name = _NUMBER.sub("*", "/".join(scope.split("/")[:depth]))
    return Group(name, _note(direction))


def _by_line(lines: int, number: int, op: Node) -> Group | None:
    found = _line(op)
    if found is None:
        return None
    file, line = found
    first = line // lines * lines
    where = str(line) if lines == 1 else f"{max(1, first)}-{first + lines - 1}"
    return Group(f"{file}:{where}", _note(scope_of(op.stack)[1]))


def _by_order(size: int, number: int, op: Node) -> Group | None:
    first = number // size * size
    return Group(f"ops {first + 1}-{first + size}")


def _line(op: Node) -> tuple[str, int] | None:
    """The file name, without folders, and the line of ``op``."""
    place = None if op.location is None else _PLACE.match(op.location)
    return None if place is None else (file_line(place[1]), int(place[2]))


def _note(direction: str) -> str:
    return "" if direction == "forward" else direction
