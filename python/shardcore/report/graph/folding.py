"""Folds a graph until a person can read it.

A graph with few nodes is drawn in full. Otherwise the first of these foldings that leaves few nodes
is used: repeated layers drawn once; also chains of elementwise ops as one node; then groups of ops,
as listed by :mod:`~shardcore.report.graph.naming`, first with separate nodes for tensors with
different users, then without. Each folding takes time linear in the graph, and their number is
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
"""A graph with more nodes is folded further, because nobody reads it as a whole."""


_CHAIN: Final = 4
"""Chains are assumed to reduce the number of nodes at most by this factor."""


def fit(graph: Graph, max_nodes: int = MAX_NODES) -> Graph:
    """Return ``graph`` folded until it has at most ``max_nodes`` nodes, or as far as possible."""
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
    # The coarsest folding merges tensors with different users as well.
    return replace(grouping.drawn(keys, way.names), folding=way.folding)
