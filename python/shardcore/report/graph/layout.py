"""Places the nodes of a graph in rows from top to bottom.

The rows, and the order in them, come from ``fast-sugiyama``; an edge that crosses rows has a place
in each of them.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from shardcore.report.graph.rows import places as places_in_rows

if TYPE_CHECKING:
    from shardcore.report.graph.model import Graph

GAP_X, GAP_Y = 24.0, 34.0
"""The gaps between nodes, in pixels."""
WAY = 14.0
"""The width reserved for an edge that crosses a row, including the gap beside it."""
MAX_TRANSPOSED = 200
"""For graphs with at most this many edges, crossings are also removed by exchanging neighbours,
which takes three times as long."""

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
    """Return places for the nodes of ``graph``, whose widths and heights are ``sizes``.

    Raises:
        ImportError: ``fast-sugiyama`` is not installed.
    """
    forward = [edge for edge in graph.edges if edge[0] < edge[1]]
    joined = sorted({number for edge in forward for number in edge})
    dense = {number: index for index, number in enumerate(joined)}
    places: dict[int, Point] = {}
    paths: dict[tuple[int, int], list[Point]] = {}
    left = height = 0.0
    for rows, edges in _parts([(dense[a], dense[b]) for a, b in forward]):
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


Rows = list[list[int]]
"""The nodes of each row, in order; numbers above those of nodes are places where an edge crosses
the row."""


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


def _parts(edges: list[tuple[int, int]]) -> Iterator[tuple[Rows, list[tuple[int, int]]]]:
    """Yield the connected parts of a graph of nodes 0, 1, ..., each as rows, and as edges that are
    split at each row.
    """
    try:
        from fast_sugiyama import from_edges
    except ImportError as error:
        message = "drawing needs fast-sugiyama: pip install 'shardcore[graph]'; .dot does not"
        raise ImportError(message) from error
    if not edges:
        return
    found = from_edges(
        edges,
        vertex_spacing=1.0,
        dummy_vertices=True,
        dummy_size=1.0,
        transpose=len(edges) <= MAX_TRANSPOSED,
    )
    for positions, _, _, cut in found:
        ordered = sorted((-float(y), float(x), int(item)) for item, (x, y) in positions)
        rows = [[item for _, _, item in row] for _, row in groupby(ordered, key=lambda at: at[0])]
        yield rows, [(int(a), int(b)) for a, b in cut or ()]


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
