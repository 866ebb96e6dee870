"""The page of a result: what is in it, how large it is, how long it takes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import shardcore
from shardcore import Module, PartitionError
from shardcore.costs.kinds import argument_kinds, layer_of
from shardcore.report.repeats import MIN_LINES, Run, runs

from benches.programs import gpt

EXAMPLES = Path(__file__).parents[2] / "examples"
MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'
TWO = (
    MESH
    + """func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>},
    %b: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}"""
)


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_gpt_step_fits(tmp_path: Path) -> None:
    result = Module.from_file(EXAMPLES / "gpt_step.mlir").propagate()
    result.report(tmp_path / "out.html", "tpu-v5p")
    html = (tmp_path / "out.html").read_text()
    assert len(html) < 1_000_000
    data = data_of(html)
    cost = result.cost("tpu-v5p")
    assert sum(len(row["names"].split()) for row in data["values"]) == sum(
        value.shape is not None for value in result.values()
    ) - len(result.arguments())
    assert sum(row["count"] for row in data["cost"]["collectives"]) == sum(
        row.count for row in cost.collectives
    )
    assert max(data["cost"]["steps"]["live"]) == cost.peak_bytes
    assert sum(data["cost"]["steps"]["time"]) == pytest.approx(cost.step_seconds * 1e12)
    assert data["has_all_whys"]
    # The source is beside the program.
    assert [file["is_read"] for file in data["files"]] == [True]
    assert "layer_norm" in [block["name"] for file in data["files"] for block in file["blocks"]]


def test_a_page_is_made_in_few_calls_for_each_value() -> None:
    """Calls are counted, which take the same on any machine: 300,000 take some 0.1 s."""
    calls, values = [], []
    # What is imported at the first page is not counted.
    Module.parse(TWO).propagate().show("tpu-v5p")
    for layers in (2, 6):
        result = Module.parse(gpt(layers)).propagate()
        made = Counted()
        sys.setprofile(made)
        try:
            result.show("tpu-v5p")
        finally:
            sys.setprofile(None)
        calls.append(made.calls)
        values.append(len(result.values()))
    assert (calls[1] - calls[0]) / (values[1] - values[0]) < 200
    assert calls[1] / values[1] < 300


class Counted:
    """Counts the calls of functions of Python and of extensions."""

    calls = 0

    def __call__(self, _frame: Any, event: str, _argument: Any) -> None:
        self.calls += event in ("call", "c_call")


def chains(data: dict[str, Any], rows: Any) -> list[Any]:
    """The chains of a row as ``Why.record`` has them."""
    found = []
    for axis, dim, link in rows:
        values = []
        while len(data["links"][link]) > 5:
            values.insert(0, data["links"][link][0])
            link = data["links"][link][-1]
        found.append((axis, dim, data["links"][link][0], values))
    return found


def test_chains_are_those_of_why() -> None:
    result = Module.from_file(EXAMPLES / "gpt_step.mlir").propagate()
    data = data_of(result.show().html)
    for row in data["values"][::40]:
        name = row["names"].split()[0]
        function = "" if row["function"] < 0 else f"@{data['texts'][row['function']]} "
        if row["sharding"] < 0:
            assert row["why"] is None
            continue
        expected = [
            (
                str(each.axis),
                each.dim,
                each.source.label or each.source.name,
                [step.value for step in each.chain],
            )
            for each in result.why(function + name).axes
        ]
        assert chains(data, row["why"]) == expected


def test_nothing_in_a_program_ends_its_element() -> None:
    evil = "</script><script>alert(1)</script>"
    text = TWO.replace('"x"', f'"{evil}"').replace("func.func", "func.func", 1)
    html = Module.parse(text, filename=f"{evil}.mlir").propagate().show().html
    assert evil not in html
    assert html.count("<script") == 2
    assert evil in {axis for row in data_of(html)["shardings"] for axis in row["axes"]}


def test_another_result_is_compared() -> None:
    before = Module.parse(TWO).propagate()
    after = Module.parse(TWO.replace('[{"x"}, {?}]', '[{?}, {"y"}]')).propagate()
    data = data_of(after.show(against=before).html)
    shardings = [row["short"] for row in data["shardings"]]
    changed = {
        row["names"]: (shardings[row["was"]], shardings[row["sharding"]])
        for row in data["values"]
        if row["was"] != -2 and row["op"] >= 0
    }
    assert changed == {"%0": ('[{"x"}, {}]', '[{"y"}, {}]')}
    totals = {name: (old, new) for name, old, new in data["changes"]["totals"]}
    costs = before.cost(), after.cost()
    assert totals["comm_seconds"] == (costs[0].comm_seconds, costs[1].comm_seconds)
    same = data_of(before.show(against=before).html)
    assert all(row["was"] == -2 for row in same["values"] + same["arguments"])
    with pytest.raises(TypeError, match="compared with a result, not a str"):
        before.show(against="before")


def test_diagnostics_are_those_of_the_result(tmp_path: Path) -> None:
    source = tmp_path / "model.py"
    source.write_text("\n".join(f"line {n}" for n in range(1, 9)))
    large, sharding = "tensor<8192x8192xf32>", '#sdy.sharding<@mesh, [{"x"}, {}]>'
    text = f"""{MESH}func.func @main(%a: {large} {{sdy.sharding = {sharding}}}) -> {large} {{
  %0 = "my.op"(%a) : ({large}) -> {large} loc("{source}":7:3)
  return %0 : {large}
}}"""
    result = Module.parse(text).propagate()
    data = data_of(result.show("tpu-v5e").html)
    expected = [each.record() for each in result.diagnostics("tpu-v5e")]
    assert "no-rule" in {row["code"] for row in expected}
    assert [(row["code"], row["message"], row["hint"]) for row in data["diagnostics"]] == [
        (row["code"], row["message"], row["hint"]) for row in expected
    ]
    places = {row["code"]: data["stacks"][row["place"]][0] for row in data["diagnostics"]}
    assert places["no-rule"] == [str(source), 7, 3]


def test_the_text_of_a_program_without_locations_is_shown() -> None:
    data = data_of(Module.parse(TWO).propagate().show().html)
    lines = [line for run in data["listing"]["runs"] for line in run["lines"]]
    rows = [row for run in data["listing"]["runs"] for row in run["rows"]]
    [at] = [at for at, line in enumerate(lines) if "dot_general" in line]
    assert data["values"][rows[at]]["names"] == "%0"


def test_a_program_that_cannot_be_partitioned_has_a_page() -> None:
    text = """sdy.mesh @small = <["x"=2]>
