"""Merges repeated layers of a graph.

Layers are found as in the text of a program: consecutive runs of ops that are alike. A node of a
later layer is mapped to the node at the same place of the first layer, and an argument that only
later layers use to the argument that the first layer uses there.
"""

from __future__ import annotations

from collections import defaultdict

from shardcore.report.graph.model import Graph, Layer
from shardcore.report.repeats import runs_of


def fold(graph: Graph) -> Graph:
    """Return ``graph`` with each run of equal layers drawn once, including nested repetitions."""
    while True:
        folded = _fold_once(graph)
        if len(folded.nodes) == len(graph.nodes):
            return graph
        graph = folded


def _fold_once(graph: Graph) -> Graph:
    makers: set[int] = {target for _, target in graph.edges}
    inner = [n for n, node in enumerate(graph.nodes) if node.kind != "tensor" or n in makers]
    found = [run for run in runs_of([graph.nodes[n].key for n in inner]) if run.times]
    same = list(range(len(graph.nodes)))
    layers: list[tuple[list[int], int]] = []
    for run in found:
        length = run.stop - run.start
        for at in range(run.stop, run.stop + run.skipped):
            same[inner[at]] = inner[run.start + (at - run.stop) % length]
        layers.append((inner[run.start : run.stop], run.times + 1))
    _fold_arguments(graph, same, set(inner))
    kept = sorted({*same})
    new = {old: index for index, old in enumerate(kept)}
    edges = dict.fromkeys((new[same[a]], new[same[b]]) for a, b in graph.edges)
    inside = [layer for layer in graph.layers if all(same[n] == n for n in layer.nodes)]
    return Graph(
        tuple(graph.nodes[old] for old in kept),
        tuple(edge for edge in edges if edge[0] != edge[1]),
        (
            *(Layer(tuple(new[n] for n in nodes), times) for nodes, times in layers),
            *(Layer(tuple(new[n] for n in layer.nodes), layer.times) for layer in inside),
        ),
        graph.title,
    )


def _fold_arguments(graph: Graph, same: list[int], inner: set[int]) -> None:
    """Map arguments that only repeated ops use to the corresponding arguments of the first
    layer."""
    taken: dict[int, list[int]] = defaultdict(list)
    users: dict[int, list[int]] = defaultdict(list)
    for source, target in graph.edges:
        if source not in inner:
            taken[target].append(source)
            users[source].append(target)
    for argument, ops in users.items():
        if any(same[op] == op for op in ops):
            continue
        places = [taken[op].index(argument) for op in ops]
        firsts = {
            taken[same[op]][place]
            for op, place in zip(ops, places, strict=True)
            if place < len(taken[same[op]])
        }
        alike = [one for one in firsts if graph.nodes[one].key == graph.nodes[argument].key]
        if alike:
            same[argument] = min(alike)
