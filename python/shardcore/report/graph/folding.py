"""How far a graph is folded so that it can be read.

A graph with few nodes is drawn as it is. Of others, the first of these ways that leaves few nodes
is taken: repeated layers once; element-wise ops that follow each other as one as well; then ops in
groups, as :mod:`~shardcore.report.graph.naming` lists them, first with tensors apart that different
groups take, then without. Each way takes time in proportion to the graph, and their number is
bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from shardcore.report.graph.chains import fold_chains
from shardcore.report.graph.grouped import grouped
from shardcore.report.graph.model import CHAINS, Graph
from shardcore.report.graph.naming import ways
from shardcore.report.graph.repeated import fold

MAX_NODES: Final = 250
"""More nodes are not read as a whole: a graph that has more is folded further."""


_CHAIN: Final = 4
"""How many times fewer nodes chains leave at most, as a rule."""


def fit(graph: Graph, max_nodes: int = MAX_NODES) -> Graph:
    """Return ``graph`` folded until it has at most ``max_nodes`` nodes; folded as far as possible
    if it has more then.
    """
    drawn = graph
    for drawn in _folded(graph, max_nodes):
        if len(drawn.nodes) <= max_nodes:
            break
    return drawn


def _folded(graph: Graph, max_nodes: int) -> Iterator[Graph]:
    """Yield ``graph`` folded in each of the ways that may leave so few nodes."""
    layers = fold(graph)
    yield layers
    if len(layers.nodes) <= _CHAIN * max_nodes:
        yield replace(fold(fold_chains(graph)), folding=CHAINS)
    for way in ways(graph):
        for by_users in (True, False):
            drawn = grouped(graph, way.groups, way.names, by_users=by_users)
            yield replace(drawn, folding=way.folding)
