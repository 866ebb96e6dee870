"""Places of the nodes of a graph, in layers from top to bottom, by ``fast-sugiyama``.

Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shardcore.report.graph.model import Graph

GAP_X, GAP_Y = 24.0, 34.0
"""Between nodes, in pixels."""
WAY = 1.0 / 3
"""Width of an edge that passes a layer, of that of a node."""
MAX_TRANSPOSED = 1000
"""The most edges for which crossings are also removed by exchanging neighbours, which takes three
times as long."""

Point = tuple[float, float]


class Layout(NamedTuple):
    """Where nodes and edges are, in pixels from the top left corner."""

    centers: list[Point]
    """Of each node."""
    ways: list[list[Point]]
    """Of each edge the points that it goes through, from node to node."""
    width: float
    height: float


def layout(graph: Graph, sizes: Sequence[tuple[float, float]]) -> Layout:
    """Return places for the nodes of ``graph``, whose widths and heights are ``sizes``.

    Raises:
        ImportError: ``fast-sugiyama`` is not installed.
    """
    wide = max((width for width, _ in sizes), default=0.0) + GAP_X
    high = max((height for _, height in sizes), default=0.0) + GAP_Y
    forward = [edge for edge in graph.edges if edge[0] < edge[1]]
    joined = sorted({number for edge in forward for number in edge})
    dense = {number: index for index, number in enumerate(joined)}
    places: dict[int, Point] = {}
    paths: dict[tuple[int, int], list[Point]] = {}
    left = 0.0
    parts = _parts([(dense[a], dense[b]) for a, b in forward])
    for positions, across, edges in parts:
        first = min(x for x, _ in positions.values())
        top = max(y for _, y in positions.values())
        moved = {node: (left + x - first, top - y) for node, (x, y) in positions.items()}
        left += across + 1.0
        places.update((joined[node], at) for node, at in moved.items() if node < len(joined))
        for (start, *_, end), points in _paths(edges, moved, len(joined)):
            paths[joined[start], joined[end]] = points
    for number in range(len(graph.nodes)):
        if number not in places:
            places[number] = (left, 0.0)
            left += 1.0

    def pixels(point: Point) -> Point:
        return (point[0] * wide + wide / 2, point[1] * high + high / 2)

    centers = [pixels(places[number]) for number in range(len(graph.nodes))]
    ways = []
    for source, target in graph.edges:
        way = paths.get((source, target), [places[source], places[target]])
        ways.append([pixels(point) for point in way])
    width = max((x for x, _ in centers), default=0.0) + wide / 2
    height = max((y for _, y in centers), default=0.0) + high / 2
    return Layout(centers, ways, width, height)


Part = tuple[dict[int, Point], float, list[tuple[int, int]]]
"""Places of the nodes of a connected part, its width, and its edges, cut at each layer."""


def _parts(edges: list[tuple[int, int]]) -> list[Part]:
    """Return the connected parts of a graph of nodes 0, 1, ...; higher numbers are places where an
    edge passes a layer.
    """
    try:
        from fast_sugiyama import from_edges
    except ImportError as error:
        message = "drawing needs fast-sugiyama: pip install 'shardcore[graph]'; .dot does not"
        raise ImportError(message) from error
    if not edges:
        return []
    found = from_edges(
        edges,
        vertex_spacing=1.0,
        dummy_vertices=True,
        dummy_size=WAY,
        transpose=len(edges) <= MAX_TRANSPOSED,
    )
    return [
        (
            {int(node): (float(x), float(y)) for node, (x, y) in positions},
            float(across),
            [(int(a), int(b)) for a, b in cut or ()],
        )
        for positions, across, _, cut in found
    ]


def _paths(
    edges: list[tuple[int, int]], places: dict[int, Point], num_nodes: int
) -> Iterator[tuple[list[int], list[Point]]]:
    """Yield for each edge between nodes the numbers that it passes, and their places."""
    after = {source: target for source, target in edges if source >= num_nodes}
    for source, target in edges:
        if source >= num_nodes:
            continue
        numbers = [source, target]
        while numbers[-1] >= num_nodes:
            numbers.append(after[numbers[-1]])
        yield numbers, [places[number] for number in numbers]
