"""Tensors and ops as nodes, and the edges between them.

A tensor has an edge from its producer, and edges to its users. The body of a loop or conditional is
drawn between the op and the op's results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from shardcore.bounded import items, shown
from shardcore.labels import REPLICATED
from shardcore.report.table import format_shape, format_sharding
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore._core import Op, Port, Result, Value

_WITH_BODIES = (
    "stablehlo.while",
    "stablehlo.case",
    "stablehlo.if",
    "sdy.manual_computation",
    "sdy.named_computation",
)
"""Ops whose regions are drawn; regions of other ops compute single elements."""
_TERMINATORS = ("func.return", "stablehlo.return", "sdy.return")


class Node(NamedTuple):
    """A tensor or an op, or several of them drawn as one."""

    kind: str
    """``"tensor"``, ``"op"``, or ``"ops"`` for a group of ops."""
    name: str
    """For a tensor its name ``"%12"`` or its path in the user's program; for an op such as
    ``"dot_general"``; for a group its scope or its lines."""
    type: str = ""
    """For a tensor its shape and element type; for a group its contents."""
    sharding: str = ""
    """The sharding of a tensor, without its mesh; empty if a value is no tensor."""
    annotated: bool = False
    """Whether the user gave the tensor a sharding."""
    location: str | None = None
    """The location of an op in the user's program."""
    value: str | None = None
    """The name of a tensor in the program, ``"%12"``; the first name if it stands for several."""
    stack: str = ""
    """The name stack of an op, as :attr:`shardcore.Op.name_stack`."""
    members: int = 1
    """How many tensors or ops the node stands for."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of text in the node."""
        kind = self.type
        if self.kind == "tensor" and self.members > 1:
            kind = f"{self.members:,} of {kind}"
        return tuple(line for line in (self.name, kind, self.sharding) if line)

    @property
    def key(self) -> tuple[str, ...]:
        """A key that is equal for corresponding nodes of repeated layers."""
        name = "" if self.kind == "tensor" else self.name
        return (self.kind, name, self.type, self.sharding)


@dataclass(frozen=True)
class Layer:
    """Nodes that stand for several equal layers."""

    nodes: tuple[int, ...]
    times: int
    """The number of layers."""


CHAINS = "by chains of element-wise ops"
"""The only folding that does not group by a name."""

MAX_SHOWN = 1000
"""A notebook draws graphs with up to this many nodes by itself."""


