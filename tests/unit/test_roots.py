"""Where an axis is lost, as the root of other warnings, with the edit that keeps it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardcore import Module, Result
from shardcore.cli import main
from shardcore.diagnose import diagnostics
from shardcore.diagnose.flow import Flow
from shardcore.labels import named_together
from shardcore.units import format_seconds

from tests.unit.texts import sharded

MESH = 'sdy.mesh @mesh = <["fsdp"=4, "tensor"=2]>\n'
X = "tensor<64x1024x2048xbf16>"
W = "tensor<2048x8192xbf16>"


def model(layers: int = 2) -> str:
    """An embedding whose width is sharded as the batch of the tokens is, and layers behind it."""
    weights = ", ".join(
        f"%w{k}: {W} {sharded('fsdp', 'tensor')} loc(\"params['layers'][{k}]['w']\")"
        for k in range(layers)
    )
    text = f"""{MESH}func.func @main(
    %embed: tensor<32000x2048xbf16> {sharded("tensor", "fsdp")} loc("params['embed']"),
    %tokens: tensor<64x1024x1xi32> {sharded("fsdp", "", "")} loc("tokens"),
    %labels: {X} {sharded("fsdp", "", "")} loc("labels"), {weights}) -> tensor<64x1024xbf16> {{
  %x0 = "stablehlo.gather"(%embed, %tokens) <{{dimension_numbers = #stablehlo.gather<
      offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 2048>}}>
    : (tensor<32000x2048xbf16>, tensor<64x1024x1xi32>) -> {X} loc("model.py":10:4)
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
"""
    wide = X.replace("2048", "8192")
    for k in range(layers):
        text += f"""
  %h{k} = stablehlo.dot_general %x{k}, %w{k}, contracting_dims = [2] x [0]
    : ({X}, {W}) -> {wide} loc("model.py":20:4)
  %t{k} = stablehlo.tanh %h{k} : {wide} loc("model.py":21:4)
  %x{k + 1} = stablehlo.dot_general %t{k}, %w{k}, contracting_dims = [2] x [1]
    : ({wide}, {W}) -> {X} loc("model.py":22:4)
"""
    return (
        text
        + f"""
  %y = stablehlo.multiply %x{layers}, %labels : {X} loc("model.py":30:4)
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [2]
    : ({X}, tensor<bf16>) -> tensor<64x1024xbf16> loc("model.py":31:4)
  return %s : tensor<64x1024xbf16>
}}"""
    )


@pytest.fixture(scope="module")
def lost() -> Result:
    return Module.parse(model()).propagate()


def test_the_axis_is_followed_to_where_it_is_lost(lost: Result) -> None:
    flow = Flow(lost.module)
    [loss] = [each for each in flow.losses("%x1", "fsdp") if each.dim == 0]
    assert (loss.op.name, loss.value.name, loss.operand.name) == (
        "stablehlo.gather",
        "%x0",
        "%tokens",
    )
    assert flow.losses("%tokens", "tensor") == []


def test_the_root_leads_with_the_edit_that_keeps_the_axis(lost: Result) -> None:
    [root, *others] = lost.diagnostics("tpu-v5p")
    assert root.code == "axis-lost"
    assert '"fsdp", which it has from tokens, is lost on dim 0 at this gather' in root.message
    assert "has it on dim 2, from params['embed']" in root.message
    assert "write x = jax.lax.with_sharding_constraint(x, P('fsdp')) at model.py:10" in str(root)
    assert "axis-lost" not in {each.code for each in others}
    session = lost._given().session()
    before = session.cost("tpu-v5p")
    session.set("%x0", '[{"fsdp"}, {}, {}]')
    after = session.cost("tpu-v5p")
    saved = format_seconds(before.step_seconds - after.step_seconds)
    assert f"{saved} of the step" in root.message
    assert "axis-lost" not in {each.code for each in session.result.diagnostics("tpu-v5p")}


def test_edits_are_costed_as_the_cost_that_is_given(lost: Result) -> None:
    told = [lost.diagnostics("tpu-v5p")]
    for options in ({}, {"efficiency": 0.01}):
        cost = lost.cost("tpu-v5p", **options)
        told.append(diagnostics(lost, cost.hardware, cost=cost))
    assert told[1] == told[0]
    # Where links are slow, the same edit saves more.
    assert told[2][0].code == told[1][0].code == "axis-lost"
    assert told[2][0].hint != told[1][0].hint


def test_through_a_loop_and_a_call() -> None:
    text = f"""{MESH}func.func @main(%a: tensor<8x8xf32> {sharded("fsdp", "")},
    %w: tensor<8x8xf32> {sharded("", "fsdp")}) -> tensor<8x8xf32> {{
  %0 = call @f(%a, %w) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{{}}, {{}}]> : tensor<8x8xf32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %2:2 = stablehlo.while(%i = %n, %c = %1) : tensor<i32>, tensor<8x8xf32>
  cond {{
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %d = stablehlo.tanh %c : tensor<8x8xf32>
    stablehlo.return %i, %d : tensor<i32>, tensor<8x8xf32>
  }}
  return %2#1 : tensor<8x8xf32>
}}
func.func private @f(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {{
  %0 = sdy.sharding_constraint %x <@mesh, [{{}}, {{"tensor"}}]> : tensor<8x8xf32>
  %1 = stablehlo.add %0, %y : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}}"""
    flow = Flow(Module.parse(text).propagate().module)
    # What a constraint takes away is meant to be gone.
    assert all(each.op.name != "sdy.sharding_constraint" for each in flow.losses("%2#1", "fsdp"))
    [loss] = flow.losses("%2#1", "tensor")
    assert (loss.value.qualified_name, loss.operand.name, loss.dim) == ("@f %1", "%0", 1)


def test_the_command_shows_five(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.mlir"
    big = "tensor<8192x8192xf32>"
    names = [f"%a{k}" for k in range(4)]
    arguments = ", ".join(f"{name}: {big}" for name in names)
    calls = "\n".join(f'  %b{k} = "my.op{k}"(%x) : ({big}) -> {big}' for k in range(4))
    path.write_text(
        f"{MESH}func.func @main(%x: {big} {sharded('fsdp', '')}, {arguments}) -> {big} {{\n"
        f"{calls}\n  return %x : {big}\n}}"
    )
    assert main(["propagate", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.count("warning[") == 5
    assert "more warnings: --json has all" in shown
    assert main(["propagate", str(path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["diagnostics"]) > 5


def test_names_together() -> None:
    labels = [f"params['layers']['{name}']" for name in ("wq", "wk", "wv")]
    assert named_together([*labels, "tok"]) == "params['layers'][*] and tok"
    assert named_together(["params['a']", "params['b']"]) == "params['a'] and params['b']"
    assert named_together(["a", "b", "c", "d", "e"]) == "a, b and 3 others"
    assert named_together([f"layers[{k}]['w']" for k in range(9)]) == "layers[*]['w']"
