"""Memory at the peak: what stands in the list adds up to the figure, and nothing counts twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardcore import Cost, Module

T = "tensor<1024xf32>"
BYTES = 4096

LOOP = """
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<8> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  {before}
  %r:3 = stablehlo.while(%i = %zero, %s = {start}, %w = {weights}) : tensor<i32>, {T}, {T}
  cond {{
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.multiply %s, %w : {T}
    %u = stablehlo.reverse %t, dims = [0] : {T}
    stablehlo.return %j, %u, {carried} : tensor<i32>, {T}, {T}
  }}
  {after}"""

CASE = """
  %0 = "stablehlo.if"(%p) ({{
    %1 = stablehlo.reverse %a, dims = [0] : {T}
    {more}
    stablehlo.return %1 : {T}
  }}, {{
    %2 = stablehlo.abs %a : {T}
    stablehlo.return %2 : {T}
  }}) : (tensor<i1>) -> {T}
  return %0 : {T}"""


def cost_of(body: str, arguments: str = f"%a: {T}, %b: {T}") -> Cost:
    return (
        Module.parse(f"func.func @main({arguments}) -> {T} {{ {body} }}")
        .propagate()
        .cost(compiler="none")
    )


def loop(**parts: str) -> Cost:
    given = {"before": "", "start": "%a", "weights": "%b", "carried": "%w", "T": T}
    given["after"] = f"return %r#1 : {T}"
    return cost_of(LOOP.format(**{**given, **parts}))


def summed(cost: Cost) -> int:
    return sum(row.bytes for row in cost.live_at_peak)


def test_values_that_are_no_tensors_have_no_elements_to_widen() -> None:
    token = "!stablehlo.token"
    module = Module.parse(f"""
    func.func @main(%a: {T}, %t: {token}) -> {token} {{
      %0 = stablehlo.after_all %t, %t : {token}
      %1 = "stablehlo.send"(%a, %0) {{is_host_transfer = true,
          channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>}}
          : ({T}, {token}) -> {token}
      return %1 : {token}
    }}""")
    assert module.propagate().cost(compiler="none").record()["xla_cpu_peak_bytes"] == BYTES


def test_what_a_loop_only_reads_takes_no_memory_of_its_own() -> None:
    # The two arguments, what is carried, and what the body makes of it in another order.
    reading = loop()
    changing = loop(carried="%t")
    assert changing.peak_bytes >= reading.peak_bytes
    assert reading.peak_bytes in range(4 * BYTES, 4 * BYTES + 100)
    assert summed(reading) == reading.peak_bytes
    assert summed(changing) == changing.peak_bytes


def test_what_a_loop_only_reads_is_live_as_long_as_its_result() -> None:
    made = f"%x = stablehlo.reverse %b, dims = [0] : {T}"
    end = f"%y = stablehlo.reverse %r#1, dims = [0] : {T}\n%z = stablehlo.add %y, %r#2 : {T}\n"
    cost = loop(before=made, weights="%x", after=end + f"return %z : {T}")
    assert summed(cost) == cost.peak_bytes
    # It is in the memory of the result, which is made later.
    assert cost.peak_bytes == loop(before=made, weights="%x").peak_bytes


@pytest.mark.parametrize(
    "more",
    [
        "",
        f"%3 = stablehlo.dot_general %1, %a, contracting_dims = [0] x [0]"
        f" : ({T}, {T}) -> tensor<f32>",
    ],
)
def test_results_of_a_region_do_not_stand_beside_what_they_come_from(more: str) -> None:
    cost = cost_of(CASE.format(more=more, T=T), f"%a: {T}, %p: tensor<i1>")
    assert cost.peak_bytes in range(2 * BYTES, 2 * BYTES + 16)
    assert summed(cost) == cost.peak_bytes


def test_a_product_reads_what_is_transposed_for_it() -> None:
    shape, turned = "tensor<64x32xf32>", "tensor<32x64xf32>"
    product = f"stablehlo.dot_general %a, %0, contracting_dims = [1] x [0] : ({shape}, {turned})"
    cost = cost_of(
        f"%0 = stablehlo.transpose %b, dims = [1, 0] : ({shape}) -> {turned}\n"
        f"%1 = {product} -> tensor<64x64xf32>\n"
        f"%2 = stablehlo.slice %1 [0:16, 0:64] : (tensor<64x64xf32>) -> tensor<16x64xf32>\n"
        f"%3 = stablehlo.reshape %2 : (tensor<16x64xf32>) -> {T}\n"
        f"return %3 : {T}",
        f"%a: {shape}, %b: {shape}",
    )
    # Both arguments, the product and the result.
    assert cost.peak_bytes == 2 * 64 * 32 * 4 + 64 * 64 * 4 + BYTES


@pytest.mark.parametrize(("dim", "copies"), [(0, 0), (1, 1)])
def test_a_concatenation_along_the_last_dim_is_written(dim: int, copies: int) -> None:
    shape = "tensor<64x16xf32>" if dim == 0 else "tensor<8x128xf32>"
    result = "tensor<128x16xf32>" if dim == 0 else "tensor<8x256xf32>"
    body = (
        f"%0 = stablehlo.concatenate %a, %b, dim = {dim} : ({shape}, {shape}) -> {result}\n"
        f"%1 = stablehlo.abs %0 : {result}\n"
        f"%2 = stablehlo.reverse %1, dims = [0] : {result}\n"
        f"return %2 : {result}"
    )
    text = f"func.func @main(%a: {shape}, %b: {shape}) -> {result} {{ {body} }}"
    cost = Module.parse(text).propagate().cost(compiler="none")
    assert cost.peak_bytes == (4 + 2 * copies) * BYTES


def test_results_of_branches_that_nothing_reads_take_no_memory() -> None:
    body = f"""
  %0:2 = "stablehlo.if"(%p) ({{
    %1 = stablehlo.reverse %a, dims = [0] : {T}
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<1024x1024xf32>
    stablehlo.return %1, %2 : {T}, tensor<1024x1024xf32>
  }}, {{
    %1 = stablehlo.abs %a : {T}
    %z = stablehlo.constant dense<1.0> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<1024x1024xf32>
    stablehlo.return %1, %2 : {T}, tensor<1024x1024xf32>
  }}) : (tensor<i1>) -> ({T}, tensor<1024x1024xf32>)
  return %0#0 : {T}"""
    assert cost_of(body, f"%a: {T}, %p: tensor<i1>").peak_bytes < 3 * BYTES


