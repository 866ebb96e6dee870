"""Under policy ``xla`` products that contract a sharded dim send what they send under XLA."""

from __future__ import annotations

import pytest
import shardcore

from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.sent import sent_bytes
from tests.shardy.xla.test_reshards import shardings

PROGRAM = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(
      %a: tensor<64x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, {left}>}},
      %b: tensor<128x256xf32> {{sdy.sharding = #sdy.sharding<@mesh, {right}>}})
      -> (tensor<64x256xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.sine %0 : tensor<64x256xf32>
    return %1 : tensor<64x256xf32>
  }}
}}"""


@pytest.mark.parametrize(("axis", "rows"), [("a", ""), ("a", '"b"'), ("b", ""), ("b", '"a"')])
def test_products_send_what_they_do_under_xla(axis: str, rows: str) -> None:
    left, right = f'[{{{rows}}}, {{"{axis}"}}]', f'[{{"{axis}"}}, {{}}]'
    for result in shardings(("a", "b"), 2):
        text = PROGRAM.format(left=left, right=right, result=result)
        ours = sent_by_kind(shardcore.Module.parse(text).propagate().cost(compiler="none"))
        theirs = as_all_reduce(sent_bytes(text))
        assert sum(ours.values()) == sum(theirs.values()), (left, right, result)


SUM = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(
      %a: tensor<16x64x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{"b"}}, {{}}]>}},
      %b: tensor<16x64x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{"b"}}, {{}}]>}})
      -> (tensor<32x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [0, 1] x [0, 1]
        : (tensor<16x64x32xf32>, tensor<16x64x128xf32>) -> tensor<32x128xf32>
    return %0 : tensor<32x128xf32>
  }}
}}"""


@pytest.mark.parametrize("result", ['[{"a"}, {"b"}]', '[{"b"}, {"a"}]', "[{}, {}]"])
def test_a_sum_that_is_where_it_has_to_be_is_not_made_again(result: str) -> None:
    text = SUM.format(result=result)
    ours = sent_by_kind(shardcore.Module.parse(text).propagate().cost(compiler="none"))
    assert sum(ours.values()) == sum(as_all_reduce(sent_bytes(text)).values())


BATCHED = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(
      %a: tensor<8x64x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, {}>}},
      %b: tensor<8x32x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, {}>}})
      -> (tensor<8x64x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, {}>}}) {{
    %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
        : (tensor<8x64x32xf32>, tensor<8x32x128xf32>) -> tensor<8x64x128xf32>
    return %0 : tensor<8x64x128xf32>
  }}
}}"""
EXPERTS = [
    ('[{}, {"b"}, {}]', "[{}, {}, {}]", '[{"b"}, {}, {}]'),
    ('[{}, {"a"}, {}]', '[{"a"}, {}, {}]', '[{"a"}, {}, {}]'),
    ('[{}, {"a"}, {}]', '[{"a"}, {"b"}, {}]', '[{}, {}, {"b"}]'),
    ('[{"b"}, {}, {}]', '[{}, {"a"}, {"b"}]', '[{"b"}, {}, {}]'),
    ('[{"a"}, {}, {}]', '[{"b"}, {}, {"a"}]', '[{"a"}, {"b"}, {}]'),
    ('[{"b"}, {"a"}, {}]', '[{"a"}, {}, {"b"}]', '[{"b"}, {}, {"a"}]'),
]
"""Operands that have to move so that a device holds one batch of all three tensors."""


@pytest.mark.parametrize("shardings_of_all", EXPERTS)
def test_operands_move_to_the_batch_of_the_result_at_once(
    shardings_of_all: tuple[str, str, str],
) -> None:
    text = BATCHED.format(*shardings_of_all)
    ours = sent_by_kind(shardcore.Module.parse(text).propagate().cost(compiler="none"))
    assert ours == as_all_reduce(sent_bytes(text))


PARTS = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(
      %a: tensor<{rows}x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x", "y":(1)2}}, {{}}]>}})
      -> (tensor<16x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
    %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0]
        : (tensor<{rows}x16xf32>, tensor<{rows}x16xf32>) -> tensor<16x16xf32>
    return %0 : tensor<16x16xf32>
  }}
}}"""