sdy.mesh @large = <["x"=4]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@small, [{"x"}]>},
    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@large, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    result = Module.parse(text).propagate()
    with pytest.raises(PartitionError) as caught:
        result.cost()
    data = data_of(result.show().html)
    assert (data["cost"], data["no_cost"]) == (None, caught.value.message)


def test_unknown_hardware_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(shardcore.CalculusError, match="tpu-v9"):
        Module.parse(TWO).propagate().report(tmp_path / "out.html", "tpu-v9")
    assert not (tmp_path / "out.html").exists()


def test_a_source_that_is_not_found_is_one_block() -> None:
    text = TWO.replace(
        "\n  return",
        ' loc("nowhere.py":7:3)\n  %1 = stablehlo.tanh %0 : tensor<8x32xf32> '
        'loc("nowhere.py":4:3)\n  return',
    ).replace("return %0", "return %1")
    [file] = data_of(Module.parse(text).propagate().show().html)["files"]
    assert not file["is_read"]
    assert file["blocks"] == [{"name": "", "first": 4, "lines": ["", ""], "numbers": [4, 7]}]


def test_lines_of_the_graph_fit_their_boxes() -> None:
    name = "a_very_long_path_of_a_parameter['that']['no']['box']['has']['room']['for']"
    text = TWO.replace("%b: tensor<16x32xf32>", f'%b: tensor<16x32xf32> loc("{name}")')
    nodes = data_of(Module.parse(text).propagate().show().html)["graph"]["nodes"]
    [node] = [node for node in nodes if node["value"] == "%b"]
    [line] = [line for line in node["lines"] if line.startswith("a_very")]
    assert line == f"{name[:20]}...{name[-21:]}"
    # What rests below the pointer is the whole name.
    assert node["title"].splitlines()[0] == name
    assert all(node["title"] is None for node in nodes if node["value"] != "%b")


def test_only_python_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2\n" * 10)
    text = TWO.replace(
        "-> tensor<8x32xf32>\n  return", f'-> tensor<8x32xf32> loc("{secret}":3:1)\n  return'
    )
    result = Module.parse(text).propagate()
    assert result["%0"].location == f"{secret}:3:1"
    html = result.show().html
    assert "hunter2" not in html
    source = tmp_path / "model.py"
    source.write_text("import jax\n\n\ndef step(a, b):\n    return a @ b\n\n\nsecret = 1\n")
    text = text.replace(f'"{secret}":3:1', f'"{source}":5:12')
    [file] = data_of(Module.parse(text).propagate().show().html)["files"]
    assert file["blocks"] == [
        {"name": "step", "first": 4, "lines": ["def step(a, b):", "    return a @ b"]}
    ]


