"""Files for other tools: Chrome traces, and node data for Model Explorer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardcore import Module
from shardcore.cli import main
from shardcore.report.model_explorer import node_data, nodes
from shardcore.report.trace import trace

from tests.unit.test_cost_steps import MESH, PROGRAMS

LOOP = MESH + PROGRAMS["loop"]
CALLS = MESH + PROGRAMS["calls"]


def test_a_trace_adds_up() -> None:
    cost = Module.parse(LOOP).propagate().cost("tpu-v5e")
    found = trace(cost, "loop.mlir")
    events = found["traceEvents"]
    steps = [event for event in events if event["ph"] == "X"]
    assert sum(step["dur"] for step in steps) == pytest.approx(cost.serial_seconds * 1e6)
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


def test_nodes_are_numbered_as_by_model_explorer() -> None:
    """The ids that version 0.2.1 of its adapter gives: an op comes before those inside it."""
    result = Module.parse(LOOP).propagate()
    found = {(node, value.op) for _, node, value in nodes(result)}
    assert found >= {
        ("arg0", None),
        ("0", "sdy.constant"),
        ("1", "stablehlo.while"),
        ("2", "sdy.constant"),
        ("3", "stablehlo.compare"),
        ("6", "stablehlo.add"),
        ("7", "stablehlo.dot_general"),
    }


@pytest.mark.parametrize("text", [LOOP, CALLS])
def test_the_adapter_of_model_explorer_has_these_nodes(text: str, tmp_path: Path) -> None:
    adapter = pytest.importorskip("ai_edge_model_explorer_adapter")
    result = Module.parse(text).propagate()
    (tmp_path / "out.mlir").write_text(str(result.module))
    config = adapter.VisualizeConfig()
    graphs = json.loads(adapter.ConvertMlirToJson(config, str(tmp_path / "out.mlir")))
    known = {
        (graph["id"], node["id"]): node["label"]
        for each in graphs
        for graph in each["subgraphs"]
        for node in graph["nodes"]
    }
    for function, node, value in nodes(result):
        label = known[function, node]
        assert value.op == label or (value.op is None and label.startswith("input_"))


def test_node_data() -> None:
    result = Module.parse(CALLS).propagate()
    cost = result.cost("tpu-v5e")
    found = node_data(result, cost)
    arg0 = found["sharding"]["main"]["results"]["arg0"]
    assert arg0["value"] == '[{"x"}, {"y"}]'
    assert found["bytes"]["main"]["results"]["arg0"]["value"] == 64 * 64 * 4 // 8
    # Four calls of two functions run the product four times.
    seconds = [
        row["value"] for graph in found["seconds"].values() for row in graph["results"].values()
    ]
    assert sum(seconds) == pytest.approx(cost.compute_seconds)
    assert all(graph["gradient"] for graph in found["bytes"].values())


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, out = tmp_path / "model.mlir", tmp_path / "out.json"
    program.write_text(LOOP)
    flags = ["--trace", str(tmp_path / "trace.json"), "--model-explorer", str(out)]
    assert main(["report", str(program), *flags]) == 0
    written = [tmp_path / f"out.{kind}" for kind in ("mlir", "sharding.json")]
    written += [tmp_path / f"out.{kind}.json" for kind in ("bytes", "seconds")]
    assert capsys.readouterr().out.split() == list(map(str, written))
    assert Module.from_file(written[0]).num_ops > 0
    assert "main" in json.loads(written[1].read_text())
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    for wrong in ([], ["-o", "-"], ["--trace", "-"]):
        with pytest.raises(SystemExit) as caught:
            main(["report", str(program), *wrong])
        assert caught.value.code == 2
