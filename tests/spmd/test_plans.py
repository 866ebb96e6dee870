"""Under the policy `least` the plan that sends the fewest bytes is taken."""

from __future__ import annotations

from itertools import product

import pytest
import shardcore
from shardcore.partition import partitioned
from shardcore.partition.partitioned import lowered
from shardcore.partition.policies import POLICIES

from tests.shardy.programs import registry


def propagated(name: str) -> shardcore.Result:
    return shardcore.Module.parse(registry.text(name)).propagate(legalize_chlo=True)


@pytest.mark.parametrize("name", ["gradient-of-loops", "mapped-batches"])
def test_calls_have_shardings_of_their_own_once_they_are_inlined(name: str) -> None:
    result = propagated(name)
    inlined = result._inlined()
    assert inlined is not None
    plans = [
        lowered(result, source, "least", None, keep_results=True)
        for source in (result.module, inlined)
    ]
    partitioned = result.partition("least")
    assert partitioned.sent_bytes == plans[1].sent_bytes < plans[0].sent_bytes
    for mine, theirs in zip(partitioned.results, result.results(), strict=True):
        assert mine.local_shape == theirs.local_shape
    assert shardcore.prove(partitioned).is_proven


def test_no_plan_is_made_for_calls_that_nothing_is_resharded_for() -> None:
    assert propagated("gpt-full")._inlined() is None


def test_values_that_lie_differently_do_not_move_back_and_forth() -> None:
    """XLA's partitioner sends 841,236 bytes."""
    assert propagated("gpt-conflict").partition("least").sent_bytes < 700_000


def test_values_are_computed_for_where_their_only_user_wants_them() -> None:
    """Of a pad that is returned whole the operand of 256 elements is gathered, not the result,
    though one reshard is behind another. XLA's partitioner sends 896 bytes."""
    text = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>})
    -> (tensor<17x17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %c, low = [0, 0], high = [1, 1], interior = [0, 0]
    : (tensor<16x16xf32>, tensor<f32>) -> tensor<17x17xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {"x"}]> : tensor<17x17xf32>
  return %1 : tensor<17x17xf32>
}"""
    partitioned = shardcore.Module.parse(text).propagate().partition("least")
    assert partitioned.sent_bytes == 16 * 16 * 4 * 7 / 8
    assert shardcore.prove(partitioned).is_proven


SHARED = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %w: tensor<16x32xf32>)
    -> (tensor<8x32xf32>, tensor<16x16xf32>, tensor<4x16xf32>, tensor<8x2x8xf32>, tensor<8xf32>) {
  %0 = stablehlo.add %x, %x : tensor<8x16xf32>
  %1 = stablehlo.add %0, %y : tensor<8x16xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %3 = stablehlo.concatenate %x, %y, dim = 0
    : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  %4 = stablehlo.slice %1 [2:6, 0:16] : (tensor<8x16xf32>) -> tensor<4x16xf32>
  %5 = stablehlo.reshape %y : (tensor<8x16xf32>) -> tensor<8x2x8xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %6 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [1]
    : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  return %2, %3, %4, %5, %6
    : tensor<8x32xf32>, tensor<16x16xf32>, tensor<4x16xf32>, tensor<8x2x8xf32>, tensor<8xf32>
}
"""


REDUCED = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<INITIAL> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) across dimensions = [1]
    : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
      %1 = stablehlo.REDUCER %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }
  return %0 : tensor<8xf32>
}
"""
REDUCTIONS = [
    ("add", "0.0"),
    ("add", "1.0"),
    ("maximum", "0.0"),
    ("multiply", "1.0"),
    ("subtract", "0.0"),
]


def test_what_lowerings_share_changes_no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs come out the same whichever were lowered before, by whichever policy."""
    session = shardcore.Module.parse(SHARED).session()
    shardings = ("[{}, {}]", '[{"x"}, {"y"}]', '[{"y"}, {}]', '[{"y"}, {"x"}]')
    results = []
    for x, w in product(shardings[:3], shardings[:3]):
        session.set({"%x": x, "%w": w, "%y": shardings[1]})
        results.append(session.result)
    for (reducer, initial), x in product(REDUCTIONS, shardings[1:]):
        text = REDUCED.replace("REDUCER", reducer).replace("INITIAL", initial)
        session = shardcore.Module.parse(text).session()
        session.set({"%x": x})
        results.append(session.result)
    cases = list(product(results, POLICIES))

    def lowered_text(result: shardcore.Result, policy: str) -> str:
        return str(result.partition(policy).module)

    alone = []
    for result, policy in cases:
        monkeypatch.setattr(partitioned, "_PLANS", shardcore.ReshardPlans())
        alone.append(lowered_text(result, policy))
    assert len(set(alone)) > len(cases) // 2
    monkeypatch.setattr(partitioned, "_PLANS", shardcore.ReshardPlans())
    assert [lowered_text(*case) for case in cases] == alone
    assert [lowered_text(*case) for case in reversed(cases)] == alone[::-1]


