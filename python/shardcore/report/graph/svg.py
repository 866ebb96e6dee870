"""Draws a graph: tensors blue, ops red, annotated tensors with a blue border."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from shardcore.controls import one_line
from shardcore.report.graph.dot import ANNOTATED, OP, TENSOR
from shardcore.report.graph.layout import Layout, Point, layout

if TYPE_CHECKING:
    from shardcore.report.graph.model import Graph, Node

_CHARACTER, _LINE, _PAD = 6.6, 15.0, 8.0
"""The width of a character, the height of a line, and the padding of text, in pixels."""
_MARGIN = 16.0
MAX_NODES = 4000
"""The largest graph that is drawn: layout takes more than linear time, and nobody reads more."""
_MAX_CHARACTERS = 44
"""Longer lines are cut; the whole text is in the node's tooltip."""
_STYLE = (
    "text{font:11px ui-monospace,monospace;text-anchor:middle;fill:#111}"
    f".t{{fill:{TENSOR};stroke:#7b97c4}}.o{{fill:{OP};stroke:#c48a85}}"
    f".a{{stroke:{ANNOTATED};stroke-width:3}}"
    ".e{fill:none;stroke:#777}.r{stroke-dasharray:4 3}"
    ".l{fill:none;stroke:#999;stroke-dasharray:6 4}.n{text-anchor:start;fill:currentColor}"
)
_ARROW = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0 8 4 0 8z" fill="#777"/></marker>'
)


Box = tuple[int, int, int, int]
"""Left, top, width and height."""


def size(node: Node) -> tuple[float, float]:
    """Return the width and height of ``node`` in pixels."""
    longest = max(len(cut(line)) for line in node.lines)
    return longest * _CHARACTER + 2 * _PAD, len(node.lines) * _LINE + _PAD


class Shapes(NamedTuple):
    """The shapes of a drawn graph, in pixels from the top left corner."""

    width: float
    height: float
    boxes: list[Box]
    """The box of each node."""
    paths: list[tuple[str, bool]]
    """The path of each edge, and whether it leads to the next repeated layer."""
    layers: list[tuple[Box, int]]
    """The frame of each layer, and the number of layers."""


def shapes(graph: Graph) -> Shapes:
    """Return the shapes of ``graph``.

    Raises:
        ValueError: the graph has more than :data:`MAX_NODES` nodes.
    """
    if len(graph.nodes) > MAX_NODES:
        message = f"a picture of {len(graph.nodes):,} tensors and ops is too large"
        raise ValueError(f"{message}: fold it, draw what is around a value, or write .dot")
    sizes = [size(node) for node in graph.nodes]
    where = layout(graph, sizes)
    boxes = [
        (round(x - width / 2), round(y - height / 2), round(width), round(height))
        for (x, y), (width, height) in zip(where.centers, sizes, strict=True)
    ]
    return Shapes(
        round(where.width),
        round(where.height),
        boxes,
        list(_paths(graph, where, sizes)),
        [(_frame([boxes[number] for number in each.nodes]), each.times) for each in graph.layers],
    )


def svg(graph: Graph) -> str:
    """Return ``graph`` as an SVG element.

    Raises:
        ValueError: as for :func:`shapes`.
    """
    drawn = shapes(graph)
    width, height = drawn.width + 2 * _MARGIN, drawn.height + 2 * _MARGIN
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="{-_MARGIN:.0f} {-_MARGIN:.0f} {width:.0f} {height:.0f}">',
            f"<title>{_shown(graph.title)}</title><style>{_STYLE}</style><defs>{_ARROW}</defs>",
            *(_layer(box, times) for box, times in drawn.layers),
            *(
                f'<path class="{"e r" if again else "e"}" d="{path}" marker-end="url(#arrow)"/>'
                for path, again in drawn.paths
            ),
            *map(_node, graph.nodes, drawn.boxes),
            *([f'<text class="n" x="0" y="-4">{_shown(graph.hint)}</text>'] if graph.hint else []),
            "</svg>\n",
        ]
    )


def _shown(text: str) -> str:
    return escape(one_line(text))


def _frame(boxes: Sequence[Box]) -> Box:
    """The bounding box of ``boxes``."""
    left = min(x for x, _, _, _ in boxes) - _PAD
    top = min(y for _, y, _, _ in boxes) - _PAD
    right = max(x + width for x, _, width, _ in boxes) + _PAD
    bottom = max(y + height for _, y, _, height in boxes) + _PAD
    return (round(left), round(top), round(right - left), round(bottom - top))


def _layer(box: Box, times: int) -> str:
    x, y, width, height = box
    return (
        f'<rect class="l" x="{x}" y="{y}" width="{width}" height="{height}" rx="8"/>'
        f'<text class="n" x="{x + 6}" y="{y + 12}">x {times}</text>'
    )


def _paths(graph: Graph, where: Layout, sizes: Sequence[Point]) -> Iterator[tuple[str, bool]]:
    for (source, target), way in zip(graph.edges, where.ways, strict=True):
        (x0, y0), *between, (x1, y1) = way
        if target < source:
            # An edge to the same layer again goes around its nodes.
            side = max(x0, x1) + max(sizes[source][0], sizes[target][0]) / 2 + 12
            yield (
                f"M{x0:.0f} {y0:.0f}C{side:.0f} {y0:.0f} {side:.0f} {y1:.0f} {x1:.0f} {y1:.0f}",
                True,
            )
            continue
        y0 += sizes[source][1] / 2
        y1 -= sizes[target][1] / 2
        points = [(x0, y0), *between, (x1, y1)]
        path = f"M{x0:.0f} {y0:.0f}" + "".join(
            f"C{x:.0f} {(y + v) / 2:.0f} {u:.0f} {(y + v) / 2:.0f} {u:.0f} {v:.0f}"
            for (x, y), (u, v) in pairwise(points)
        )
        yield path, False


def _node(node: Node, box: Box) -> str:
    x, y, width, height = box
    kind = "t" if node.kind == "tensor" else "o"
    kind += " a" if node.annotated else ""
    hint = [*node.lines, *([node.location] if node.location else [])]
    rows = [
        f'<text x="{x + width / 2:.0f}" y="{y + _PAD / 2 + index * _LINE + 11:.0f}">'
        f"{_shown(cut(line))}</text>"
        for index, line in enumerate(node.lines)
    ]
    return (
        f'<g><title>{chr(10).join(map(_shown, hint))}</title><rect class="{kind}" '
        f'x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>{"".join(rows)}</g>'
    )


def cut(line: str) -> str:
    """Return ``line`` as shown: the start and the end of a long one, as locations are at the
    end."""
    if len(line) <= _MAX_CHARACTERS:
        return line
    first = (_MAX_CHARACTERS - 3) // 2
    return f"{line[:first]}...{line[len(line) - (_MAX_CHARACTERS - 3 - first) :]}"
