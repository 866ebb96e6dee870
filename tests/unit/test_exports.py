"""Files for other tools: Chrome traces, and graphs for Model Explorer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shardcore import Module
from shardcore.cli import main
from shardcore.report.model_explorer import graphs, node_data
from shardcore.report.trace import trace

from tests.unit.test_cost_steps import MESH, PROGRAMS

LOOP = MESH + PROGRAMS["loop"]
CALLS = MESH + PROGRAMS["calls"]


def test_a_trace_adds_up() -> None:
    cost = Module.parse(LOOP).propagate().cost("tpu-v5e")
    found = trace(cost, "loop.mlir")
    events = found["traceEvents"]
    steps = [event for event in events if event["ph"] == "X"]
    assert sum(step["dur"] for step in steps) == pytest.approx(cost.step_seconds * 1e6)
    ends = [step["ts"] + step["dur"] for step in steps]
    assert [step["ts"] for step in steps] == pytest.approx([0, *ends[:-1]])
    names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert "compute (predicted)" in names.values()
    assert all("predicted" in event["args"]["name"] for event in events if event["ph"] == "M")
    sent = [step for step in steps if "axes" in step["args"]]
    assert sum(step["args"]["sent bytes"] for step in sent) == sum(
        row.total_wire_bytes for row in cost.collectives
    )
    assert {names[step["tid"]] for step in sent} == {
        f"{', '.join(row.axes)} (predicted)" for row in cost.collectives
    }
    live = [event["args"]["bytes"] for event in events if event["ph"] == "C"]
    assert max(live) == cost.peak_bytes


SCOPED = (
    MESH
    + """
