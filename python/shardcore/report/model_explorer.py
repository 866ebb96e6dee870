"""Node data for Google's Model Explorer: shardings, bytes and predicted seconds of each op.

Model Explorer opens the completed program, and each file of node data as a layer over it. Its
converter numbers the ops of a function in the order of the program, from 0, also those in regions,
and calls arguments ``arg0``, ``arg1``, ...; a function is a graph.

Source: ``node_data_builder.py`` of Model Explorer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shardcore import files
from shardcore.report.table import format_sharding

if TYPE_CHECKING:
    from shardcore._core import Result, Value
    from shardcore.costs import Cost

_COLOURS = ("#8ecae6", "#ffb703", "#90be6d", "#f28482", "#cdb4db", "#f9c74f", "#a3b18a", "#b5838d")
"""Of shardings, in the order in which they are seen."""
_NO_COLOUR = "#eeeeee"
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e76f51"}]

Graphs = dict[str, dict[str, Any]]
"""Node data by function."""


def node_data(result: Result, cost: Cost) -> dict[str, Graphs]:
    """Return the node data of ``result``: ``sharding``, ``bytes`` and ``seconds``.

    Bytes are those of the first result of an op, or of an argument, on one device. Seconds are
    those of all runs, of ops that the per-device program has under the same name.
    """
    seconds: dict[str, float] = {}
    for step in cost.rows.steps:
        if step.value is not None:
            seconds[step.value] = seconds.get(step.value, 0.0) + step.total_seconds
    found: dict[str, Graphs] = {"sharding": {}, "bytes": {}, "seconds": {}}
    colours: dict[str, str] = {}
    for function, node, value in nodes(result):
        sharding = format_sharding(value)
        if sharding and sharding not in colours:
            colours[sharding] = _COLOURS[len(colours) % len(_COLOURS)]
        colour = colours.get(sharding, _NO_COLOUR)
        _put(found["sharding"], function, node, {"value": sharding or "none", "bgColor": colour})
        if value.bytes_per_device is not None:
            _put(found["bytes"], function, node, {"value": value.bytes_per_device})
        if value.qualified_name in seconds:
            _put(found["seconds"], function, node, {"value": seconds[value.qualified_name]})
    for graphs in (found["bytes"], found["seconds"]):
        for graph in graphs.values():
            graph["gradient"] = _GRADIENT
    return found


def nodes(result: Result) -> Iterator[tuple[str, str, Value]]:
    """Yield the nodes of Model Explorer's graphs: function, id, and the value that a node makes."""
    count: dict[str, int] = {}
    for op in result.module.ops():
        if op.name in ("builtin.module", "sdy.mesh"):
            continue
        if op.name == "func.func":
            for block in (block for region in op.regions for block in region):
                for number, value in enumerate(block.arguments):
                    yield op.function, f"arg{number}", value
            continue
        number = count.get(op.function, 0)
        count[op.function] = number + 1
        if op.results and op.results[0].shape is not None:
            yield op.function, str(number), op.results[0]


def _put(graphs: Graphs, function: str, node: str, row: Mapping[str, Any]) -> None:
    graphs.setdefault(function, {"results": {}})["results"][node] = row


def write(result: Result, cost: Cost, path: str) -> list[str]:
    """Write the completed program and its node data beside each other; return their paths.

    ``path`` is their common beginning, ``out`` or ``out.json``: written are ``out.mlir``,
    ``out.sharding.json``, ``out.bytes.json`` and ``out.seconds.json``.

    Raises:
        OSError: a file cannot be written.
    """
    beginning, extension = os.path.splitext(path)
    if extension.lower() != ".json":
        beginning = path
    written = [f"{beginning}.mlir"]
    files.write(written[0], str(result.module))
    for name, graphs in node_data(result, cost).items():
        written.append(f"{beginning}.{name}.json")
        files.write(written[-1], json.dumps(graphs, allow_nan=False))
    return written
