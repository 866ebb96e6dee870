"""Calls of ``custom_partitioning`` functions in texts: their rules say what stays sharded."""

from __future__ import annotations

import re

import pytest
import shardcore
from shardcore.errors import PartitionError, SimulationError
from shardcore.partition.proof import prove

MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'


def sharding(*dims: str) -> str:
    return f"#sdy.sharding<@mesh, [{', '.join(f'{{{dim}}}' for dim in dims)}]>"


def call(
    operands: list[tuple[str, tuple[str, ...]]],
    result: tuple[str, tuple[str, ...]],
    rule: str | None,
) -> shardcore.Module:
    """One call of operands and a result of these types and shardings."""
    names = ", ".join(f"%arg{at}" for at in range(len(operands)))
    arguments = ", ".join(
        f"%arg{at}: tensor<{ty}> {{sdy.sharding = {sharding(*dims)}}}"
        for at, (ty, dims) in enumerate(operands)
    )
    ty, dims = result
    types = f"({', '.join(f'tensor<{ty}>' for ty, _ in operands)}) -> tensor<{ty}>"
    attributes = 'api_version = 2 : i32, backend_config = "140559091728016"'
    if rule is not None:
        attributes += f", sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>"
    made = f"stablehlo.custom_call @CustomSPMDPartitioning({names}) {{{attributes}}} : {types}"
    made += ' loc("custom_partitioning"("model.py":3:4))'
    return shardcore.Module.parse(f"""{MESH}
        func.func @main({arguments}) -> (tensor<{ty}> {{sdy.sharding = {sharding(*dims)}}}) {{
          %0 = {made}
          return %0 : tensor<{ty}>
        }}""")


X = ("16x8xf32", ('"x"', '"y"'))
SAME = "([i, j])->([i, j]) {i=16, j=8}"


def local(module: shardcore.Module, policy: str = "xla") -> tuple[list[str], str]:
    """The kinds of the collectives of a device's program, and the types of its call."""
    made = module.propagate().partition(policy)
    [line] = [line for line in str(made.module).splitlines() if "CustomSPMD" in line]
    types = re.sub(r".*} : | loc.*", "", line)
    return [row.kind for row in made.collectives], types


@pytest.mark.parametrize("policy", ["xla", "least", "shardy"])
def test_pass_through_factors_stay_sharded(policy: str) -> None:
    kinds, types = local(call([X], X, f"{SAME}, custom"), policy)
    assert not kinds
    assert types == "(tensor<4x4xf32>) -> tensor<4x4xf32>"


@pytest.mark.parametrize("policy", ["xla", "least", "shardy"])
def test_factors_that_need_replication_are_gathered(policy: str) -> None:
    kinds, types = local(call([X], X, f"{SAME} need_replication={{j}}, custom"), policy)
    assert kinds == ["all_gather"]
    assert types == "(tensor<4x8xf32>) -> tensor<4x8xf32>"


def test_factors_that_need_a_permutation_are_gathered() -> None:
    kinds, types = local(call([X], X, f"{SAME} permutation={{i}}, custom"))
    assert kinds == ["all_gather"]
    assert types == "(tensor<16x4xf32>) -> tensor<16x4xf32>"


PRODUCT = "([i, k], [k, j])->([i, j]) {i=16, j=32, k=8}"
W = ("8x32xf32", ('"y"', ""))
Y = ("16x32xf32", ('"x"', ""))


def test_reductions_are_summed() -> None:
    kinds, types = local(call([X, W], Y, f"{PRODUCT} reduction={{k}}, custom"))
    assert kinds == ["all_reduce"]
    assert types == "(tensor<4x4xf32>, tensor<4x32xf32>) -> tensor<4x32xf32>"


def test_factors_that_the_result_lacks_are_gathered() -> None:
    kinds, types = local(call([X, W], Y, f"{PRODUCT}, custom"))
    assert kinds == ["all_gather", "all_gather"]
    assert types == "(tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32>"


def test_results_say_what_no_operand_says() -> None:
    whole = ("16x8xf32", ("", ""))
    kinds, types = local(call([whole], X, f"{SAME}, custom"))
    assert not kinds
    assert types == "(tensor<4x4xf32>) -> tensor<4x4xf32>"


def test_dims_of_several_factors() -> None:
    rule = "([ij])->([i, j]) {i=16, j=8}, custom"
    flat = ("128xf32", ('"x"',))
    kinds, types = local(call([flat], ("16x8xf32", ('"x"', "")), rule))
    assert not kinds
    assert types == "(tensor<32xf32>) -> tensor<4x8xf32>"


def test_an_axis_is_used_once() -> None:
    rule = "([i], [j])->([i, j]) {i=16, j=8}, custom"
    module = call([("16xf32", ('"x"',)), ("8xf32", ('"x"',))], ("16x8xf32", ('"x"', "")), rule)
    kinds, types = local(module)
    assert kinds == ["all_gather"]
    assert types == "(tensor<4xf32>, tensor<8xf32>) -> tensor<4x8xf32>"


