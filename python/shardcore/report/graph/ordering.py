"""Rows of a graph, and the order in each of them, in which few edges cross.

A node is in a row below all that it depends on, and as near as that allows to what depends on it.
An edge that passes rows has a place in each of them. Rows are then ordered, over and over from the
top and from the bottom, by the mean place of the neighbours in the row before.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures"; the count of crossings is that of Barth, Jünger and Mutzel, "Simple and efficient
bilayer cross counting".
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

SWEEPS = 24
"""How often rows are ordered: in a picture that is read more of it removes few crossings."""
MOST_PLACES = 1 << 18
"""The places that are ordered, over all sweeps: 0.3 s."""

Edge = tuple[int, int]
Rows = list[list[int]]
"""The nodes of each row, in their order; higher numbers than those of nodes are places where an
edge passes a row."""
Neighbours = Mapping[int, Sequence[int]]


def parts(edges: Sequence[Edge], num_nodes: int) -> Iterator[tuple[Rows, list[Edge]]]:
    """Yield the connected parts of a graph of ``num_nodes`` nodes, each as rows and as edges that
    are cut at each row. Edges lead to higher numbers.
    """
    next_number = num_nodes
    for part in _connected(edges):
        rows, cut, next_number = _cut(part, _row_numbers(part), next_number)
        yield _ordered(rows, cut), cut


def _connected(edges: Sequence[Edge]) -> list[list[Edge]]:
    """The edges of each connected part."""
    parent: dict[int, int] = {}

    def root(node: int) -> int:
        while (above := parent.setdefault(node, node)) != node:
            parent[node] = parent[above]
            node = above
        return node

    for source, target in edges:
        parent[root(source)] = root(target)
    found: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        found[root(edge[0])].append(edge)
    return list(found.values())


def _row_numbers(edges: Sequence[Edge]) -> dict[int, int]:
    """The row of each node."""
    row: dict[int, int] = {}
    needs: dict[int, int] = defaultdict(int)
    users: dict[int, list[int]] = defaultdict(list)
    for source, target in sorted(edges):
        row[target] = max(row.get(target, 0), row.setdefault(source, 0) + 1)
        needs[target] += 1
        users[source].append(target)
    # What makes no edges longer together is moved down to what depends on it.
    for node in sorted(users, reverse=True):
        if len(users[node]) >= needs[node]:
            row[node] = min(row[user] for user in users[node]) - 1
    return row


def _cut(
    edges: Sequence[Edge], row: Mapping[int, int], next_number: int
) -> tuple[Rows, list[Edge], int]:
    """The rows, the edges between neighbouring ones, and the number after those that are used."""
    rows: Rows = [[] for _ in range(max(row.values()) + 1)]
    for node in sorted(row):
        rows[row[node]].append(node)
    cut: list[Edge] = []
    for source, target in edges:
        at = source
        for number in range(row[source] + 1, row[target]):
            rows[number].append(next_number)
            cut.append((at, next_number))
            at, next_number = next_number, next_number + 1
        cut.append((at, target))
    return rows, cut, next_number


def _ordered(rows: Rows, edges: Sequence[Edge]) -> Rows:
    """``rows``, each in the order with the fewest crossings that is found."""
    above: dict[int, list[int]] = defaultdict(list)
    below: dict[int, list[int]] = defaultdict(list)
    for source, target in edges:
        above[target].append(source)
        below[source].append(target)
    place = {item: at for row in rows for at, item in enumerate(row)}
    best, least = [list(row) for row in rows], _crossings(rows, place, below)
    for sweep in range(min(SWEEPS, max(MOST_PLACES // len(place), 2))):
        is_down = sweep % 2 == 0
        neighbours = above if is_down else below
        for row in rows[1:] if is_down else rows[-2::-1]:
            middle = {item: _mean(neighbours[item], place, place[item]) for item in row}
            row.sort(key=middle.__getitem__)
            place.update((item, at) for at, item in enumerate(row))
        count = _crossings(rows, place, below)
        if count < least:
            best, least = [list(row) for row in rows], count
        if not least:
            break
    return best


def _mean(items: Sequence[int], place: Mapping[int, int], default: float) -> float:
    return sum(place[item] for item in items) / len(items) if items else default


def _crossings(rows: Rows, place: Mapping[int, int], below: Neighbours) -> int:
    """How many pairs of edges cross."""
    count = 0
    for row, _ in pairwise(rows):
        seen: list[int] = []
        for item in row:
            ends = [place[other] for other in below.get(item, ())]
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count
