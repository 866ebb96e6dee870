"""Ops and constants that the random programs do not have."""

from __future__ import annotations

import numpy as np
import pytest
import shardcore
from shardcore.partition.policies import POLICIES


def test_elements_written_as_digits_are_sliced() -> None:
    """JAX writes large constants so; they are no splats."""
    values = np.arange(32, dtype=np.float32).reshape(8, 4)
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> (tensor<8x4xf32>) {{
  %0 = stablehlo.constant dense<"0x{values.tobytes().hex()}"> : tensor<8x4xf32>
  %1 = stablehlo.add %a, %0 : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}}""")
    [found] = module.propagate().partition().simulate(np.zeros((8, 4), np.float32))
    np.testing.assert_array_equal(found, values)


def test_products_of_groups_are_summed_over_devices() -> None:
    """The contracting dim of a ragged product is sharded; its padding counts as zero."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<6x10xf32>, %b: tensor<2x10x3xf32>, %n: tensor<2xi32>)
    -> tensor<6x3xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{}, {"x"}]> : tensor<6x10xf32>
  %1 = sdy.sharding_constraint %b <@mesh, [{}, {"x"}, {}]> : tensor<2x10x3xf32>
  %2 = "chlo.ragged_dot"(%0, %1, %n) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1],
      lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}>
      : (tensor<6x10xf32>, tensor<2x10x3xf32>, tensor<2xi32>) -> tensor<6x3xf32>
  return %2 : tensor<6x3xf32>
}""")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((6, 10), (2, 10, 3)))
    sizes = np.array([2, 4], np.int32)
    partitioned = module.propagate().partition("shardy")
    [product] = [row for row in partitioned.outcomes if row.name == "chlo.ragged_dot"]
    assert product.kind == "local"
    assert "all_reduce" in {row.kind for row in partitioned.collectives}
    for mine, whole in zip(
        partitioned.simulate(a, b, sizes), module.simulate(a, b, sizes), strict=True
    ):
        np.testing.assert_array_equal(mine, whole)


def test_windows_that_do_not_overlap_are_selected_from_on_shards() -> None:
    """The gradient of a pooling whose windows are next to each other sends nothing."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%a, %b, %zero) <{
      window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<8x16xf32>, tensor<4x8xf32>, tensor<f32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}""")
    partitioned = module.propagate().partition()
    assert partitioned.sent_bytes == 0
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", POLICIES)
def test_updates_are_placed_by_indices_of_eight_bits(policy: str) -> None:
    """The dim is longer than 256; XLA for hosts writes out of bounds here."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<300x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %i: tensor<9x1xui8>, %u: tensor<9x3xf32>)
    -> (tensor<300x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %1 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<300x3xf32>, tensor<9x1xui8>, tensor<9x3xf32>) -> tensor<300x3xf32>
  return %0 : tensor<300x3xf32>
}""")
    partitioned = module.propagate().partition(policy)
    a, u = np.zeros((300, 3), np.float32), np.ones((9, 3), np.float32)
    indices = np.array([[0], [1], [74], [75], [76], [149], [225], [254], [255]], np.uint8)
    [found] = partitioned.simulate(a, indices, u)
    np.add.at(a, indices[:, 0], 1)
    np.testing.assert_array_equal(found, a)


def test_groups_are_divided_evenly_under_xla() -> None:
    """Two batch groups on four devices: another way is taken."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(
    %a: tensor<8x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}, {}]>},
    %k: tensor<3x4x6xf32>)
    -> (tensor<4x8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>}) {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {pad = [[1, 1]]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
      : (tensor<8x8x4xf32>, tensor<3x4x6xf32>) -> tensor<4x8x6xf32>
  return %0 : tensor<4x8x6xf32>
}""")
    partitioned = module.propagate().partition("xla")
    shardcore.Module.parse(str(partitioned.module))
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", POLICIES)
def test_reshards_in_regions_of_ops_are_erased(policy: str) -> None:
    """JAX constrains the sums of a reducer in the body of a ``shard_map`` with automatic axes."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> tensor<4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x", ?}, {?}]>]
      out_shardings=[<@mesh, [{?}]>] manual_axes={"x"} (%b: tensor<4x12xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%b init: %zero) across dimensions = [1]
        : (tensor<4x12xf32>, tensor<f32>) -> tensor<4xf32>
      reducer(%p: tensor<f32>, %q: tensor<f32>) {
      %s = stablehlo.maximum %p, %q : tensor<f32>
      %t = sdy.sharding_constraint %s <@mesh, []> : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }
    %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1,
        type = 1>, replica_groups = dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>,
        use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      %t = sdy.sharding_constraint %s <@mesh, []> : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    sdy.return %2 : tensor<4xf32>
  } : (tensor<8x12xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}""")
    partitioned = module.propagate().partition(policy)
    assert "sdy." not in str(partitioned.module)
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", POLICIES)
def test_unreduced_arguments_and_results_are_sums_over_devices(policy: str) -> None:
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(
    %a: tensor<5x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}], unreduced={"y"}>},
    %b: tensor<5x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}], unreduced={"y"}>})
    -> (tensor<5x6xf32>,
        tensor<5x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}], unreduced={"y"}>}) {
  %0 = stablehlo.add %a, %a : tensor<5x6xf32>
  return %0, %b : tensor<5x6xf32>, tensor<5x6xf32>
}""")
    partitioned = module.propagate().partition(policy)
    assert "all_reduce" in {row.kind for row in partitioned.collectives}
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", POLICIES)
def test_slices_take_one_dim_whole_and_one_element_of_another(policy: str) -> None:
    """The index of the dim that is taken whole is clamped to 0, on shards too."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %i: tensor<3x2xi32>)
    -> (tensor<3x10x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}) {
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<
      offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1>,
      slice_sizes = array<i64: 10, 1>}> : (tensor<10x8xf32>, tensor<3x2xi32>) -> tensor<3x10x1xf32>
  return %0 : tensor<3x10x1xf32>
}""")
    a = np.arange(80, dtype=np.float32).reshape(10, 8)
    indices = np.array([[-3, 2], [7, 6], [0, 9]], np.int32)
    [found] = module.propagate().partition(policy).simulate(a, indices)
    np.testing.assert_array_equal(found[:, :, 0], a[:, [2, 6, 7]].T)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_terms_that_are_nan_are_not_lost(policy: str, name: str) -> None:
    """By the semantics of StableHLO; XLA's all-reduce on hosts leaves NaN out."""
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<6xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}})
    -> tensor<f32> {{
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.{name} across dimensions = [0]
      : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}}""")
    partitioned = module.propagate().partition(policy)
    assert [row.kind for row in partitioned.collectives] == ["all_reduce"]
    for place in range(6):
        values = np.arange(6, dtype=np.float32)
        values[place] = np.nan
        assert np.isnan(partitioned.simulate(values)[0])


@pytest.mark.parametrize("policy", POLICIES)
def test_constants_in_reducers_are_those_of_stablehlo(policy: str) -> None:
    """Import makes all constants ``sdy.constant``, also where no op is lowered."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8x4xf32> {
  %0 = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.add %b, %zero : tensor<f32>
    %2 = stablehlo.compare LT, %1, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}""")
    partitioned = module.propagate().partition(policy)
    assert "sdy." not in str(partitioned.module)
    assert shardcore.prove(partitioned).is_proven
