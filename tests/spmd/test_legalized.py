"""Ops without a sharding rule that are partitioned as the op that says the same."""

from __future__ import annotations

import pytest
import shardcore
from shardcore.partition.partitioned import POLICIES

from tests.spmd.texts import TEXTS


def sharded(text: str) -> str:
    """The program with the major dim of its first argument and of its result sharded in two."""
    head, types = text.split("-> (", 1)
    result, body = types.split(") {", 1)
    argument, rest = head.split(">", 1)
    dims = [", ".join(['{"x"}', *["{}"] * (kind.count("x") - 1)]) for kind in (argument, result)]
    first, last = (f"{{sdy.sharding = #sdy.sharding<@mesh, [{dim}]>}}" for dim in dims)
    return f'sdy.mesh @mesh = <["x"=2]>\n{argument}> {first}{rest}-> ({result} {last}) {{{body}'


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("map", "map"),
        ("einsum", "einsum"),
        ("unary_same", "unary_einsum"),
        ("index_select_batch", "torch_index_select"),
        ("dynamic_broadcast", "dynamic_broadcast_in_dim"),
        ("dynamic_reshape", "dynamic_reshape"),
        ("dynamic_conv", "dynamic_conv"),
        ("dimension_size", "get_dimension_size"),
        ("dimension_size", "set_dimension_size"),
    ],
)
def test_no_operand_is_gathered(name: str, op: str, policy: str) -> None:
    """Batch dims of all of them are local, and outcomes are those of the ops of the source."""
    text = sharded(TEXTS[name].replace("module @texts {\n", "").removesuffix("}\n"))
    partitioned = shardcore.Module.parse(text).propagate().partition(policy)
    [outcome] = [row for row in partitioned.outcomes if row.name == f"stablehlo.{op}"]
    assert outcome.kind == "local"
    assert partitioned.sent_bytes == 0
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("config", ["aa->a", "ab->a", "a->ab", "a b->ab"])
def test_other_equations_stay(config: str) -> None:
    """Diagonals and sums that products cannot say, and equations that do not fit."""
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
                %b: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = "stablehlo.einsum"(%a, %b) <{{einsum_config = "{config.replace("->", ",b->")}"}}>
      : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}""")
    partitioned = module.propagate().partition()
    [outcome] = [row for row in partitioned.outcomes if row.name == "stablehlo.einsum"]
    assert "stablehlo.einsum" in str(partitioned.module) or outcome.kind != "gathered"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("start", "limit", "strides", "size"),
    [(-1, 9, 0, 4), (1, 99, 2, 49), (9, 1, 1, 4), (1, 9, 2, 5), (-9, 9, 1, 8)],
)
def test_constants_that_contradict_the_result(
    start: int, limit: int, strides: int, size: int, policy: str
) -> None:
    """There is no static slice like that: the op stays as it is."""
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<12xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}})
    -> tensor<{size}xf32> {{
  %0 = stablehlo.constant dense<{start}> : tensor<1xi32>
  %1 = stablehlo.constant dense<{limit}> : tensor<1xi32>
  %2 = stablehlo.constant dense<{strides}> : tensor<1xi32>
  %3 = stablehlo.real_dynamic_slice %a, %0, %1, %2
      : (tensor<12xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<{size}xf32>
  return %3 : tensor<{size}xf32>
}}""")
    partitioned = module.propagate().partition(policy)
    assert "stablehlo.real_dynamic_slice" in str(partitioned.module)
