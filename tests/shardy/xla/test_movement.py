"""Under policy ``xla`` slices, pads and updates of slices send what they send under XLA."""

from __future__ import annotations

import pytest
import shardcore

from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.sent import sent_bytes

PROGRAM = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(
      %a: tensor<32x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {operand}>}},
      %b: tensor<{rows}x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {update}>}}, %i: tensor<i32>)
      -> (tensor<{size}x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %j = stablehlo.constant dense<3> : tensor<i32>
    %k = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.{op} -> tensor<{size}x64xf32>
    return %0 : tensor<{size}x64xf32>
  }}
}}"""
SLICE = "slice %a [{}, 0:64] : (tensor<32x64xf32>)"
PAD = (
    "pad %a, %z, low = [4, 0], high = [4, 0], interior = [0, 0] : (tensor<32x64xf32>, tensor<f32>)"
)
TAKE = "dynamic_slice %a, %i, %k, sizes = [8, 64] : (tensor<32x64xf32>, tensor<i32>, tensor<i32>)"
UPDATE = (
    "dynamic_update_slice %a, %b, {}, %k"
    " : (tensor<32x64xf32>, tensor<{}x64xf32>, tensor<i32>, tensor<i32>)"
)
DIM, OTHER, BOTH, WHOLE = '[{"b"}, {}]', '[{}, {"b"}]', '[{"a", "b"}, {}]', "[{}, {}]"


def check(op: str, sizes: tuple[int, int], operand: str, update: str, result: str) -> None:
    shardings = {"operand": operand, "update": update, "result": result}
    text = PROGRAM.format(op=op, rows=sizes[0], size=sizes[1], **shardings)
    ours = sent_by_kind(shardcore.Module.parse(text).propagate().cost(compiler="none"))
    assert ours == as_all_reduce(sent_bytes(text))


@pytest.mark.parametrize("operand", [DIM, BOTH, WHOLE])
@pytest.mark.parametrize("result", [DIM, BOTH])
@pytest.mark.parametrize(("rows", "size"), [("8:24", 16), ("0:16", 16), ("0:31", 31)])
def test_slices(rows: str, size: int, operand: str, result: str) -> None:
    check(SLICE.format(rows), (8, size), operand, WHOLE, result)


@pytest.mark.parametrize("operand", [DIM, OTHER, BOTH])
@pytest.mark.parametrize("result", [DIM, OTHER, BOTH])
def test_dynamic_slices(operand: str, result: str) -> None:
    check(TAKE, (8, 8), operand, WHOLE, result)


@pytest.mark.parametrize("operand", [DIM, OTHER, WHOLE])
def test_pads(operand: str) -> None:
    check(PAD, (8, 40), operand, WHOLE, DIM)


@pytest.mark.parametrize("start", ["%i", "%j"])
@pytest.mark.parametrize("operand", [DIM, OTHER, BOTH])
@pytest.mark.parametrize("result", [DIM, OTHER])
@pytest.mark.parametrize("rows", [1, 8])
def test_updates(rows: int, result: str, operand: str, start: str) -> None:
    for update in (WHOLE, OTHER):
        check(UPDATE.format(start, rows), (rows, 32), operand, update, result)
