"""Under policy ``xla`` gathers with batch dims send what they send under XLA, and are right."""

from __future__ import annotations

import pytest
import shardcore
from shardcore.partition.proof import prove

from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.sent import sent_bytes

PROGRAM = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>
  func.func public @main(
      %a: tensor<8x4x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, {operand}>}},
      %i: tensor<4x8xi32> {{sdy.sharding = #sdy.sharding<@mesh, {indices}>}})
      -> (tensor<4x8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
    %0 = "stablehlo.gather"(%a, %i) <{{dimension_numbers = #stablehlo.gather<
        offset_dims = [2], collapsed_slice_dims = [2], operand_batching_dims = [1],
        start_indices_batching_dims = [0], start_index_map = [2], index_vector_dim = 2>,
        indices_are_sorted = false, slice_sizes = array<i64: 8, 1, 1>}}>
        : (tensor<8x4x16xf32>, tensor<4x8xi32>) -> tensor<4x8x8xf32>
    return %0 : tensor<4x8x8xf32>
  }}
}}"""


@pytest.mark.parametrize("operand", ['[{"x"}, {"y"}, {}]', '[{"x"}, {}, {}]'])
@pytest.mark.parametrize("indices", ['[{}, {"x"}]', '[{"y"}, {"x"}]', '[{"y"}, {"z"}]'])
def test_windows_and_indices_may_be_sharded_along_one_axis(operand: str, indices: str) -> None:
    for result in ("[{}, {}, {}]", '[{"y"}, {}, {"x"}]', '[{"y"}, {"x"}, {}]'):
        text = PROGRAM.format(operand=operand, indices=indices, result=result)
        completed = shardcore.Module.parse(text).propagate()
        ours = sent_by_kind(completed.cost(compiler="none"))
        theirs = as_all_reduce(sent_bytes(text))
        assert {**ours} == {**theirs}, result
        assert prove(completed.partition(policy="xla"), seed=1).is_proven, result


ALONG = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(
      %a: tensor<16x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {operand}>}},
      %i: tensor<16x1xi32> {{sdy.sharding = #sdy.sharding<@mesh, {indices}>}})
      -> (tensor<16xf32> {{sdy.sharding = #sdy.sharding<@mesh, {indices_alone}>}}) {{
    %0 = "stablehlo.gather"(%a, %i) <{{dimension_numbers = #stablehlo.gather<
        collapsed_slice_dims = [1], operand_batching_dims = [0],
        start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>,
        indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}}>
        : (tensor<16x64xf32>, tensor<16x1xi32>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }}
}}"""


@pytest.mark.parametrize(
    ("operand", "rows"), [('[{}, {"x"}]', '{"x"}'), ('[{}, {"y"}]', '{"y":(1)2}')]
)
def test_columns_move_to_other_devices_where_rows_take_theirs(operand: str, rows: str) -> None:
    """Labels of rows are picked from logits whose columns have the axis of the rows."""
    text = ALONG.format(operand=operand, indices=f"[{rows}, {{}}]", indices_alone=f"[{rows}]")
    completed = shardcore.Module.parse(text).propagate()
    ours, theirs = sent_by_kind(completed.cost(compiler="none")), as_all_reduce(sent_bytes(text))
    assert {**ours} == {**theirs}
    assert prove(completed.partition(policy="xla"), seed=1).is_proven
