"""A program for Google's Model Explorer: a graph for each function, with attributes of each value,
and node data as overlays: shardings, bytes, predicted seconds.

Ops are in nested groups: regions of loops and conditionals, and the scopes of ``jax.named_scope``.

Source: ``graph_builder.py`` and ``node_data_builder.py`` of Model Explorer 0.1.34, and the JSON
that its page reads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from shardcore import files
from shardcore.controls import one_line
from shardcore.costs.scopes import scope_of
from shardcore.labels import REPLICATED
from shardcore.report.table import format_local_shape, format_shape, format_sharding
from shardcore.units import format_bytes

if TYPE_CHECKING:
    from shardcore._core import Block, Module, Op, Result, Value
    from shardcore.costs import Cost

_COLOURS = ("#8ecae6", "#ffb703", "#90be6d", "#f28482", "#cdb4db", "#f9c74f", "#a3b18a", "#b5838d")
"""The colours of shardings, in order of first appearance."""
_NO_COLOUR = "#eeeeee"
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e76f51"}]
_MOST_CHARACTERS = 200
"""How many characters of an attribute are shown."""

Graphs = dict[str, dict[str, Any]]
"""Node data by function."""


def graphs(result: Result) -> dict[str, Any]:
    """Return the graphs of the propagated program, one for each function."""
    module = result.module
    labels = {port.name: port.label for port in result.arguments() if port.label}
    given = _given(module)
    found = [
        _Function(op, labels if op.function == module.entry else {}, given).record(module)
        for op in module.ops()
        if op.name == "func.func" and op.regions and op.regions[0]
    ]
    return {"label": module.filename, "graphs": found}


def _given(module: Module) -> dict[str, list[str]]:
    """For arguments of regions the values that flow into them."""
    return {
        target.qualified_name: [source.qualified_name for source in edge.sources]
        for edge in module.edges()
        for target in edge.targets
        if target.op is None
    }


class _Function:
    """Makes the nodes of one function."""

    def __init__(
        self, function: Op, labels: Mapping[str, str], given: Mapping[str, list[str]]
    ) -> None:
        self._function = function
        self._labels = labels
        self._given = given
        self._nodes: list[dict[str, Any]] = []
        self._made_by: dict[str, tuple[str, str]] = {}
        """For each value its producer's node and the number of the output."""

    def record(self, module: Module) -> dict[str, Any]:
        # Without recursion, because regions may be nested deeply.
        left: list[tuple[Block, str]] = [(block, "") for block in self._function.regions[0]]
        while left:
            block, group = left.pop(0)
            for value in block.arguments:
                self._argument(value, group)
            inside = [each for op in block.ops for each in self._op(op, group)]
            left[:0] = inside
        meshes = {f"@{name}": str(mesh) for name, mesh in module.meshes.items()}
        return {
            "id": self._function.function,
            "nodes": self._nodes,
            "groupNodeAttributes": {"": meshes},
        }

    def _argument(self, value: Value, group: str) -> None:
        """Add a node for an argument of the function or of a region."""
        name = value.qualified_name
        # Values that a region returns flow there too, but have no node yet.
        sources = [each for each in self._given.get(name, ()) if each in self._made_by]
        self._made_by[name] = (name, "0")
        label = self._labels.get(value.name, value.name)
        self._add(name, label, group, sources, [value], {})

    def _op(self, op: Op, group: str) -> Iterator[tuple[Block, str]]:
        """Add a node for an op; yield the blocks in it, with their groups."""
        node = op.results[0].qualified_name if op.results else f"{op.name} {len(self._nodes)}"
        label = op.name.removeprefix("stablehlo.").removeprefix("func.")
        scope, _ = scope_of(op.name_stack)
        inner = "/".join(filter(None, (group, _below(scope, group))))
        for number, value in enumerate(op.results):
            self._made_by[value.qualified_name] = (node, str(number))
        known = {"location": op.location, **_attributes(op.attributes)}
        sources = [each.qualified_name for each in op.operands]
        callee = op.attributes.get("callee")
        self._add(node, label, inner, sources, op.results, known, callee)
        for number, region in enumerate(op.regions):
            name = f"{label} {_step(node)}"
            if len(op.regions) > 1:
                name += f" region {number}"
            for block in region:
                yield block, "/".join(filter(None, (inner, name)))

    def _add(
        self,
        node: str,
        label: str,
        group: str,
        sources: Iterable[str],
        outputs: Iterable[Value],
        known: Mapping[str, str | None],
        callee: object = None,
    ) -> None:
        edges = [
            {
                "sourceNodeId": self._made_by[source][0],
                "sourceNodeOutputId": self._made_by[source][1],
                "targetNodeInputId": str(number),
            }
            for number, source in enumerate(sources)
            if source in self._made_by
        ]
        made: dict[str, Any] = {
            "id": node,
            "label": one_line(label),
            "namespace": one_line(group),
            "attrs": _pairs(known),
            "incomingEdges": edges,
            "outputsMetadata": [
                {"id": str(number), "attrs": _pairs(_facts(value))}
                for number, value in enumerate(outputs)
            ],
        }
        if callee is not None:
            made["subgraphIds"] = [str(callee)]
        self._nodes.append(made)


