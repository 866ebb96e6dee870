"""GSPMD, part I: graphs of large programs, folded until they can be read (004:51, 004:128)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from shardcore import LocationError, Module, Result
from shardcore.cli import main
from shardcore.report.graph.rows import places

EXAMPLES = Path(__file__).parents[2] / "examples"
MESH = 'sdy.mesh @mesh = <["x"=2]>\n'


@pytest.fixture(scope="module")
def gpt() -> Result:
    return Module.from_file(EXAMPLES / "gpt_step.mlir").propagate()


def layers(count: int, *, has_scopes: bool) -> str:
    """Layers of a product and a tanh, each product under a scope of its own and all different."""
    lines = ["#root = loc(unknown)"]
    ops = []
    for layer in range(count):
        size = 8 + 2 * layer
        scopes = [f'"jit(f)/net/layer_{layer}/{name}/op"' for name in ("mlp", "act")]
        dot, tanh = [f" loc({scope})" if has_scopes else "" for scope in scopes]
        ops.append(
            f"%d{layer} = stablehlo.dot_general %x{layer}, %w{layer}, contracting_dims = [1] x [0]"
            f" : (tensor<4x{size}xf32>, tensor<{size}x{size + 2}xf32>)"
            f" -> tensor<4x{size + 2}xf32>{dot}\n"
            f"%x{layer + 1} = stablehlo.tanh %d{layer} : tensor<4x{size + 2}xf32>{tanh}"
        )
    weights = [f"%w{n}: tensor<{8 + 2 * n}x{10 + 2 * n}xf32>" for n in range(count)]
    last = f"tensor<4x{8 + 2 * count}xf32>"
    given = '%x0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    body = "\n".join(ops)
    return (
        "\n".join(lines)
        + f"\n{MESH}func.func @main({', '.join([given, *weights])}) -> {last} {{\n{body}\n"
        + f"return %x{count} : {last}\n}}"
    )


def test_004_051_the_gpt_step_is_folded_by_source_line(gpt: Result, tmp_path: Path) -> None:
    graph = gpt.graph(tmp_path / "out.svg")
    assert graph.folding == "by source line"
    assert 50 < len(graph.nodes) <= 250
    # Line 77 is attention's last one: 12 products, and their 24 gradients.
    found = {node.type: node for node in graph.nodes if node.name == "gpt_step.py:77"}
    assert sorted(found) == ["72 ops, 12 dot_general", "backward, 96 ops, 24 dot_general"]
    whole = gpt.graph(folds=False)
    counts = Counter(node.kind for node in whole.nodes)
    drawn = sum(node.members for node in graph.nodes if node.kind != "tensor")
    constants = sum(node.kind == "op" and node.name == "constant" for node in whole.nodes)
    assert drawn == counts["op"] - constants
    # It can be read: as wide as its widest row, and its text says how to see more.
    text = (tmp_path / "out.svg").read_text()
    root = ElementTree.fromstring(text)
    assert float(root.get("width", "0")) < 10_000
    assert graph.hint in [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert len(text) < 200_000


def test_004_051_a_group_alone(gpt: Result, tmp_path: Path, capsys) -> None:
    graph = gpt.graph(scope="gpt_step.py:77")
    assert graph.folding == ""
    assert Counter(node.name for node in graph.nodes)["dot_general"] == 3
    assert [each.times for each in graph.layers] == [12, 12]
    with pytest.raises(LocationError, match="no scope or source line") as caught:
        gpt.graph(scope="gpt_step.py:7")
    assert caught.value.code == "unknown-location"
    assert 'did you mean "gpt_step.py:77"?' in str(caught.value)
    with pytest.raises(ValueError, match="not both"):
        gpt.graph(scope="gpt_step.py:77", around="%12")
    path = str(EXAMPLES / "gpt_step.mlir")
    assert main(["graph", path, "-o", str(tmp_path / "out.dot")]) == 0
    shown = capsys.readouterr().out
    assert "53 groups of ops" in shown
    assert "to see more: --scope gpt_step.py:151, --around " in shown
    assert main(["graph", path, "--scope", "gpt_step.py:77"]) == 0
    assert capsys.readouterr().out.count('label="dot_general"') == 3
    assert main(["graph", path, "--scope", "nothing"]) == 1
    assert "unknown-location" in capsys.readouterr().err


def test_004_051_files_are_without_folders() -> None:
    text = layers(150, has_scopes=True).replace('/op"', '/op"("/home/me/net.py":3:4)')
    # One op in no scope: its line alone is its group.
    last = 'stablehlo.negate %x150 : tensor<4x308xf32> loc("/home/me/net.py":9:2)'
    text = text.replace("return %x150", f"%y = {last}\nreturn %y")
    graph = Module.parse(text).propagate().graph(max_nodes=500)
    assert graph.folding == "by scope and source line"
    assert {node.name for node in graph.nodes if node.kind == "ops"} | {
        node.name for node in graph.nodes if node.members == 1 and node.kind == "op"
    } >= {"net/layer_*/mlp net.py:3", "net/layer_*/act net.py:3"}
    assert not any("/home" in line for node in graph.nodes for line in node.lines)
    assert "1-999" not in graph.hint


def test_004_051_scopes_as_deep_as_fit() -> None:
    result = Module.parse(layers(150, has_scopes=True)).propagate()
    assert {op.name_stack for op in result.module.ops() if "layer_3/" in op.name_stack} == {
        "jit(f)/net/layer_3/mlp/op",
        "jit(f)/net/layer_3/act/op",
    }
    # Shapes differ from layer to layer: no layers are equal, but their scopes are.
    graph = result.graph(max_nodes=500)
    assert graph.folding == "by scope and source line"
    groups = {node.name: node for node in graph.nodes if node.kind == "ops"}
    assert {name: node.type for name, node in groups.items()} == {
        "net/layer_*/mlp": "150 ops, 150 dot_general",
        "net/layer_*/act": "150 ops",
    }
    assert "--scope 'net/layer_*/mlp'" in graph.hint
    assert len(result.graph(scope="net/layer_*/mlp", folds=False).nodes) == 4 * 150
    assert len(result.graph(scope="net/layer_3").nodes) == 6
    coarse = result.graph(max_nodes=160)
    assert coarse.folding == "by scope to depth 2"
    assert [node.name for node in coarse.nodes if node.kind == "ops"] == ["net/layer_*"]


def test_004_051_programs_without_scopes_and_lines() -> None:
    graph = Module.parse(layers(150, has_scopes=False)).propagate().graph(max_nodes=300)
    assert graph.folding == "by order"
    assert [node.name for node in graph.nodes if node.kind == "ops"][:2] == [
        "ops 1-15",
        "ops 16-30",
    ]
    assert "--scope 'ops 1-15'" in graph.hint


def test_004_051_chains_of_element_wise_ops() -> None:
    ops = "\n".join(
        f"%a{n} = stablehlo.{'tanh' if n % 3 else 'exponential'} %b{n} : tensor<4x{n + 8}xf32>\n"
        f"%c{n} = stablehlo.multiply %a{n}, %b{n} : tensor<4x{n + 8}xf32>\n"
        f"%d{n} = stablehlo.negate %c{n} : tensor<4x{n + 8}xf32>"
        for n in range(40)
    )
    arguments = ", ".join(f"%b{n}: tensor<4x{n + 8}xf32>" for n in range(40))
    results = ", ".join(f"tensor<4x{n + 8}xf32>" for n in range(40))
    returned = ", ".join(f"%d{n}" for n in range(40))
    module = Module.parse(
        f"func.func @main({arguments}) -> ({results}) {{\n{ops}\nreturn {returned} : {results}\n}}"
    )
    graph = module.propagate().graph()
    assert graph.folding == "by chains of element-wise ops"
    # Of each chain the argument, the ops and the result.
    assert len(graph.nodes) == 3 * 40
    assert len(graph.edges) == 2 * 40
    names = Counter(node.name for node in graph.nodes if node.kind == "ops")
    assert names == {"exponential, multiply, negate": 14, "tanh, multiply, negate": 26}
    assert "--scope" not in graph.hint
    assert len(module.propagate().graph(max_nodes=280).nodes) == 280


def test_004_051_rows_are_close_and_edges_straight() -> None:
    # Two chains, 0-2-4 and 1-3-5, of wide and of narrow nodes.
    widths = {0: 10.0, 1: 10.0, 2: 40.0, 3: 40.0, 4: 10.0, 5: 10.0}
    edges = [(0, 2), (1, 3), (2, 4), (3, 5)]
    found = places([[0, 1], [2, 3], [4, 5]], widths, edges)
    assert found[3] - found[2] == 40
    assert found[1] - found[0] == pytest.approx(40, abs=1)
    assert found[5] - found[4] == pytest.approx(40, abs=1)
    # One above three stands over the middle one.
    found = places([[0], [1, 2, 3]], dict.fromkeys(range(4), 10.0), [(0, 1), (0, 2), (0, 3)])
    assert [found[at] - found[0] for at in (1, 2, 3)] == pytest.approx([-10, 0, 10])
