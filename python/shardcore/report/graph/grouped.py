"""Merges groups of ops into one node each.

Constants are not drawn; neither are tensors between ops of one group, unless they are annotated.
Other tensors are merged if they are alike: made by the same group, or by no op, with equal type and
sharding, and with the same users if users are distinguished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from shardcore.labels import folded
from shardcore.report.graph.model import Graph, Node

_TELLING = ("dot_general", "dot", "convolution", "gather", "scatter", "while")
"""Ops that are counted in the label of a group, the most informative first."""


@dataclass(frozen=True)
class Group:
    """The label of a group of ops."""

    name: str
    note: str = ""
    """What distinguishes it from other groups of this name: ``"backward"``."""


class Grouping:
    """An unfolded graph, to be drawn with its ops in groups."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        hidden = {number for number, node in enumerate(graph.nodes) if _is_constant(node)}
        hidden |= {target for source, target in graph.edges if source in hidden}
        sources: dict[int, int] = {}
        targets: dict[int, list[int]] = {}
        is_tensor = [node.kind == "tensor" for node in graph.nodes]
        for source, target in graph.edges:
            if is_tensor[target]:
                sources.setdefault(target, source)
            if is_tensor[source]:
                targets.setdefault(source, []).append(target)
        self._tensors = [
            (number, sources.get(number), targets.get(number, ()))
            for number, node in enumerate(graph.nodes)
            if is_tensor[number] and number not in hidden
        ]
        self._hidden = hidden

    def keys(self, groups: Sequence[int | None], *, by_users: bool) -> list[Hashable]:
        """Return for each node its key: nodes with equal keys are drawn as one. The key of an op is
        its group's number; nodes with ``None`` are not drawn.

        Args:
            groups: the number of the group of each op; ``None`` for tensors.
            by_users: whether to distinguish tensors by the groups that use them.
        """
        nodes = self._graph.nodes
        keys: list[Hashable] = list(groups)
        for number in self._hidden:
            keys[number] = None
        makers = {
            number: None if source is None else groups[source]
            for number, source, _ in self._tensors
        }
        for number, _, targets in self._tensors:
            node, maker = nodes[number], makers[number]
            taken = {
                makers.get(target) if groups[target] is None else groups[target]
                for target in targets
            }
            if node.annotated or maker is None or taken != {maker}:
                who = frozenset(taken) if by_users else None
                keys[number] = (maker, node.type, node.sharding, node.annotated, who)
        return keys

    def drawn(self, keys: Sequence[Hashable], names: Sequence[Group]) -> Graph:
        """Return the graph with all nodes of a key merged; ``names`` are the labels of the
        groups."""
        return _joined(self._graph, keys, names)


def _is_constant(node: Node) -> bool:
    return node.kind == "op" and node.name == "constant"


def _joined(graph: Graph, keys: Sequence[Hashable], names: Sequence[Group]) -> Graph:
    """Return ``graph`` with all nodes of a key merged, in the place of the first of them, and
    without nodes whose key is ``None``; an op's key is the number of its group.
    """
    members: dict[Hashable, list[Node]] = {}
    for key, node in zip(keys, graph.nodes, strict=True):
        if key is not None:
            members.setdefault(key, []).append(node)
    new = {key: number for number, key in enumerate(members)}
    nodes = [
        _ops(names[key], inside) if isinstance(key, int) else _tensors(inside)
        for key, inside in members.items()
    ]
    at = [None if key is None else new[key] for key in keys]
    ends = ((at[source], at[target]) for source, target in graph.edges)
    edges = dict.fromkeys((a, b) for a, b in ends if a is not None and b is not None and a != b)
    return replace(graph, nodes=tuple(nodes), edges=tuple(edges), layers=())


def _ops(group: Group, ops: Sequence[Node]) -> Node:
    if len(ops) == 1:
        return ops[0]
    names = Counter(op.name for op in ops)
    telling = [f"{names[name]:,} {name}" for name in _TELLING if name in names][:2]
    notes = [group.note] if group.note else []
    what = ", ".join([*notes, f"{len(ops):,} ops", *telling])
    return ops[0]._replace(kind="ops", name=group.name, type=what, members=len(ops))


def _tensors(tensors: Sequence[Node]) -> Node:
    first = tensors[0]
    if len(tensors) == 1:
        return first
    labels = folded((tensor.name, None, tensor) for tensor in tensors)
    name = labels[0][0] if len(labels) == 1 and first.name != first.value else f"{first.name}, ..."
    return first._replace(name=name, members=len(tensors))
