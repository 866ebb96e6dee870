"""How far a graph is folded so that it can be read.

A graph with few nodes is drawn as it is. Of others, the first of these ways that leaves few nodes
is taken: repeated layers once; element-wise ops that follow each other as one as well; then ops in
groups, as :mod:`~shardcore.report.graph.naming` lists them, first with tensors apart that different
groups take, then without. Each way takes time in proportion to the graph, and their number is
bounded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from shardcore.report.graph.chains import fold_chains
from shardcore.report.graph.grouped import Grouping
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
    layers = fold(graph)
    if len(layers.nodes) <= max_nodes:
        return layers
    if len(layers.nodes) <= _CHAIN * max_nodes:
        chains = fold(fold_chains(graph))
        if len(chains.nodes) <= max_nodes:
            return replace(chains, folding=CHAINS)
    grouping = Grouping(graph)
    for way in ways(graph):
        for by_users in (True, False):
            keys = grouping.keys(way.groups, by_users=by_users)
            if len({*keys} - {None}) <= max_nodes:
                return replace(grouping.drawn(keys, way.names), folding=way.folding)
    # The coarsest way, with tensors that different groups take as one.
    return replace(grouping.drawn(keys, way.names), folding=way.folding)
