"""Chains of element-wise ops as one node each: what compilers fuse."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from shardcore import _core
from shardcore.report.graph.model import Graph, Node

_MAX_NAMED = 4
"""The most ops of a chain that are named."""


def fold_chains(graph: Graph) -> Graph:
    """Return ``graph`` with each chain of element-wise ops as one node, at the place of the last.

    A tensor is inside of a chain if it is not annotated, and one op makes it and one op takes it,
    both of them element-wise.
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
    """Return for each node the last op of its chain, or itself; of tensors inside ``None``."""
    makers: dict[int, list[int]] = {}
    users: dict[int, list[int]] = {}
    for source, target in graph.edges:
        makers.setdefault(target, []).append(source)
        users.setdefault(source, []).append(target)
    last: list[int | None] = list(range(len(graph.nodes)))
    # From the end: the op that takes a tensor is known before the one that makes it.
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
