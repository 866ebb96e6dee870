"""A graph in the language of Graphviz.

Source: https://graphviz.org/doc/info/lang.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from shardcore.report.graph.model import Graph, Node

TENSOR: Final = "#cfe2ff"
OP: Final = "#f8d0cc"
ANNOTATED: Final = "#0b5ed7"
"""Colours: of tensors, of ops, and of the border of annotated tensors."""


def dot(graph: Graph) -> str:
    """Return ``graph`` as text for Graphviz."""
    return "\n".join([*_lines(graph), ""])


def _lines(graph: Graph) -> Iterator[str]:
    yield f"digraph {_quoted(graph.title)} {{"
    yield '  node [shape=box, style=filled, fontname="monospace"];'
    for number, node in enumerate(graph.nodes):
        yield f"  n{number} [{_attributes(node)}];"
    for index, layer in enumerate(graph.layers):
        yield f"  subgraph cluster_{index} {{"
        yield f'    label="x {layer.times}"; style=dashed;'
        yield f"    {'; '.join(f'n{number}' for number in layer.nodes)};"
        yield "  }"
    for source, target in graph.edges:
        again = " [style=dashed, constraint=false]" if target < source else ""
        yield f"  n{source} -> n{target}{again};"
    yield "}"


def _attributes(node: Node) -> str:
    colour = TENSOR if node.kind == "tensor" else OP
    border = f', color="{ANNOTATED}", penwidth=3' if node.annotated else ""
    place = "" if node.location is None else f", tooltip={_quoted(node.location)}"
    return f'label={_quoted(*node.lines)}, fillcolor="{colour}"{border}{place}'


def _quoted(*lines: str) -> str:
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join("".join(map(_printable, line)) for line in escaped) + '"'


def _printable(character: str) -> str:
    return character if character.isprintable() else " "
