"""Merges chains of elementwise ops, which compilers fuse, into one node each."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from shardcore import _core
from shardcore.report.graph.model import Graph, Node

_MAX_NAMED = 4
"""How many ops of a chain are named at most."""


def fold_chains(graph: Graph) -> Graph:
    """Return ``graph`` with each chain of elementwise ops as one node, in the place of its last op.

    A tensor is inside a chain if it is not annotated, and has one producer and one user, both of
    them elementwise ops.
    """
    last = _last_ops(graph)
    chains: dict[int, list[int]] = {}
    for number, end in enumerate(last):
        if end is not None and end != number:
            chains.setdefault(end, []).append(number)
    kept = [number for number, end in enumerate(last) if end == number]
    new = {number: index for index, number in enumerate(kept)}
    nodes = [
        _chain([graph.nodes[each] for each in (*chains[number], number)])
        if number in chains
        else graph.nodes[number]
        for number in kept
    ]
    ends = ((last[source], last[target]) for source, target in graph.edges)
    edges = ((new[a], new[b]) for a, b in ends if a is not None and b is not None and a != b)
    return replace(graph, nodes=tuple(nodes), edges=tuple(dict.fromkeys(edges)), layers=())


def _last_ops(graph: Graph) -> list[int | None]:
    """For each node the last op of its chain, or the node itself; ``None`` for tensors inside."""
    makers: dict[int, list[int]] = {}
    users: dict[int, list[int]] = {}
    for source, target in graph.edges:
        makers.setdefault(target, []).append(source)
        users.setdefault(source, []).append(target)
    last: list[int | None] = list(range(len(graph.nodes)))
    # From the end, so that a tensor's user is known before its producer.
    for number in reversed(range(len(graph.nodes))):
        node = graph.nodes[number]
        if node.kind != "tensor" or node.annotated:
            continue
        around = [*makers.get(number, ()), *users.get(number, ())]
        is_between = len(around) == 2 and number in makers and number in users
        if is_between and all(_is_elementwise(graph.nodes[op]) for op in around):
            last[around[0]] = last[around[1]]
            last[number] = None
    return last


@cache
def _elementwise() -> frozenset[str]:
    rules = _core.registered_rules().items()
    return frozenset(name.partition(".")[2] for name, family in rules if family == "pointwise")


def _is_elementwise(node: Node) -> bool:
    return node.kind == "op" and node.name in _elementwise()


def _chain(ops: list[Node]) -> Node:
    names = [op.name for op in ops[:_MAX_NAMED]]
    more = [f"{len(ops) - _MAX_NAMED} more"] if len(ops) > _MAX_NAMED else []
    return ops[-1]._replace(kind="ops", name=", ".join([*names, *more]), members=len(ops))