def test_layers_of_a_text_are_folded() -> None:
    layer = [f"%{{n}}{at} = op{at} %x" for at in range(MIN_LINES + 2)]
    lines = ["first"] + [line.format(n=n) for n in range(5) for line in layer] + ["last"]
    size = len(layer)
    assert runs(lines) == [Run(0, 1), Run(1, 1 + size, 4 * size), Run(1 + 5 * size, 2 + 5 * size)]
    assert runs(lines)[1].times == 4
    assert runs([]) == []
    assert runs(["a", "b"] * 3) == [Run(0, 6)]
    for each in ([str(n) for n in range(100)], ["same"] * 100, lines * 3):
        covered = [place for run in runs(each) for place in (run.start, run.stop + run.skipped)]
        assert covered == sorted(covered)
        assert covered[0] == 0
        assert covered[-1] == len(each)


def test_notebooks_show_it_in_a_frame() -> None:
    html = Module.parse(TWO).propagate().show()._repr_html_()
    assert html.startswith('<iframe sandbox="allow-scripts" srcdoc="&lt;!DOCTYPE html&gt;')
    assert html.count('"') == 8


def test_the_graph_and_the_frames_of_propagation() -> None:
    result = Module.parse(TWO).propagate()
    data = data_of(result.show().html)
    graph = result.graph()
    assert [node["lines"] for node in data["graph"]["nodes"]] == [
        list(node.lines) for node in graph.nodes
    ]
    assert len(data["graph"]["edges"]) == len(graph.edges)
    visits = [visit for *_, visits in data["frames"]["steps"] for visit in visits]
    assert [data["texts"][op] for op, _, _ in visits] == [
        visit.op for _, visit in result.steps().visits()
    ]
    assert data["graph"]["hint"] == ""


def test_the_graph_of_the_gpt_step_is_folded() -> None:
    data = data_of(Module.from_file(EXAMPLES / "gpt_step.mlir").propagate().show().html)
    assert data["frames"]["left_out"] == 0
    graph = data["graph"]
    assert 50 < len(graph["nodes"]) <= 250
    assert graph["hint"].startswith("folded by source line; to see more: --scope gpt_step.py:")
    lines = [node["lines"] for node in graph["nodes"]]
    assert ["gpt_step.py:77", "backward, 96 ops, 24 dot_general"] in lines
    assert graph["width"] < 10_000
    assert graph["height"] < 6_000


def test_the_costs_of_modules() -> None:
    result = Module.parse(TWO).propagate()
    cost = result.cost("tpu-v5p")
    rows = data_of(result.show("tpu-v5p").html)["cost"]["scopes"]
    assert [row["scope"] for row in rows] == [""]
    assert rows[0]["seconds"] == pytest.approx(cost.step_seconds)


def test_changes_worth_most_were_tried() -> None:
    result = Module.from_file(EXAMPLES / "gpt_step.mlir").propagate()
    cost = data_of(result.show("tpu-v5p", edits=3).html)["cost"]
    assert 0 < cost["tried"] <= 24
    assert 0 < len(cost["best"]) <= 3
    before = result.cost("tpu-v5p")
    assert (cost["mfu"], cost["fits"]) == (before.usage.mfu, before.fits)
    for change in cost["best"]:
        session = Module.from_file(EXAMPLES / "gpt_step.mlir").session()
        session.set(change["target"], change["sharding"])
        after = session.cost("tpu-v5p")
        assert after.step_seconds - before.step_seconds == pytest.approx(change["step_seconds"])
        assert after.peak_bytes - before.peak_bytes == change["peak_bytes"]
        assert change["step_seconds"] < 0
    assert data_of(result.show("tpu-v5p").html)["cost"]["best"] == []


def test_what_a_hint_saves_is_among_the_changes_worth_most(tmp_path: Path) -> None:
    """An embedding takes the axis of the batch; the line that keeps it there is worth most."""
    from tests.why.test_constrained_lines import TRAINED, completed, user

    result = completed(user(tmp_path, TRAINED), 2048)
    [root, *_] = result.diagnostics("h100")
    assert root.remedy is not None
    best = data_of(result.show("h100", edits=3).html)["cost"]["best"]
    [found] = [change for change in best if change["line"] is not None]
    assert found["line"] == "x = jax.lax.with_sharding_constraint(x, P('fsdp'))"
    assert found["step_seconds"] == pytest.approx(root.remedy.seconds)