def test_shards_may_be_padded() -> None:
    uneven = ("10x8xf32", ('"x"', '"y"'))
    module = call([uneven], uneven, "([i, j])->([i, j]) {i=10, j=8}, custom")
    made = module.propagate(keep_non_divisible_on_io=True).partition()
    assert not made.collectives
    assert "(tensor<3x4xf32>) -> tensor<3x4xf32>" in str(made.module)


def test_no_gathers_in_loops() -> None:
    module = shardcore.Module.parse(f"""{MESH}
        func.func @main(%arg0: tensor<64x16xf32> {{sdy.sharding = {sharding('"x"', "")}}})
            -> tensor<64x16xf32> {{
          %c = stablehlo.constant dense<0> : tensor<i32>
          %0:2 = stablehlo.while(%i = %c, %a = %arg0) : tensor<i32>, tensor<64x16xf32>
          cond {{
            %n = stablehlo.constant dense<3> : tensor<i32>
            %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          }} do {{
            %1 = func.call @body(%a) : (tensor<64x16xf32>) -> tensor<64x16xf32>
            %one = stablehlo.constant dense<1> : tensor<i32>
            %2 = stablehlo.add %i, %one : tensor<i32>
            stablehlo.return %2, %1 : tensor<i32>, tensor<64x16xf32>
          }}
          return %0#1 : tensor<64x16xf32>
        }}
        func.func private @body(%arg0: tensor<64x16xf32>) -> tensor<64x16xf32> {{
          %0 = stablehlo.custom_call @CustomSPMDPartitioning(%arg0) {{api_version = 2 : i32,
            backend_config = "140559091728016", sdy.sharding_rule = #sdy.op_sharding_rule<
            ([i, j])->([i, j]) {{i=64, j=16}} need_replication={{j}}, custom>}}
            : (tensor<64x16xf32>) -> tensor<64x16xf32> loc("custom_partitioning"("model.py":3:4))
          return %0 : tensor<64x16xf32>
        }}""")
    result = module.propagate()
    cost = result.cost()
    assert not cost.collectives
    [row] = cost.uncounted
    assert (row.name, row.count) == ("stablehlo.custom_call @custom_partitioning", 3)
    for policy in ("xla", "least", "shardy"):
        made = result.partition(policy)
        assert not made.collectives
        assert "(tensor<16x16xf32>) -> tensor<16x16xf32>" in str(made.module)


def test_calls_in_manual_computations_are_of_the_other_axes() -> None:
    module = shardcore.Module.parse(f"""{MESH}
        func.func @main(%arg0: tensor<16x8xf32> {{sdy.sharding = {sharding('"x"', '"y"')}}})
            -> tensor<16x8xf32> {{
          %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{{"x"}}, {{?}}]>]
              out_shardings=[<@mesh, [{{"x"}}, {{?}}]>] manual_axes={{"x"}}
              (%arg1: tensor<4x8xf32>) {{
            %1 = stablehlo.custom_call @CustomSPMDPartitioning(%arg1) {{api_version = 2 : i32,
              backend_config = "1", sdy.sharding_rule = #sdy.op_sharding_rule<
              ([i, j])->([i, j]) {{i=4, j=8}}, custom>}}
              : (tensor<4x8xf32>) -> tensor<4x8xf32>
            sdy.return %1 : tensor<4x8xf32>
          }} : (tensor<16x8xf32>) -> tensor<16x8xf32>
          return %0 : tensor<16x8xf32>
        }}""")
    kinds, types = local(module)
    assert not kinds
    assert types == "(tensor<4x4xf32>) -> tensor<4x4xf32>"


def test_a_call_without_a_rule_is_refused_and_counted_whole() -> None:
    result = call([X], X, None).propagate()
    with pytest.raises(PartitionError) as caught:
        result.partition()
    error = caught.value
    assert "custom_partitioning function called at model.py:3:4 cannot be" in error.message
    assert error.hint is not None
    assert 'def_partition(..., sharding_rule="i j -> i j")' in error.hint
    assert {row.kind for row in result.cost().collectives} == {"all_gather"}


def test_partition_rules_of_the_target_come_first() -> None:
    shardcore.partition_rule("CustomSPMDPartitioning", "i j -> i j")
    try:
        kinds, types = local(call([X], X, None))
    finally:
        shardcore.rules.unregister_partition_rule("CustomSPMDPartitioning")
    assert not kinds
    assert types == "(tensor<4x4xf32>) -> tensor<4x4xf32>"


def test_calls_cannot_be_simulated() -> None:
    made = call([X], X, f"{SAME}, custom").propagate().partition()
    with pytest.raises(SimulationError, match="its function is not known here"):
        prove(made)