@dataclass(frozen=True, repr=False)
class Graph:
    """A computation graph: tensors and ops, with shardings.

    ``str()`` says how large it is; :meth:`dot` and :meth:`svg` draw it, as does a notebook.
    """

    nodes: tuple[Node, ...]
    """In program order."""
    edges: tuple[tuple[int, int], ...]
    """Pairs of node numbers; an edge to an earlier node leads from a repeated layer, or from a
    group, to its successor."""
    layers: tuple[Layer, ...] = ()
    """The repeated layers, which are drawn once."""
    title: str = field(default="", compare=False)
    folding: str = ""
    """How ops were grouped to make the graph readable, ``"by source line"``; empty if each op is
    drawn."""

    def dot(self) -> str:
        """Return the graph in the language of Graphviz."""
        from shardcore.report.graph.dot import dot

        return dot(self)

    def svg(self) -> str:
        """Return the graph as an SVG element.

        Raises:
            ValueError: the graph is too large: draw a part of it.
        """
        from shardcore.report.graph.svg import svg

        return svg(self)

    def record(self) -> dict[str, Any]:
        """Return the graph as plain data."""
        return {
            "nodes": [node._asdict() for node in self.nodes],
            "edges": [list(edge) for edge in self.edges],
            "layers": [{"nodes": list(each.nodes), "times": each.times} for each in self.layers],
            "folding": self.folding,
        }

    @property
    def hint(self) -> str:
        """How to see more of a folded graph; empty if it is not folded."""
        if not self.folding:
            return ""
        groups = [node for node in self.nodes if node.kind == "ops"]
        largest = max(groups, key=lambda node: node.members, default=None)
        values = [node.value for node in self.nodes if node.value is not None]
        around = values[len(values) // 2] if values else "%0"
        more = [f"--around {quote(around)} --hops 3", "--all-layers"]
        if largest is not None and self.folding != CHAINS:
            more.insert(0, f"--scope {quote(largest.name)}")
        return f"folded {self.folding}; to see more: {', '.join(more)}"

    def subgraph(self, numbers: Sequence[int]) -> Graph:
        """Return the subgraph of the nodes ``numbers``, in ascending order.

        Raises:
            ValueError: a number is out of range.
        """
        numbers = items(numbers, "numbers of nodes", len(self.nodes))
        for number in numbers:
            if not 0 <= index(number) < len(self.nodes):
                raise ValueError(f"there is no node {shown(number)}")
        new = {old: place for place, old in enumerate(numbers)}
        edges = [(new[a], new[b]) for a, b in self.edges if a in new and b in new]
        return Graph(tuple(self.nodes[old] for old in numbers), tuple(edges), (), self.title)

    def __str__(self) -> str:
        count = Counter(node.kind for node in self.nodes)
        groups = f", {plural(count['ops'], 'group')} of ops" if count["ops"] else ""
        times = "".join(
            f"; {plural(len(each.nodes), 'node')} x {each.times}" for each in self.layers
        )
        folding = f"; folded {self.folding}" if self.folding else ""
        ops = f"{plural(count['tensor'], 'tensor')}, {plural(count['op'], 'op')}{groups}"
        return f"{ops}, {plural(len(self.edges), 'edge')}{times}{folding}"

    def __repr__(self) -> str:
        return f"<Graph {self}>"

    def _repr_svg_(self) -> str | None:
        return None if len(self.nodes) > MAX_SHOWN else self.svg()


def build(result: Result) -> Graph:
    """Return the graph of the entry function of ``result``."""
    return _Builder(result).graph()


class _Builder:
    def __init__(self, result: Result) -> None:
        self._result = result
        self._entry = result.module.entry
        self._nodes: list[Node] = []
        self._edges: list[tuple[int, int]] = []
        self._numbers: dict[Value, int] = {}
        self._labels = {
            port.name: port.label for port in result.arguments() if port.label is not None
        }
        given_arguments, self._given_results = result._annotated()
        self._annotated = _annotated(result, self._entry, given_arguments)

    def graph(self) -> Graph:
        ops = [op for op in self._result.module.ops() if op.function == self._entry]
        owners: dict[Value, int] = {}
        around: dict[Op, Op] = {}
        hidden: set[Op] = set()
        for op in ops:
            if op.name == "func.func":
                for block in (block for region in op.regions for block in region):
                    for value in block.arguments:
                        self._tensor(value)
                continue
            if op in hidden:
                continue
            regions = op.regions
            if regions and op.name.startswith("stablehlo.") and op.name not in _WITH_BODIES:
                blocks = (block for region in regions for block in region)
                hidden |= {inner for block in blocks for inner in block.ops}
            if op.name in _TERMINATORS:
                self._returns(op, around)
                continue
            number = self._add(
                Node("op", op.name.partition(".")[2], location=op.location, stack=op.name_stack)
            )
            self._edges += [
                (self._numbers[value], number) for value in op.operands if value in self._numbers
            ]
            if regions and op.name in _WITH_BODIES:
                for block in (block for region in regions for block in region):
                    around |= dict.fromkeys(block.ops[-1:], op)
                    for value in block.arguments:
                        owners[value] = self._tensor(value)
                        self._edges.append((number, owners[value]))
            self._edges += [(number, self._tensor(value)) for value in op.results]
        edges = dict.fromkeys(self._edges)
        return Graph(tuple(self._nodes), tuple(edges), (), self._result.module.filename)

    def _returns(self, op: Op, around: Mapping[Op, Op]) -> None:
        """Connect the values that ``op``, a terminator, returns to the results of the enclosing op
        (``around`` maps terminators to it); for the function's results, also mark annotations.
        """
        if op.name == "func.return":
            for value, given in zip(op.operands, self._given_results, strict=False):
                number = self._numbers.get(value)
                if number is not None and given.sharding is not None:
                    self._nodes[number] = self._nodes[number]._replace(annotated=True)
            return
        owner = around.get(op)
        if owner is None:
            return
        for value, made in zip(op.operands, owner.results, strict=False):
            if value in self._numbers and made in self._numbers:
                pair = (self._numbers[value], self._numbers[made])
                self._edges.append(pair)

    def _tensor(self, value: Value) -> int:
        name = value.name
        label = self._labels.get(name) if value.op is None else None
        node = Node(
            "tensor",
            label or name,
            format_shape(value),
            format_sharding(value) or ("" if value.shape is None else REPLICATED),
            name in self._annotated,
            value.location,
            name,
        )
        self._numbers[value] = number = self._add(node)
        return number

    def _add(self, node: Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1


def _annotated(result: Result, entry: str | None, arguments: Sequence[Port]) -> set[str]:
    """The names of the entry function's values that the user annotated."""
    names = {port.name for port in arguments if port.sharding is not None}
    for op in result._given().ops():
        if op.function != entry:
            continue
        names |= {value.name for value in op.results if value.sharding is not None}
        if op.name == "sdy.sharding_constraint":
            names |= {value.name for value in op.operands}
    return names
