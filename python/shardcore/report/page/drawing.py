"""The computation graph, and the frames of an animation of propagation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardcore.report.graph.svg import cut, shapes
from shardcore.report.page.string_tables import ABSENT
from shardcore.why.steps import short

if TYPE_CHECKING:
    from shardcore._core import Result
    from shardcore.report.page.string_tables import Tables

MAX_FRAMES = 5000
"""Later frames are left out of the page."""


def graph_record(result: Result, tables: Tables) -> dict[str, Any]:
    """Return the shapes of the graph of ``result``, or the reason why there are none."""
    graph = result.graph()
    if not graph.nodes:
        return {"reason": "it has no tensors and no ops"}
    try:
        drawn = shapes(graph)
    except ValueError as error:
        return {"reason": str(error)}
    return {
        "hint": graph.hint,
        "width": drawn.width,
        "height": drawn.height,
        "nodes": [
            {
                "kind": node.kind,
                "lines": list(map(cut, node.lines)),
                "title": "\n".join(node.lines) if any(map(_is_cut, node.lines)) else None,
                "annotated": node.annotated,
                "value": node.value,
                "place": ABSENT if node.kind == "tensor" else tables.place(node.location),
                "box": list(box),
            }
            for node, box in zip(graph.nodes, drawn.boxes, strict=True)
        ],
        "edges": [
            [*edge, path, again]
            for edge, (path, again) in zip(graph.edges, drawn.paths, strict=True)
        ],
        "layers": [[*box, times] for box, times in drawn.layers],
    }


def _is_cut(line: str) -> bool:
    return cut(line) != line


def frames(result: Result, tables: Tables) -> dict[str, Any]:
    """Return the steps of propagation: for each the user priority, the op priority and the
    strategy, and its visits: op, location, and the name, old and new sharding of each tensor.
    """
    rows: list[Any] = []
    count = 0
    for priority, step, strategy, visits in result._explainer.steps():
        drawn = [
            [
                tables.text(op),
                tables.place(line),
                [
                    [tables.text(value), tables.text(short(before)), tables.text(short(after))]
                    for value, before, after in changes
                ],
            ]
            for op, line, changes in visits[: max(0, MAX_FRAMES - count)]
        ]
        count += len(visits)
        rows.append([priority, step, strategy, drawn])
    return {"steps": rows, "left_out": max(0, count - MAX_FRAMES)}