def _below(scope: str, group: str) -> str:
    """``scope`` without the part that the enclosing scope groups already have."""
    around = group.split("/")
    names = scope.split("/")
    shared = 0
    for name in around:
        if shared < len(names) and names[shared] == name:
            shared += 1
    return "/".join(names[shared:])


def _step(name: str) -> str:
    """``name`` as one step of a group's path."""
    return name.replace("/", "|")


def _facts(value: Value) -> dict[str, str | None]:
    """The attributes of a value, as texts by name."""
    size = value.bytes_per_device
    return {
        "value": value.qualified_name,
        "shape": format_shape(value),
        "sharding": format_sharding(value) or (REPLICATED if value.shape is not None else None),
        "local shape": format_local_shape(value),
        "on a device": None if size is None else format_bytes(size),
    }


def _attributes(attributes: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value)[:_MOST_CHARACTERS] for name, value in attributes.items()}


def _pairs(known: Mapping[str, str | None]) -> list[dict[str, str]]:
    return [{"key": name, "value": one_line(text)} for name, text in known.items() if text]


def node_data(result: Result, cost: Cost) -> dict[str, Graphs]:
    """Return the node data of ``result``: ``sharding``, ``bytes`` and ``seconds``.

    Bytes are those of the first result of an op, or of an argument, on one device. Seconds are
    parts of the step, of ops that the per-device program has under the same name.
    """
    seconds: dict[str, float] = {}
    for step in cost.rows.steps:
        if step.value is not None:
            seconds[step.value] = seconds.get(step.value, 0.0) + step.seconds
    found: dict[str, Graphs] = {"sharding": {}, "bytes": {}, "seconds": {}}
    colours: dict[str, str] = {}
    for value in _first_values(result):
        node, function = value.qualified_name, value.function
        sharding = format_sharding(value) or REPLICATED
        if sharding != REPLICATED and sharding not in colours:
            colours[sharding] = _COLOURS[len(colours) % len(_COLOURS)]
        colour = colours.get(sharding, _NO_COLOUR)
        _put(found["sharding"], function, node, {"value": sharding, "bgColor": colour})
        figures = {"bytes": value.bytes_per_device, "seconds": seconds.get(node)}
        for kind, figure in figures.items():
            if figure is not None:
                _put(found[kind], function, node, {"value": figure})
    for kind in ("bytes", "seconds"):
        for graph in found[kind].values():
            graph["gradient"] = _GRADIENT
    return found


def _first_values(result: Result) -> Iterator[Value]:
    """The arguments, and the first result of each op, that are tensors."""
    for op in result.module.ops():
        values = [value for region in op.regions for block in region for value in block.arguments]
        yield from (value for value in [*op.results[:1], *values] if value.shape is not None)


def _put(graphs: Graphs, function: str, node: str, row: Mapping[str, Any]) -> None:
    graphs.setdefault(function, {"results": {}})["results"][node] = row


def write(result: Result, cost: Cost, path: str) -> list[str]:
    """Write the graphs and their node data to files next to each other; return their paths.

    ``path`` is the file of the graphs, ``out.json``, or just ``out``; the node data are written to
    ``out.sharding.json``, ``out.bytes.json`` and ``out.seconds.json``.

    Raises:
        OSError: a file cannot be written.
    """
    beginning, extension = os.path.splitext(path)
    if extension.lower() != ".json":
        beginning = path
    contents = {"": graphs(result)}
    contents |= {f".{kind}": data for kind, data in node_data(result, cost).items()}
    written = []
    for ending, content in contents.items():
        written.append(f"{beginning}{ending}.json")
        files.write(written[-1], json.dumps(content, allow_nan=False))
    return written
