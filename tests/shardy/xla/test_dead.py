"""Under policy ``xla`` what nothing uses shards nothing: XLA removes it before it propagates."""

from __future__ import annotations

import pytest
import shardcore

from tests.shardy.xla.compiled import compiled

PROGRAM = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(
      %a: tensor<32x64xf32>,
      %b: tensor<32x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
      -> tensor<32x64xf32> {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %five = stablehlo.constant dense<5> : tensor<i32>
    {body}
    return %out : tensor<32x64xf32>
  }}
  func.func private @both(%a: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {{
    %0 = sdy.sharding_constraint %a <@mesh, [{{}}, {{"y"}}]> : tensor<32x64xf32>
    %1 = stablehlo.sine %a : tensor<32x64xf32>
    return %0, %1 : tensor<32x64xf32>, tensor<32x64xf32>
  }}
}}"""
TANH = "\n    %out = stablehlo.tanh %a : tensor<32x64xf32>"
LOOP = """%w:2 = stablehlo.while(%i = %zero, %c = %a) : tensor<i32>, tensor<32x64xf32>
      cond {{
        %p = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %n = stablehlo.add %i, %one : tensor<i32>
        {body}
        stablehlo.return %n, %e : tensor<i32>, tensor<32x64xf32>
      }}"""
SUM = "%e = stablehlo.add %c, %b : tensor<32x64xf32>"
UNREAD = """%d = sdy.sharding_constraint %c <@mesh, [{}, {"y"}]> : tensor<32x64xf32>
        %e = stablehlo.cosine %c : tensor<32x64xf32>"""
MANUAL = """%e = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{}}]>]
        out_shardings=[<@mesh, [{{"x"}}, {{}}]>] manual_axes={{"x"}} (%q: tensor<16x64xf32>) {{
      {body}
      sdy.return %q : tensor<16x64xf32>
    }} : (tensor<32x64xf32>) -> tensor<32x64xf32>"""
CASES = {
    "constraint": """%d = sdy.sharding_constraint %a <@mesh, [{}, {"y"}]> : tensor<32x64xf32>
    %out = stablehlo.add %a, %b : tensor<32x64xf32>""",
    "chain": """%c = stablehlo.sine %a : tensor<32x64xf32>
    %d = sdy.sharding_constraint %c <@mesh, [{}, {"y"}]> : tensor<32x64xf32>
    %e = stablehlo.cosine %d : tensor<32x64xf32>
    %out = stablehlo.add %a, %b : tensor<32x64xf32>""",
    "loop": LOOP.format(body=SUM) + TANH,
    "in a loop": LOOP.format(body=UNREAD) + "\n    %out = stablehlo.tanh %w#1 : tensor<32x64xf32>",
    "manual": MANUAL.format(body="%s = stablehlo.tanh %q : tensor<16x64xf32>") + TANH,
    "manual with a collective": MANUAL.format(
        body="""%s = "stablehlo.all_gather"(%q) <{all_gather_dim = 0 : i64, use_global_device_ids,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
          replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>}>
          : (tensor<16x64xf32>) -> tensor<32x64xf32>"""
    )
    + TANH,
    "result of a call": """%e:2 = func.call @both(%a)
        : (tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>)
    %out = stablehlo.tanh %e#1 : tensor<32x64xf32>""",
}


def text(case: str) -> str:
    return PROGRAM.format(body=CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_arguments_are_sharded_as_under_xla(case: str) -> None:
    cost = shardcore.Module.parse(text(case)).propagate().cost(compiler="none")
    theirs = compiled(text(case))
    assert (cost.argument_bytes, cost.output_bytes) == (theirs.argument_bytes, theirs.output_bytes)


@pytest.mark.parametrize("case", CASES)
def test_programs_without_them_keep_the_ports_of_the_result(case: str) -> None:
    result = shardcore.Module.parse(text(case)).propagate()
    local = result.partition("xla")
    ports = (local.arguments, result.arguments())
    mine, wanted = ([port.local_shape for port in one] for one in ports)
    assert mine == wanted
    assert shardcore.prove(local).is_proven


def test_groups_of_unread_values_hold() -> None:
    body = """%d = stablehlo.sine %a : tensor<32x64xf32>
    sdy.sharding_group %d group_id=0 : tensor<32x64xf32>
    sdy.sharding_group %b group_id=0 : tensor<32x64xf32>"""
    given = PROGRAM.format(body=body + TANH)
    cost = shardcore.Module.parse(given).propagate().cost(compiler="none")
    assert cost.output_bytes == compiled(given).output_bytes
