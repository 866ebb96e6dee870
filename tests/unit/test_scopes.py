"""Costs by scope: what is a scope in the names of locations, and sums by scope and pass."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest
from shardcore import Cost, Module
from shardcore.cli import main
from shardcore.costs.scopes import scope_of


def test_values_have_scopes_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    assert main(["propagate", str(path), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    scopes = {value["scope"] for value in values if value["op"] is not None}
    assert scopes == {"net/layer_0", "net/layer_1", "net/head", "inner"}
    assert {value["scope"] for value in values if value["op"] is None} == {""}
    assert {tuple(value["traceback"]) for value in values if value["scope"] == "net/layer_0"} == {
        ("model.py:3:4", "model.py:3:4")
    }


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        ("", ("", "forward")),
        ("mul", ("", "forward")),
        ("jit(f)/mul", ("", "forward")),
        ("jit(f)/decoder/layer_3/mlp/mul", ("decoder/layer_3/mlp", "forward")),
        ("jit(f)/jvp(decoder)/layer_3/mul", ("decoder/layer_3", "forward")),
        ("jit(f)/transpose(jvp(decoder))/layer_3/mul", ("decoder/layer_3", "backward")),
        ("jit(f)/jit(main)/vmap(head)/dot_general", ("head", "forward")),
        ("jit(f)/jvp()/mul", ("", "forward")),
        ("jit(f)/while/body/closed_call/mlp/add", ("mlp", "forward")),
        (
            "jit(f)/transpose(jvp(net))/l_2/jvp(net)/l_2/checkpoint/rematted_computation/a/tanh",
            ("net/l_2/a", "recomputed"),
        ),
        ("jit(f)/transpose(jvp(net))/l_2/jvp(net)/l_2/checkpoint/a/mul", ("net/l_2/a", "backward")),
        ("jit(f)/vmap(a/b)/mul", ("a/b", "forward")),
        ("jit(f)/jvp(mlp)/bd,df->bf/dot_general", ("mlp", "forward")),
        ("jit(f", ("", "forward")),
        ("a)/b/c", ("a)/b", "forward")),
    ],
)
def test_scopes_of_name_stacks(stack: str, expected: tuple[str, str]) -> None:
    assert scope_of(stack) == expected


TEXT = """
#file = loc("model.py":3:4)
#frame = loc("layer"(#file))
#stack = loc(callsite(#frame at #file))
#first = loc("jit(f)/jvp(net)/layer_0/dot"(#stack))
#second = loc("jit(f)/jvp(net)/layer_1/dot"(#stack))
#head = loc("jit(f)/jvp(net)/head/pjit"(#stack))
#last = loc("mul"("jit(f)/transpose(jvp(net))/head"(#file)))
sdy.mesh @mesh = <["x"=2]>
func.func @main(
    %arg0: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %arg1: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
    : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#first)
  %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0]
    : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32> loc(#second)
  %2 = call @helper(%1) : (tensor<8x64xf32>) -> tensor<8x64xf32> loc(#head)
  %3 = stablehlo.multiply %2, %2 : tensor<8x64xf32> loc(#last)
  return %3 : tensor<8x64xf32>
}
func.func private @helper(%arg0: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x64xf32> loc("jit(helper)/inner/tanh")
  return %0 : tensor<8x64xf32>
}
"""


@pytest.fixture(scope="module")
def cost() -> Cost:
    return Module.parse(TEXT).propagate().cost("tpu-v5p")


def test_sums_by_scope_and_pass(cost: Cost) -> None:
    rows = {(row.scope, row.direction): row for row in cost.by_scope(merge=False)}
    assert set(rows) == {
        ("net/layer_0", "forward"),
        ("net/layer_1", "forward"),
        ("net/head", "forward"),
        ("net/head", "backward"),
    }
    assert rows["net/layer_0", "forward"].collectives > 0
    assert rows["net/head", "backward"].flops == 8 * 64
    assert sum(row.flops for row in rows.values()) == cost.flops
    assert sum(row.bytes for row in rows.values()) == cost.hbm_bytes
    assert sum(row.seconds for row in rows.values()) == pytest.approx(cost.serial_seconds)
    assert sum(row.step_seconds for row in rows.values()) == pytest.approx(cost.step_seconds)


def test_repeated_layers_are_one(cost: Cost) -> None:
    rows = {(row.scope, row.direction): row for row in cost.by_scope()}
    each = {(row.scope, row.direction): row for row in cost.by_scope(merge=False)}
    layers = rows["net/layer_*", "forward"]
    assert layers.layers == 2
    parts = [each[f"net/layer_{k}", "forward"] for k in range(2)]
    assert layers.flops == sum(part.flops for part in parts)
    assert layers.wire_bytes == sum(part.wire_bytes for part in parts)
    assert [(row.scope, row.direction) for row in cost.by_scope(1)] == [
        ("net", "forward"),
        ("net", "backward"),
    ]


def test_copies(cost: Cost) -> None:
    assert pickle.loads(pickle.dumps(cost)).by_scope() == cost.by_scope()
    assert copy.copy(cost).by_scope(1) == cost.by_scope(1)
    assert json.loads(cost.to_json())["by_scope"][0]["scope"] == cost.by_scope()[0].scope


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    assert main(["cost", str(path), "--by", "scope"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("net/layer_* x2  forward") for line in lines)
    assert main(["cost", str(path), "--by", "scope", "--each-layer", "--depth", "2"]) == 0
    assert "net/layer_1" in capsys.readouterr().out
