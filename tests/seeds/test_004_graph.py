"""GSPMD, part I: the computation graph, drawn with shardings, and completion step by step."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from shardcore import LocationError, Module, Result
from shardcore.cli import main
from shardcore.report.graph import Graph

from tests.seeds.test_004_gspmd import PERCEPTRON


@pytest.fixture(scope="module")
def result() -> Result:
    return Module.parse(PERCEPTRON).propagate()


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def test_004_050_the_graph_of_the_perceptron(result: Result) -> None:
    # Tensors and ops alternate: x and w to dot, b to broadcast, both to add.
    graph = result.graph()
    found = names(graph)
    assert sorted((found[a], found[b]) for a, b in graph.edges) == [
        ("%0", "add"),
        ("%1", "add"),
        ("%arg0", "dot_general"),
        ("%arg1", "dot_general"),
        ("%arg2", "broadcast_in_dim"),
        ("add", "%2"),
        ("broadcast_in_dim", "%1"),
        ("dot_general", "%0"),
    ]
    assert str(graph) == "6 tensors, 3 ops, 8 edges"


def test_004_221_annotated_tensors_are_marked(result: Result) -> None:
    # Line 222: the three arguments and the result are annotated; the other tensors have the
    # shardings of lines 206 to 213.
    tensors = {node.name: node for node in result.graph().nodes if node.kind == "tensor"}
    assert {name for name, node in tensors.items() if node.annotated} == {
        "%arg0",
        "%arg1",
        "%arg2",
        "%2",
    }
    assert tensors["%0"].lines == ("%0", "48x48xf32", '[{"x"}, {"y"}]')


def test_004_128_dot_text(result: Result, tmp_path: Path, capsys) -> None:
    text = result.graph().dot()
    assert text.startswith("digraph")
    assert text.count(" -> ") == 8
    assert text.count("penwidth=3") == 4  # a border in blue
    assert result.graph(tmp_path / "out.dot").dot() == (tmp_path / "out.dot").read_text()
    path = tmp_path / "model.mlir"
    path.write_text(PERCEPTRON)
    assert main(["graph", str(path)]) == 0
    assert capsys.readouterr().out.count(" -> ") == 8
    with pytest.raises(ValueError, match="png"):
        result.graph(tmp_path / "out.png")


def test_004_173_a_picture(result: Result, tmp_path: Path, capsys) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(PERCEPTRON)
    assert main(["graph", str(path), "-o", str(tmp_path / "out.svg")]) == 0
    assert "6 tensors, 3 ops" in capsys.readouterr().out
    root = ElementTree.fromstring((tmp_path / "out.svg").read_text())
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"dot_general", '[{"x"}, {"y"}]'} <= set(texts)
    boxes = [
        each.get("class", "").split() for each in root.iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert sum("t" in box for box in boxes) == 6
    assert sum("o" in box for box in boxes) == 3
    assert sum("a" in box for box in boxes) == 4
    # No two boxes overlap.
    places = [
        [float(each.get(name, "0")) for name in ("x", "y", "width", "height")]
        for each in root.iter("{http://www.w3.org/2000/svg}rect")
    ]
    for index, (x, y, width, height) in enumerate(places):
        for u, v, wide, high in places[:index]:
            assert x + width <= u or u + wide <= x or y + height <= v or v + high <= y


def test_004_051_what_is_near_a_value(result: Result, tmp_path: Path, capsys) -> None:
    assert names(result.graph(around="%1", hops=1)) == [
        "%arg2",
        "%0",
        "broadcast_in_dim",
        "%1",
        "add",
        "%2",
    ]
    assert names(result.graph(around="1", hops=0)) == ["%1"]
    with pytest.raises(LocationError, match="no tensor") as caught:
        result.graph(around="%7")
    assert caught.value.code == "unknown-location"
    path = tmp_path / "model.mlir"
    path.write_text(PERCEPTRON)
    assert main(["graph", str(path), "--around", "%1", "--hops", "1"]) == 0
    assert "dot_general" not in capsys.readouterr().out


def test_004_051_repeated_layers_are_folded() -> None:
    layers = []
    for layer in range(6):
        layers += [
            f"%d{layer} = stablehlo.dot_general %x{layer}, %w{layer}, contracting_dims = [1] x [0] "
            ": (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>",
            f"%t{layer} = stablehlo.tanh %d{layer} : tensor<8x8xf32>",
            f"%a{layer} = stablehlo.add %t{layer}, %x{layer} : tensor<8x8xf32>",
            f"%n{layer} = stablehlo.negate %a{layer} : tensor<8x8xf32>",
            f"%x{layer + 1} = stablehlo.abs %n{layer} : tensor<8x8xf32>",
        ]
    arguments = ", ".join(f"%w{layer}: tensor<8x8xf32>" for layer in range(6))
    text = "\n  ".join(layers)
    module = Module.parse(
        f"func.func @main(%x0: tensor<8x8xf32>, {arguments}) -> tensor<8x8xf32> {{\n  {text}\n"
        "  return %x6 : tensor<8x8xf32>\n}"
    )
    graph = module.propagate().graph()
    (layer,) = graph.layers
    assert (len(layer.nodes), layer.times) == (10, 6)
    assert len(graph.nodes) == 12  # and the arguments of one layer
    assert "x 6" in graph.dot()
    assert len(module.propagate().graph(folds=False).nodes) == 7 + 60


def test_004_173_completion_step_by_step(result: Result, tmp_path: Path, capsys) -> None:
    changes = [
        (visit.op, change.value, change.before, change.after)
        for _, visit in result.steps().visits()
        for change in visit.changes
    ]
    assert [(op, value) for op, value, _, _ in changes] == [
        ("stablehlo.dot_general", "%0"),
        ("stablehlo.add", "%1"),
        ("stablehlo.add", "%2"),
    ]
    assert all(before is None for _, _, before, _ in changes)
    path = tmp_path / "model.mlir"
    path.write_text(PERCEPTRON)
    assert main(["steps", str(path)]) == 0
    shown = capsys.readouterr().out
    assert '%0  none -> [{"x", ?}, {"y", ?}]' in shown
    assert main(["steps", str(path), "--value", "%2", "--json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    assert [visit["op"] for visit in step["visits"]] == ["stablehlo.add"]


def test_004_051_a_large_graph_is_drawn_in_parts(tmp_path: Path, capsys) -> None:
    ops = "\n".join(
        f"  %{number + 1} = stablehlo.{'tanh' if number * number % 7 < 3 else 'abs'} %{number} : tensor<f32>"
        for number in range(2200)
    )
    path = tmp_path / "model.mlir"
    path.write_text(
        f"func.func @main(%0: tensor<f32>) -> tensor<f32> {{\n{ops}\n  return %2200 : tensor<f32>\n}}"
    )
    graph = Module.from_file(path).propagate().graph(folds=False)
    assert repr(graph) == "<Graph 2201 tensors, 2200 ops, 4400 edges>"
    assert graph._repr_svg_() is None
    with pytest.raises(ValueError, match="4,401 tensors and ops"):
        graph.svg()
    with pytest.raises(SystemExit):
        main(["graph", str(path), "-o", str(tmp_path / "out.svg"), "--all-layers"])
    assert "around a value" in capsys.readouterr().err
