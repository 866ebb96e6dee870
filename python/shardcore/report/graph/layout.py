"""Places the nodes of a graph in rows from top to bottom.

An edge that passes rows has a place in each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from shardcore.report.graph.ordering import Rows, parts
from shardcore.report.graph.rows import places as places_in_rows

if TYPE_CHECKING:
    from shardcore.report.graph.model import Graph

GAP_X, GAP_Y = 24.0, 34.0
"""The gaps between nodes, in pixels."""
WAY = 14.0
"""Width of an edge that passes a row, with the gap beside it."""

Point = tuple[float, float]


class Layout(NamedTuple):
    """The positions of nodes and edges, in pixels from the top left corner."""

    centers: list[Point]
    """The centre of each node."""
    ways: list[list[Point]]
    """For each edge the points that it goes through, from node to node."""
    width: float
    height: float


def layout(graph: Graph, sizes: Sequence[tuple[float, float]]) -> Layout:
    """Return places for the nodes of ``graph``, whose widths and heights are ``sizes``."""
    forward = [edge for edge in graph.edges if edge[0] < edge[1]]
    joined = sorted({number for edge in forward for number in edge})
    dense = {number: index for index, number in enumerate(joined)}
    places: dict[int, Point] = {}
    paths: dict[tuple[int, int], list[Point]] = {}
    left = height = 0.0
    for rows, edges in parts([(dense[a], dense[b]) for a, b in forward], len(joined)):
        of_part = [sizes[number] for number in joined]
        moved, right, bottom = _placed(rows, edges, of_part, left)
        left, height = right, max(height, bottom)
        places.update((joined[node], at) for node, at in moved.items() if node < len(joined))
        for (start, *_, end), points in _paths(edges, moved, len(joined)):
            paths[joined[start], joined[end]] = points
    for number, (wide, high) in enumerate(sizes):
        if number not in places:
            places[number] = (left + (wide + GAP_X) / 2, (high + GAP_Y) / 2)
            left, height = left + wide + GAP_X, max(height, high + GAP_Y)
    centers = [places[number] for number in range(len(graph.nodes))]
    ways = [paths.get((a, b), [places[a], places[b]]) for a, b in graph.edges]
    return Layout(centers, ways, left, height)


def _placed(
    rows: Rows, edges: list[tuple[int, int]], sizes: Sequence[tuple[float, float]], left: float
) -> tuple[dict[int, Point], float, float]:
    """Return the centres of the items in ``rows``, starting at ``left``, and the right and lower
    end."""
    widths = {
        item: sizes[item][0] + GAP_X if item < len(sizes) else WAY for row in rows for item in row
    }
    across = places_in_rows(rows, widths, edges)
    first = min(at - widths[item] / 2 for item, at in across.items())
    right = max(at + widths[item] / 2 for item, at in across.items())
    found: dict[int, Point] = {}
    top = 0.0
    for row in rows:
        high = max((sizes[item][1] for item in row if item < len(sizes)), default=0.0) + GAP_Y
        found.update((item, (left + across[item] - first, top + high / 2)) for item in row)
        top += high
    return found, left + right - first, top


def _paths(
    edges: list[tuple[int, int]], places: dict[int, Point], num_nodes: int
) -> Iterator[tuple[list[int], list[Point]]]:
    """Yield for each edge between nodes the numbers of the items that it passes, and their
    places."""
    after = {source: target for source, target in edges if source >= num_nodes}
    for source, target in edges:
        if source >= num_nodes:
            continue
        numbers = [source, target]
        while numbers[-1] >= num_nodes:
            numbers.append(after[numbers[-1]])
        yield numbers, [places[number] for number in numbers]