WINDOWS = "\n".join(
    f"""  %{at} = stablehlo.slice %a [0:24, {at}:{at + 20}]
      : (tensor<24x24xf32>) -> tensor<24x20xf32>"""
    for at in range(5)
)
SLIDING = f"""
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(%a: tensor<24x24xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"a", "b"}}]>}})
    -> (tensor<24x100xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}) {{
{WINDOWS}
  %s = stablehlo.concatenate %0, %1, %2, %3, %4, dim = 0
      : ({", ".join(["tensor<24x20xf32>"] * 5)}) -> tensor<120x20xf32>
  %t = sdy.sharding_constraint %s <@mesh, [{{}}, {{"a", "c"}}]> : tensor<120x20xf32>
  %r = stablehlo.reshape %t : (tensor<120x20xf32>) -> tensor<24x100xf32>
  return %r : tensor<24x100xf32>
}}"""
ADAPTED = """
sdy.mesh @mesh = <["x"=3, "y"=2]>
func.func @main(
    %x: tensor<16x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
    %w: tensor<24x48xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %a: tensor<24x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<4x48xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<16x48xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y", "x"}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<16x24xf32>, tensor<24x48xf32>) -> tensor<16x48xf32>
  %1 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0]
      : (tensor<16x24xf32>, tensor<24x4xf32>) -> tensor<16x4xf32>
  %2 = stablehlo.dot_general %1, %b, contracting_dims = [1] x [0]
      : (tensor<16x4xf32>, tensor<4x48xf32>) -> tensor<16x48xf32>
  %3 = stablehlo.add %0, %2 : tensor<16x48xf32>
  return %3 : tensor<16x48xf32>
}"""


@pytest.mark.parametrize("text", [SLIDING, ADAPTED], ids=["sliding", "adapted"])
def test_the_plan_of_xla_is_one_of_them(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = shardcore.Module.parse(text).propagate()
    partitioned_as_least = result.partition()
    assert partitioned_as_least.policy == "least"
    assert partitioned_as_least.sent_bytes <= result.partition("xla").sent_bytes
    assert shardcore.prove(partitioned_as_least).is_proven
    monkeypatch.setattr(partitioned, "MOST_OPS_AS_XLA", 0)
    assert result.partition().sent_bytes > partitioned_as_least.sent_bytes


def test_the_plan_of_xla_reshards_by_the_fewest_bytes() -> None:
    """Where its ways send less than others; XLA's model gathers uneven shards to cut them finer."""
    text = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<9x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> (tensor<9x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<9x3xf32>
  %1 = stablehlo.optimization_barrier %0 : tensor<9x3xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"x", "y"}, {}]> : tensor<9x3xf32>
  %3 = stablehlo.optimization_barrier %2 : tensor<9x3xf32>
  return %3 : tensor<9x3xf32>
}"""
    result = shardcore.Module.parse(text).propagate()
    completed, originals = result._as_xla(keep_ports=True)
    plan = lowered(result, completed, "least", None, originals=originals, ways="xla")
    assert shardcore.prove(plan).is_proven
    assert plan.sent_bytes < result.partition("xla").sent_bytes


@pytest.mark.parametrize("name", ["gpt-conflict", "gradient-of-loops", "mapped-batches"])
def test_the_best_plan_of_a_large_program_is_made_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not kept while others are made, which would take the memory of two."""
    kept = propagated(name).partition("least")
    made = []
    lower = partitioned.lowered

    def counted(*args, **options):
        made.append(options)
        return lower(*args, **options)

    monkeypatch.setattr(partitioned, "lowered", counted)
    propagated(name).partition("least")
    num_plans = len(made)
    monkeypatch.setattr(partitioned, "MOST_OPS_KEPT", 0)
    again = propagated(name).partition("least")
    assert str(again.module) == str(kept.module)
    assert len(made) - num_plans in (num_plans, num_plans + 1)


def test_sums_are_made_for_where_elementwise_ops_behind_them_are_resharded() -> None:
    """Rows that are looked up are summed whole, 210 bytes, and selected from; XLA's partitioner
    does so. A reduce-scatter of them and an all-gather behind the selection send 336, as five rows
    are padded to eight."""
    text = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%t: tensor<16x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %i: tensor<5x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
    %m: tensor<5x6xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> (tensor<5x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %c = stablehlo.constant dense<7.0> : tensor<5x6xf32>
  %0 = sdy.sharding_constraint %i <@mesh, [{"x"}, {}]> : tensor<5x1xi32>
  %1 = sdy.sharding_constraint %m <@mesh, [{"x"}, {}]> : tensor<5x6xi1>
  %2 = "stablehlo.gather"(%t, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 6>}> : (tensor<16x6xf32>, tensor<5x1xi32>) -> tensor<5x6xf32>
  %3 = stablehlo.select %1, %2, %c : tensor<5x6xi1>, tensor<5x6xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{}, {}]> : tensor<5x6xf32>
  return %4 : tensor<5x6xf32>
}"""
    partitioned = shardcore.Module.parse(text).propagate().partition("least")
    assert partitioned.sent_bytes == 2 * 5 * 6 * 4 * 7 / 8
    assert shardcore.prove(partitioned).is_proven
