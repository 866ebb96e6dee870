"""Passes that run on the program of one device before it is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardcore import Cost, Module
from shardcore.cli import main

from tests.spmd.texts import SCANNED

SCATTER = "all-reduce-to-reduce-scatter"
HOIST = "hoist-loop-invariant-collectives"
# Under the policy of XLA the loop slices what it gathered before it carries that on.
HOISTED = f"fuse-reshards,{HOIST}"


# Each device keeps its own row of a sum.
ROWS = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<4x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>]
      out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
    %1 = "stablehlo.all_reduce"(%b) ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}
        : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %id = stablehlo.partition_id : tensor<ui32>
    %row = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.dynamic_slice %1, %row, %zero, sizes = [1, 8]
        : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
    sdy.return %2 : tensor<1x8xf32>
  } : (tensor<16x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""


def cost_of(text: str, improve: str | None = None) -> Cost:
    return Module.parse(text).propagate().cost(improve=improve)


def runs(cost: Cost) -> dict[str, int]:
    return {row.kind: row.count for row in cost.collectives}


def test_a_gather_leaves_a_loop() -> None:
    assert runs(cost_of(SCANNED)) == {"all_gather": 3}
    hoisted = cost_of(SCANNED, HOISTED)
    assert runs(hoisted) == {"all_gather": 1}
    assert hoisted.policy == "xla"
    assert hoisted.comm_seconds < cost_of(SCANNED).comm_seconds


def test_no_more_bytes_leave_a_loop_than_are_allowed() -> None:
    assert runs(cost_of(SCANNED, HOISTED + "{max-bytes=8}")) == {"all_gather": 3}
    assert runs(cost_of(SCANNED, f"{SCATTER},{HOISTED}{{max-bytes=256}}")) == {"all_gather": 1}


def test_a_sum_of_which_a_slice_is_kept_becomes_a_scatter() -> None:
    assert runs(cost_of(ROWS)) == {"all_reduce": 1}
    assert runs(cost_of(ROWS, SCATTER)) == {"reduce_scatter": 1}


def test_a_cost_without_passes_is_what_it_was() -> None:
    result = Module.parse(SCANNED).propagate()
    before = result.cost().record()
    result.cost(improve=HOISTED)
    assert result.cost().record() == before


@pytest.mark.parametrize("passes", ["", "canonicalize", f"{HOIST},cse"])
def test_other_passes_are_refused(passes: str) -> None:
    with pytest.raises(ValueError, match="expected some of"):
        cost_of(SCANNED, passes)


def test_the_command_has_the_passes_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "loop.mlir"
    path.write_text(SCANNED)
    assert main(["cost", str(path), "--json", "--improve", HOISTED]) == 0
    [row] = json.loads(capsys.readouterr().out)["collectives"]
    assert row["count"] == 1
    with pytest.raises(SystemExit):
        main(["cost", str(path), "--improve", "cse"])
    assert "expected some of" in capsys.readouterr().err