func.func @main(%a: tensor<8x8xf32> loc("params['w']")) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.tanh %a : tensor<8x8xf32> loc("jit(f)/decoder/layer_0/tanh"("m.py":3:1))
  %1:2 = stablehlo.optimization_barrier %0, %a : tensor<8x8xf32>, tensor<8x8xf32>
  %2 = stablehlo.abs %1#1 : tensor<8x8xf32> loc("jit(f)/decoder/abs"("m.py":4:1))
  return %2, %1#0 : tensor<8x8xf32>, tensor<8x8xf32>
}
"""
)


def nodes_of(text: str, graph: int = 0) -> dict[str, dict[str, Any]]:
    found = graphs(Module.parse(text, filename="f.mlir").propagate())
    return {node["id"]: node for node in found["graphs"][graph]["nodes"]}


def sources(node: dict[str, Any]) -> list[tuple[str, str, str]]:
    names = ("sourceNodeId", "sourceNodeOutputId", "targetNodeInputId")
    return [tuple(edge[name] for name in names) for edge in node["incomingEdges"]]  # type: ignore[misc]


def test_scopes_are_groups() -> None:
    found = nodes_of(SCOPED)
    assert [(node["label"], node["namespace"]) for node in found.values()] == [
        ("params['w']", ""),
        ("tanh", "decoder/layer_0"),
        ("optimization_barrier", ""),
        ("abs", "decoder"),
        ("return", ""),
    ]
    assert sources(found["%2"]) == [("%1#0", "1", "0")]
    assert sources(found["func.return 4"]) == [("%2", "0", "0"), ("%1#0", "0", "1")]
    assert {"key": "location", "value": "m.py:3:1"} in found["%0"]["attrs"]


def test_regions_are_groups_and_values_flow_into_them() -> None:
    found = nodes_of(LOOP)
    groups = {node["id"]: node["namespace"] for node in found.values()}
    assert groups["%0#0"] == ""
    assert groups["%0 cond %1"] == groups["%0 cond %i"] == "while %0#0 region 0"
    assert groups["%2"] == groups["%x"] == "while %0#0 region 1"
    assert sources(found["%x"]) == [("%a", "0", "0")]
    assert sources(found["%2"]) == [("%x", "0", "0"), ("%x", "0", "1")]
    outputs = found["%0#0"]["outputsMetadata"]
    assert {"key": "sharding", "value": '[{"x"}, {"y"}]'} in outputs[1]["attrs"]
    assert {"key": "local shape", "value": "32x16"} in outputs[1]["attrs"]


def test_calls_lead_to_functions() -> None:
    found = graphs(Module.parse(CALLS).propagate())
    known = {graph["id"] for graph in found["graphs"]}
    called = {
        name
        for graph in found["graphs"]
        for node in graph["nodes"]
        for name in node.get("subgraphIds", ())
    }
    assert called
    assert called <= known


@pytest.mark.parametrize("text", [LOOP, CALLS, SCOPED, *PROGRAMS.values()])
def test_every_edge_and_every_figure_has_its_node(text: str) -> None:
    result = Module.parse(text if text.startswith(MESH) else MESH + text).propagate()
    known: dict[str, set[str]] = {}
    for graph in graphs(result)["graphs"]:
        names = [node["id"] for node in graph["nodes"]]
        assert len(set(names)) == len(names)
        known[graph["id"]] = set(names)
        for node in graph["nodes"]:
            assert {source for source, _, _ in sources(node)} <= set(names)
    for data in node_data(result, result.cost("tpu-v5e")).values():
        for function, graph in data.items():
            assert graph["results"].keys() <= known[function]


@pytest.mark.parametrize("text", [LOOP, CALLS, SCOPED])
def test_model_explorer_has_such_graphs(text: str) -> None:
    """Its own classes are made of them, which refuse other keys and types."""
    builder = pytest.importorskip("model_explorer.graph_builder")
    data_builder = pytest.importorskip("model_explorer.node_data_builder")
    dacite = pytest.importorskip("dacite")
    strict = dacite.Config(strict=True)
    result = Module.parse(text).propagate()
    found = graphs(result)
    made = dacite.from_dict(builder.GraphCollection, found, strict)
    assert sum(len(graph.nodes) for graph in made.graphs) == sum(
        len(graph["nodes"]) for graph in found["graphs"]
    )
    for data in node_data(result, result.cost("tpu-v5e")).values():
        for graph in data.values():
            # It shows texts, too, though its annotations name numbers alone.
            config = dacite.Config(strict=True, check_types=False)
            dacite.from_dict(data_builder.GraphNodeData, graph, config)


def test_node_data() -> None:
    result = Module.parse(CALLS).propagate()
    cost = result.cost("tpu-v5e")
    found = node_data(result, cost)
    arg0 = found["sharding"]["main"]["results"]["%a"]
    assert arg0["value"] == '[{"x"}, {"y"}]'
    assert found["bytes"]["main"]["results"]["%a"]["value"] == 64 * 64 * 4 // 8
    # Four calls of two functions run the product four times.
    seconds = [
        row["value"] for graph in found["seconds"].values() for row in graph["results"].values()
    ]
    assert sum(seconds) == pytest.approx(cost.step_seconds - cost.exposed_seconds)
    assert all(graph["gradient"] for graph in found["bytes"].values())


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, out = tmp_path / "model.mlir", tmp_path / "out.json"
    program.write_text(LOOP)
    flags = ["--trace", str(tmp_path / "trace.json"), "--model-explorer", str(out)]
    assert main(["report", str(program), *flags]) == 0
    kinds = ("sharding", "bytes", "seconds")
    written = [out, *(tmp_path / f"out.{kind}.json" for kind in kinds)]
    assert capsys.readouterr().out.split() == list(map(str, written))
    assert json.loads(out.read_text())["graphs"][0]["id"] == "main"
    assert "main" in json.loads(written[1].read_text())
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    for wrong in ([], ["-o", "-"], ["--trace", "-"]):
        with pytest.raises(SystemExit) as caught:
            main(["report", str(program), *wrong])
        assert caught.value.code == 2