def test_memory_by_kind_adds_up_to_the_peak() -> None:
    result = Module.from_file(EXAMPLES / "gpt_step.mlir").propagate()
    cost = result.cost("tpu-v5p")
    memory = data_of(result.show("tpu-v5p").html)["cost"]["memory"]
    kinds, lines = memory["charts"]
    sums = [sum(sizes) for sizes in zip(*kinds["bytes"], strict=True)]
    assert sums == [sum(sizes) for sizes in zip(*lines["bytes"], strict=True)]
    assert max(sums) == sums[memory["peak"]] == cost.peak_bytes
    at_peak = {
        kind: sizes[memory["peak"]]
        for kind, sizes in zip(kinds["names"], kinds["bytes"], strict=True)
    }
    assert at_peak["activations"] > cost.peak_bytes / 2
    assert at_peak["optimizer state"] > at_peak["parameters"]
    arguments = ("parameters", "optimizer state", "other arguments")
    assert sum(at_peak[kind] for kind in arguments) == cost.argument_bytes


def kinds_of(types: Mapping[str, str]) -> dict[str, str]:
    """The kind of each argument, by path, of a program that returns the first of them."""
    arguments = ", ".join(
        f'%arg{n}: tensor<{kind}> loc("{path}")' for n, (path, kind) in enumerate(types.items())
    )
    first = next(iter(types.values()))
    text = f"func.func @main({arguments}) -> tensor<{first}> {{ return %arg0 : tensor<{first}> }}"
    ports = Module.parse(text).arguments()
    kinds = argument_kinds(ports)
    return {port.label or "": kinds[port.name] for port in ports}


def test_states_have_the_paths_and_types_of_parameters() -> None:
    types = {
        "state['params']['layers']['q']": "8x4xf32",
        "state['m']['layers']['q']": "8x4xf32",
        "v['layers']['q']": "8x4xf32",
        "batch['layers']['q']": "8xi32",
        "tokens": "8x4xf32",
    }
    state, other = "optimizer state", "other arguments"
    assert list(kinds_of(types).values()) == ["parameters", state, state, other, other]


def test_kinds_of_arguments() -> None:
    paths = {
        "state['params']['blocks'][3]['mlp']['up']": "parameters",
        "state['adam']['m']['blocks'][3]['mlp']['up']": "optimizer state",
        "state.opt_state[0].mu['params']['w']": "optimizer state",
        "batch['tokens']": "other arguments",
        "optics": "other arguments",
    }
    assert kinds_of(dict.fromkeys(paths, "8xf32")) == paths
    assert layer_of("params['blocks'][3]['mlp']") == layer_of("layer_3/mlp") == 3
    assert layer_of("mlp") is None


def test_lines_have_their_times_whatever_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    result = Module.from_file(EXAMPLES / "gpt_step.mlir").propagate()
    whole = data_of(result.show("tpu-v5p").html)["cost"]
    monkeypatch.setattr("shardcore.report.page.costs.MAX_STEPS", 50)
    cut = data_of(result.show("tpu-v5p").html)["cost"]
    assert len(cut["steps"]["time"]) < len(whole["steps"]["time"])
    assert cut["times"] == whole["times"]


def test_pages_of_large_programs_leave_out_what_is_made_op_by_op(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = Module.from_file(EXAMPLES / "gpt_step.mlir").propagate()
    whole = data_of(result.show("tpu-v5p").html)
    monkeypatch.setattr("shardcore.report.page.data.LARGE", 1000)
    monkeypatch.setattr("shardcore.report.page.data.MOST_VALUES", 500)
    data = data_of(result.show("tpu-v5p").html)
    assert data["left_out"] == len(result.values()) - 500
    assert "shardcore graph FILE" in data["graph"]["reason"]
    assert data["cost"]["steps"]["time"] == []
    memory = data["cost"]["memory"]
    assert sum(sizes[0] for sizes in memory["charts"][0]["bytes"]) == whole["cost"]["peak_bytes"]
    for name in ("step", "peak_bytes", "mfu"):
        assert data["cost"][name] == whole["cost"][name]
    assert len(data["cost"]["collectives"]) == len(whole["cost"]["collectives"])