@pytest.mark.parametrize(
    ("branch", "num_more"),
    [
        # The result is there at the peak of the branch, in the memory that the loop carries.
        ("%6 = stablehlo.reverse %2, dims = [0] : tensor<64xf32>", 0),
        # Two larger tensors are there before the result is made.
        (
            """
      %3 = stablehlo.concatenate %2, %2, %2, %2, dim = 0 : (tensor<64xf32>, tensor<64xf32>,
          tensor<64xf32>, tensor<64xf32>) -> tensor<256xf32>
      %4 = "stablehlo.sort"(%3) <{dimension = 0 : i64}> ({
        ^bb0(%u: tensor<f32>, %v: tensor<f32>):
          %w = stablehlo.compare LT, %u, %v : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %w : tensor<i1>
      }) : (tensor<256xf32>) -> tensor<256xf32>
      %6 = stablehlo.slice %4 [32:96] : (tensor<256xf32>) -> tensor<64xf32>""",
            4,
        ),
    ],
)
def test_branches_make_what_loops_carry(branch: str, num_more: int) -> None:
    """The result of a branch is in the memory of the loop, and counts there alone."""
    cost = (
        Module.parse(f"""
func.func @main(%a: tensor<64xf32>, %i: tensor<i32>) -> tensor<64xf32> {{
  %0:2 = stablehlo.while(%x = %a, %n = %i) : tensor<64xf32>, tensor<i32>
  cond {{
    %1 = stablehlo.compare LT, %n, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }} do {{
    %2 = stablehlo.reverse %x, dims = [0] : tensor<64xf32>
    %3 = "stablehlo.case"(%n) ({{
      {branch}
      stablehlo.return %6 : tensor<64xf32>
    }}, {{
      stablehlo.return %2 : tensor<64xf32>
    }}) : (tensor<i32>) -> tensor<64xf32>
    stablehlo.return %3, %n : tensor<64xf32>, tensor<i32>
  }}
  return %0#0 : tensor<64xf32>
}}""")
        .propagate()
        .cost(compiler="none")
    )
    # The argument, what is carried, what the body makes of it, and the counter.
    assert cost.peak_bytes == (3 + num_more) * 256 + 4
    assert summed(cost) == cost.peak_bytes


def test_the_example_adds_up() -> None:
    path = Path(__file__).resolve().parents[2] / "examples/gpt_step.mlir"
    cost = Module.from_file(path).propagate().cost(compiler="none")
    assert summed(cost) == cost.peak_bytes
