"""A reversal and the resharding of its operand are one permute."""

from __future__ import annotations

import pytest
import shardcore

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=4]{ids}>
func.func @main(%a: tensor<{type}> {{sdy.sharding = #sdy.sharding<@mesh, [{operand}]>}})
    -> (tensor<{type}> {{sdy.sharding = #sdy.sharding<@mesh, [{result}]>}}) {{
  %0 = stablehlo.{op} : tensor<{type}>
  return %0 : tensor<{type}>
}}"""
SHARD = 16 * 32 * 4 // 8


def sent(op: str, operand: str, result: str, ids: str = "", shape: str = "16x32xf32") -> int:
    text = PROGRAM.format(op=op, operand=operand, result=result, ids=ids, type=shape)
    partitioned = shardcore.Module.parse(text).propagate().partition()
    assert shardcore.prove(partitioned).is_proven
    return partitioned.sent_bytes


ROWS, BOTH = "reverse %a, dims = [0]", "reverse %a, dims = [0, 1]"


@pytest.mark.parametrize("ids", ["", ", device_ids=[3, 1, 0, 7, 6, 5, 2, 4]"])
@pytest.mark.parametrize(
    ("op", "operand", "result", "shards"),
    [
        (BOTH, '{"x"}, {"y"}', '{"x"}, {"y"}', 1),
        (BOTH, '{"x", "y"}, {}', '{"x", "y"}, {}', 1),
        # Shards are permuted before they are gathered.
        (BOTH, '{"x"}, {"y"}', '{}, {"y"}', 1 + 1),
        (ROWS, '{"x"}, {"y"}', '{}, {"y"}', 1),
        (ROWS, '{"x", "y"}, {}', '{"y", "x"}, {}', 1),
        # Half a shard along half of "y", then all of it.
        (ROWS, '{"y"}, {"x"}', '{"x"}, {"y"}', 1.5),
        ("negate %a", '{"y"}, {"x"}', '{"x"}, {"y"}', 1.5),
    ],
)
def test_shards_move_once(op: str, operand: str, result: str, shards: float, ids: str) -> None:
    assert sent(op, operand, result, ids) == shards * SHARD


@pytest.mark.parametrize("result", ['{"y"}, {}', '{}, {"y", "x"}', "{}, {}"])
def test_uneven_dims_are_reversed(result: str) -> None:
    text = f"""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<10x7xi32>) -> tensor<10x7xi32> {{
  %0 = sdy.sharding_constraint %a <@mesh, [{{"y"}}, {{"x"}}]> : tensor<10x7xi32>
  %1 = stablehlo.reverse %0, dims = [0, 1] : tensor<10x7xi32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{result}]> : tensor<10x7xi32>
  return %2 : tensor<10x7xi32>
}}"""
    assert shardcore.prove(shardcore.Module.parse(text).propagate().partition()).is_proven