@pytest.mark.parametrize("result", ['[{"y"}, {"x"}]', '[{"x"}, {"y"}]', '[{"y":(2)2}, {"x"}]'])
@pytest.mark.parametrize("rows", [4, 64])
def test_a_result_is_cut_along_what_is_not_summed(rows: int, result: str) -> None:
    """Rows are summed over `x` and the major part of `y`; within groups its minor part is free."""
    text = PARTS.format(rows=rows, result=result)
    completed = shardcore.Module.parse(text).propagate()
    assert shardcore.prove(completed.partition("xla")).is_proven
    assert sent_by_kind(completed.cost(compiler="none")) == as_all_reduce(sent_bytes(text))


SHARED = """module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
  func.func public @main(
      %x: tensor<512x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"c"}]>},
      %w: tensor<128x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"c"}]>},
      %g: tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"c"}]>})
      -> (tensor<512x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"c"}]>},
          tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {}]>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<512x128xf32>, tensor<128x64xf32>) -> tensor<512x64xf32>
    %1 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0]
        : (tensor<512x64xf32>, tensor<512x128xf32>) -> tensor<64x128xf32>
    return %0, %1 : tensor<512x64xf32>, tensor<64x128xf32>
  }
}"""


def test_a_product_and_its_gradient_share_what_is_resharded_before_groups() -> None:
    ours = sent_by_kind(shardcore.Module.parse(SHARED).propagate().cost(compiler="none"))
    assert ours == as_all_reduce(sent_bytes(SHARED))
    assert ours["collective_permute"] == 512 * 32 * 4


CONTRACTED = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(
      %a: tensor<64x64x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, {left}>}},
      %b: tensor<64x32x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {right}>}})
      -> (tensor<64x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1, 2] x [0, 1]
        : (tensor<64x64x32xf32>, tensor<64x32x64xf32>) -> tensor<64x64xf32>
    return %0 : tensor<64x64xf32>
  }}
}}"""


@pytest.mark.parametrize("result", ['[{"x", "y"}, {}]', '[{}, {"y", "x"}]', '[{"x"}, {"y"}]'])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ('[{}, {"x", "y"}, {}]', '[{"y", "x"}, {}, {}]'),
        ('[{}, {"x", "y"}, {}]', '[{}, {"x", "y"}, {}]'),
        ('[{}, {"x"}, {"y"}]', '[{"y"}, {"x"}, {}]'),
    ],
)
def test_operands_sharded_unlike_one_another_go_where_the_result_is(
    left: str, right: str, result: str
) -> None:
    """Both are sharded over all devices along contracted dims, but not alike."""
    text = CONTRACTED.format(left=left, right=right, result=result)
    completed = shardcore.Module.parse(text).propagate()
    assert shardcore.prove(completed.partition("xla")).is_proven
    assert sent_by_kind(completed.cost(compiler="none")) == as_all_reduce(sent_bytes(text))


ROWS = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(
      %a: tensor<512x{inner}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
      %b: tensor<{inner}x512xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
      -> (tensor<512x512xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<512x{inner}xf32>, tensor<{inner}x512xf32>) -> tensor<512x512xf32>
    return %0 : tensor<512x512xf32>
  }}
}}"""


@pytest.mark.parametrize(("inner", "is_reduced"), [(256, False), (512, True)])
def test_an_operand_longer_than_the_rows_of_a_group_is_not_gathered(
    inner: int, is_reduced: bool
) -> None:
    """A group along `x` has 256 rows of the result, by which it is compared."""
    text = ROWS.format(inner=inner)
    ours = sent_by_kind(shardcore.Module.parse(text).propagate().cost(compiler="none"))
    assert ours == as_all_reduce(sent_bytes(text))
    assert ("all_reduce" in ours) == is_reduced
