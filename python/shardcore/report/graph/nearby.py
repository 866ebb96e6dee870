"""Parts of a graph: the neighbourhood of a value, the contents of a scope."""

from __future__ import annotations

from shardcore.bounded import shown
from shardcore.errors import Diagnostic, LocationError
from shardcore.report.graph.model import Graph
from shardcore.report.graph.naming import ops_of, ways


def near(graph: Graph, value: str, hops: int) -> Graph:
    """Return the part of ``graph`` within ``hops`` ops of ``value``, with all tensors of those ops.

    Raises:
        LocationError: no tensor has the name ``value`` (``unknown-location``).
    """
    names = (value, f"%{value}")
    found = {
        number
        for number, node in enumerate(graph.nodes)
        if node.kind == "tensor" and (node.value in names or node.name == value)
    }
    if not found:
        known = {node.name for node in graph.nodes if node.kind == "tensor"}
        raise _unknown(f"no tensor of the graph is called {shown(value)}", value, known)
    beside: list[list[int]] = [[] for _ in graph.nodes]
    for source, target in graph.edges:
        beside[source].append(target)
        beside[target].append(source)
    last = set(found)
    # One op is two edges: to the op, and on to its other tensors.
    for _ in range(2 * hops):
        last = {other for number in last for other in beside[number]} - found
        found |= last
    return graph.subgraph(sorted(found))


def inside(graph: Graph, scope: str) -> Graph:
    """Return the ops of ``graph`` in ``scope``, the name of a group or scope, with all their
    operands and results.

    Raises:
        LocationError: nothing has the name ``scope`` (``unknown-location``).
    """
    ops = set(ops_of(graph, scope))
    if not ops:
        known = {group.name for way in ways(graph) for group in way.names}
        message = f"no scope or source line of the graph is called {shown(scope)}"
        raise _unknown(message, scope, known)
    edges = [edge for edge in graph.edges if not ops.isdisjoint(edge)]
    return graph.subgraph(sorted({number for edge in edges for number in edge} | ops))


def _unknown(message: str, name: str, known: set[str]) -> LocationError:
    # The calculus is imported here, as the package does not import it.
    from shardcore.calculus.mistakes import choices

    return LocationError(Diagnostic("unknown-location", message, choices(name, known)))
