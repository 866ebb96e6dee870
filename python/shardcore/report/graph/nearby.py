"""What is near a value of a graph."""

from __future__ import annotations

from shardcore.bounded import shown
from shardcore.errors import Diagnostic, LocationError
from shardcore.report.graph.model import Graph


def near(graph: Graph, value: str, hops: int) -> Graph:
    """Return the part of ``graph`` that is at most ``hops`` ops away from ``value``, with all
    tensors of those ops.

    Raises:
        LocationError: no tensor is called ``value`` (``unknown-location``).
    """
    names = (value, f"%{value}")
    found = {
        number
        for number, node in enumerate(graph.nodes)
        if node.kind == "tensor" and (node.value in names or node.name == value)
    }
    if not found:
        # The calculus is not imported with the package.
        from shardcore.calculus.mistakes import choices

        known = {node.name for node in graph.nodes if node.kind == "tensor"}
        message = f"no tensor of the graph is called {shown(value)}"
        raise LocationError(Diagnostic("unknown-location", message, choices(value, known)))
    beside: list[list[int]] = [[] for _ in graph.nodes]
    for source, target in graph.edges:
        beside[source].append(target)
        beside[target].append(source)
    last = set(found)
    # Each op is two edges: to it, and on to its other tensors.
    for _ in range(2 * hops):
        last = {other for number in last for other in beside[number]} - found
        found |= last
    return graph.subgraph(sorted(found))
