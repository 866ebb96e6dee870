"""Ops without a sharding rule that are partitioned as the op that says the same."""

from __future__ import annotations

import pytest
import shardcore
from shardcore.partition.partitioned import lowered
from shardcore.partition.policies import POLICIES

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
        ("einsum_diagonal", "einsum"),
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


@pytest.mark.parametrize("config", ["a->ab", "a b->ab"])
def test_other_equations_stay(config: str) -> None:
    """Equations that do not fit."""
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


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("type_", ["f32", "bf16", "f64"])
def test_normalisations_add_up_their_features(type_: str, policy: str) -> None:
    """The sums of a feature are all that is sent; XLA makes the batch whole."""
    whole, feature = f"tensor<10x6x{type_}>", f"tensor<6x{type_}>"
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: {whole}, %s: {feature}, %g: {whole}) -> ({whole}, {feature}, {whole}) {{
  %0 = sdy.sharding_constraint %a <@mesh, [{{"x"}}, {{}}]> : {whole}
  %1 = sdy.sharding_constraint %g <@mesh, [{{"x"}}, {{}}]> : {whole}
  %2, %3, %4 = "stablehlo.batch_norm_training"(%0, %s, %s) <{{
      epsilon = 1.0e-3 : f32, feature_index = 1 : i64}}>
      : ({whole}, {feature}, {feature}) -> ({whole}, {feature}, {feature})
  %5, %6, %7 = "stablehlo.batch_norm_grad"(%0, %s, %3, %4, %1) <{{
      epsilon = 1.0e-3 : f32, feature_index = 1 : i64}}>
      : ({whole}, {feature}, {feature}, {feature}, {whole}) -> ({whole}, {feature}, {feature})
  %8 = sdy.sharding_constraint %2 <@mesh, [{{"x"}}, {{}}]> : {whole}
  %9 = sdy.sharding_constraint %5 <@mesh, [{{"x"}}, {{}}]> : {whole}
  return %8, %6, %9 : {whole}, {feature}, {whole}
}}""")
    result = module.propagate()
    partitioned = result.partition(policy)
    if policy == "least":
        # As the results are returned whole, making the batch whole sends less in all.
        best, partitioned = partitioned, lowered(result, result._legalized(), policy, None)
        assert best.sent_bytes < partitioned.sent_bytes
    rows = [row for row in partitioned.outcomes if "batch_norm" in row.name]
    kinds = {row.kind for row in rows}
    assert len(rows) == 2
    assert kinds == ({"gathered"} if policy == "xla" else {"collective"})
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", POLICIES)
def test_results_that_share_a_name_get_names_of_their_own(policy: str) -> None:
    """`%r:3` is one name of one op; each result is made by an op of its own."""
    whole, feature = "tensor<4x6x8xf32>", "tensor<8xf32>"
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: {whole}, %s: {feature}) -> ({whole}, {feature}, {feature}) {{
  %0 = sdy.sharding_constraint %x <@mesh, [{{}}, {{}}, {{"a"}}]> : {whole}
  %r:3 = "stablehlo.batch_norm_grad"(%0, %s, %s, %s, %0) <{{
      epsilon = 1.0e-3 : f32, feature_index = 2 : i64}}>
      : ({whole}, {feature}, {feature}, {feature}, {whole}) -> ({whole}, {feature}, {feature})
  return %r#0, %r#1, %r#2 : {whole}, {feature}, {feature}
}}""")
    partitioned = module.propagate().partition(policy)
    shardcore.Module.parse(str(partitioned.module))
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", POLICIES)
def test_composites_are_partitioned_as_their_decompositions(policy: str) -> None:
    """Also under ``shardy``, where calls are kept."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.composite "my.cap" %a {decomposition = @cap} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
func.func private @cap(%a: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %0 = stablehlo.tanh %a : tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}""")
    partitioned = module.propagate().partition(policy)
    assert {row.kind for row in partitioned.outcomes} == {"local"}
    assert partitioned.sent_bytes == 0
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("fill", ["0.0", "1.0"])
@pytest.mark.parametrize("policy", POLICIES)
def test_pads_of_windows_are_windows(fill: str, policy: str) -> None:
    """As in gradients of average pools: a halo is one element, not what is padded around it."""
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}})
    -> (tensor<32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %fill = stablehlo.constant dense<{fill}> : tensor<f32>
  %0 = stablehlo.pad %a, %fill, low = [1], high = [2], interior = [1]
      : (tensor<16xf32>, tensor<f32>) -> tensor<34xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{{window_dimensions = array<i64: 3>}}> ({{
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %2 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }}) : (tensor<34xf32>, tensor<f32>) -> tensor<32xf32>
  return %1 : tensor<32xf32>
}}""")
    partitioned = module.propagate().partition(policy)
    names = sorted(row.name for row in partitioned.outcomes if "constant" not in row.name)
    assert names == ["stablehlo.pad", "stablehlo.reduce_window"]
    assert (partitioned.sent_bytes == 4) == (policy == "least" and fill == "0.0")
    assert shardcore.prove(partitioned).is_proven
