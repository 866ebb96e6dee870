"""Programs as XLA's compilers propagate them: the one for TPUs simplifies them before."""

from __future__ import annotations

import pytest
import shardcore

SCATTER = """
func.func @main(%a: tensor<6x8xf32>, %i: tensor<6xKx1xi32>, %u: tensor<6xKxf32>)
    -> tensor<6x8xf32> {
  %0 = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],
      scatter_dims_to_operand_dims = [1], index_vector_dim = 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<6x8xf32>, tensor<6xKx1xi32>, tensor<6xKxf32>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}"""
EQUAL = """
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %a : tensor<8xf32>
  %1 = stablehlo.sine %a : tensor<8xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<8xf32>
  return %2 : tensor<8xf32>
}"""
CONSTANTS = """
func.func @main(%a: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.constant dense<2.0> : tensor<f32>
  %1 = stablehlo.constant dense<3.0> : tensor<f32>
  %2 = stablehlo.multiply %a, %0 : tensor<f32>
  %3 = stablehlo.add %2, %1 : tensor<f32>
  return %3 : tensor<f32>
}"""
PRODUCT = """
func.func @main(%a: tensor<4x6xf32>, %b: tensor<6x8xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}"""
REDUCE = """
func.func @main(%a: tensor<8x1xf32>) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<START> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [1]
      : (tensor<8x1xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}"""


def count(text: str, op: str, compiler: str = "xla-tpu") -> int:
    """How many such ops ``compiler`` propagates."""
    module = shardcore.Module.parse('sdy.mesh @mesh = <["x"=2]>' + text)
    propagated, _ = module.propagate()._as_xla(False, compiler)
    return sum(each.name == f"stablehlo.{op}" for each in propagated.ops())


def test_a_scatter_of_one_element_is_a_selection() -> None:
    text = SCATTER.replace("K", "1")
    assert (count(text, "scatter"), count(text, "select")) == (0, 1)
    assert count(text, "scatter", "xla-gpu") == 1


def test_a_scatter_of_two_elements_stays() -> None:
    assert count(SCATTER.replace("K", "2"), "scatter") == 1


def test_equal_ops_are_merged() -> None:
    assert count(EQUAL, "sine") == 1
    assert count(EQUAL, "sine", "none") == 2


def test_constants_of_other_values_are_not_equal() -> None:
    module = shardcore.Module.parse('sdy.mesh @mesh = <["x"=2]>' + CONSTANTS)
    partitioned = module.propagate().partition("xla", compiler="xla-tpu")
    assert shardcore.prove(partitioned).is_proven


def test_a_transposed_product_is_the_product_of_swapped_operands() -> None:
    assert (count(PRODUCT, "transpose"), count(PRODUCT, "dot_general")) == (0, 1)


@pytest.mark.parametrize(("start", "reductions"), [("0.0", 0), ("5.0", 1)])
def test_a_reduction_of_one_element_is_a_reshape_if_it_starts_from_nothing(
    start: str, reductions: int
) -> None:
    assert count(REDUCE.replace("START", start), "reduce") == reductions


def test_an_unknown_compiler_is_refused() -> None:
    module = shardcore.Module.parse('sdy.mesh @mesh = <["x"=2]>' + EQUAL)
    with pytest.raises(ValueError, match="there is no compiler 'tpu'"):
        module.propagate().partition(compiler="tpu")
