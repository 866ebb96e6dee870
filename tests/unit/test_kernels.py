"""The kernels of a step, as XLA's compiler for GPUs makes them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from shardcore import Cost, Module
from shardcore.cli import main

MIB = 1 << 20
ROWS = "tensor<1024x1024xf32>"


def cost(body: str, arguments: int = 2, results: str = ROWS, compiler: str = "xla-gpu") -> Cost:
    named = ", ".join(f"%a{at}: {ROWS}" for at in range(arguments))
    text = f"func.func @main({named}) -> ({results}) {{\n{body}\n}}"
    return Module.parse(text).propagate().cost("h100", compiler=compiler)


def elementwise(name: str, result: str, *operands: str) -> str:
    return f"{result} = stablehlo.{name} {', '.join(operands)} : {ROWS}"


def test_a_chain_of_elementwise_ops_is_one_kernel() -> None:
    body = [
        elementwise("add", "%0", "%a0", "%a1"),
        elementwise("multiply", "%1", "%0", "%a0"),
        elementwise("negate", "%2", "%1"),
        f"return %2 : {ROWS}",
    ]
    [kernel] = cost("\n".join(body)).kernels
    assert (kernel.name, kernel.value, len(kernel.ops)) == ("stablehlo.negate", "%2", 3)
    assert {name for name, _ in kernel.ops} == {
        "stablehlo.add",
        "stablehlo.multiply",
        "stablehlo.negate",
    }
    assert (kernel.read_bytes, kernel.written_bytes) == (8 * MIB, 4 * MIB)
    assert (kernel.flops, kernel.count) == (3 * MIB, 1)
    assert kernel.seconds > kernel.bytes / 3.35e12


def test_a_sum_that_several_read_is_computed_in_each() -> None:
    # It is cheaper to add twice than to write the sum.
    body = [
        elementwise("add", "%0", "%a0", "%a1"),
        f"%1 = stablehlo.transpose %0, dims = [1, 0] : ({ROWS}) -> {ROWS}",
        elementwise("negate", "%2", "%0"),
        f"return %1, %2 : {ROWS}, {ROWS}",
    ]
    found = cost("\n".join(body), results=f"{ROWS}, {ROWS}").kernels
    assert all(row.value != "%0" for row in found)
    assert sum(row.flops for row in found) == 3 * MIB


@pytest.mark.parametrize("op", ["constant dense<1.0>", "iota dim = 1"])
def test_a_transpose_of_what_reads_nothing_swaps_no_product(op: str) -> None:
    body = [
        f"%0 = stablehlo.{op} : {ROWS}",
        f"%1 = stablehlo.transpose %0, dims = [1, 0] : ({ROWS}) -> {ROWS}",
        elementwise("add", "%2", "%a0", "%1"),
        f"return %2 : {ROWS}",
    ]
    [kernel] = cost("\n".join(body)).kernels
    assert (kernel.value, kernel.written_bytes) == ("%2", 4 * MIB)


def test_what_is_returned_is_written() -> None:
    body = [
        elementwise("add", "%0", "%a0", "%a1"),
        elementwise("negate", "%1", "%0"),
        f"return %0, %1 : {ROWS}, {ROWS}",
    ]
    # One kernel writes both: it reads as much for one as for two.
    [kernel] = cost("\n".join(body), results=f"{ROWS}, {ROWS}").kernels
    assert (kernel.read_bytes, kernel.written_bytes) == (8 * MIB, 8 * MIB)


def test_a_normalization_of_rows_is_one_kernel() -> None:
    column = "tensor<1024xf32>"
    body = f"""
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %a0 : {ROWS}
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
      : ({ROWS}, tensor<f32>) -> {column}
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : ({column}) -> {ROWS}
  %3 = stablehlo.divide %0, %2 : {ROWS}
  return %3 : {ROWS}"""
    [kernel] = cost(body, arguments=1).kernels
    assert (kernel.read_bytes, kernel.written_bytes) == (4 * MIB, 4 * MIB)
    # Another compiler reduces first.
    assert len(cost(body, arguments=1, compiler="none").kernels) > 1


def test_a_slice_reads_what_it_takes() -> None:
    body = f"""
  %0 = stablehlo.slice %a0 [0:64, 0:1024] : ({ROWS}) -> tensor<64x1024xf32>
  %1 = stablehlo.negate %0 : tensor<64x1024xf32>
  return %1 : tensor<64x1024xf32>"""
    [kernel] = cost(body, 1, "tensor<64x1024xf32>").kernels
    assert kernel.read_bytes == kernel.written_bytes == MIB // 4


def test_a_loop_runs_its_kernels_each_trip() -> None:
    body = f"""
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %x = %a0) : tensor<i32>, {ROWS}
  cond {{
    %c = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %next = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.dot %x, %a0 : ({ROWS}, {ROWS}) -> {ROWS}
    stablehlo.return %next, %y : tensor<i32>, {ROWS}
  }}
  return %0#1 : {ROWS}"""
    found = {row.name: row for row in cost(body, 1).kernels}
    product = found["stablehlo.dot"]
    assert (product.count, product.flops) == (10, 2 * 1024**3)


def test_a_value_that_a_loop_reads_while_it_makes_the_next_is_copied() -> None:
    body = f"""
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %x = %a0, %y = %a1) : tensor<i32>, {ROWS}, {ROWS}
  cond {{
    %c = stablehlo.compare LT, %i, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %next = stablehlo.add %i, %one : tensor<i32>
    %p = stablehlo.dot %x, %a0 : ({ROWS}, {ROWS}) -> {ROWS}
    %n = stablehlo.negate %y : {ROWS}
    stablehlo.return %next, %p, %n : tensor<i32>, {ROWS}, {ROWS}
  }}
  return %0#1, %0#2 : {ROWS}, {ROWS}"""
    found = cost(body, 2, f"{ROWS}, {ROWS}").kernels
    [copy] = [row for row in found if row.is_copy and row.count == 10]
    assert copy.read_bytes == copy.written_bytes == 4 * MIB


def test_dots_that_share_an_operand_are_one_kernel() -> None:
    of_rows = f"contracting_dims = [1] x [0] : ({ROWS}, {ROWS}) -> {ROWS}"
    body = [
        f"%0 = stablehlo.dot_general %a0, %a1, {of_rows}",
        f"%1 = stablehlo.dot_general %a0, %a2, {of_rows}",
        elementwise("multiply", "%2", "%0", "%1"),
        f"return %2 : {ROWS}",
    ]
    text = "\n".join(body)
    product, joined = cost(text, 3).kernels
    assert (product.read_bytes, product.written_bytes) == (12 * MIB, 8 * MIB)
    assert (joined.read_bytes, joined.written_bytes) == (8 * MIB, 4 * MIB)
    # The second one reads the first one's result.
    after = text.replace("%a0, %a2", "%0, %a2")
    assert len([row for row in cost(after, 3).kernels if row.flops == 2 * 1024**3]) == 2


def test_xla_counts_a_read_for_each_slice_and_broadcast() -> None:
    part = "tensor<512x1024xf32>"
    body = f"""
  %0 = stablehlo.slice %a0 [0:512, 0:1024] : ({ROWS}) -> {part}
  %1 = stablehlo.slice %a0 [256:768, 0:1024] : ({ROWS}) -> {part}
  %2 = stablehlo.add %0, %1 : {part}
  return %2 : {part}"""
    [kernel] = cost(body, 1, part).kernels
    assert kernel.bytes_accessed == 6 * MIB
    column = "tensor<1024xf32>"
    body = f"""
  %0 = stablehlo.broadcast_in_dim %b, dims = [0] : ({column}) -> {ROWS}
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : ({column}) -> {ROWS}
  %2 = stablehlo.add %0, %1 : {ROWS}
  return %2 : {ROWS}"""
    text = f"func.func @main(%b: {column}) -> ({ROWS}) {{{body}\n}}"
    [kernel] = Module.parse(text).propagate().cost("h100").kernels
    assert kernel.bytes_accessed == 2 * 4096 + 4 * MIB


def test_xla_counts_both_halves_of_a_collective_and_no_library() -> None:
    product = f"""
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: {ROWS} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}},
    %b: {ROWS} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {ROWS} {{
  %0 = stablehlo.dot %a, %b : ({ROWS}, {ROWS}) -> {ROWS}
  return %0 : {ROWS}
}}"""
    found = Module.parse(product).propagate().cost("h100").kernels
    [sent] = [row for row in found if row.is_collective]
    assert (sent.bytes, sent.bytes_accessed) == (8 * MIB, 16 * MIB)
    image, filters = "tensor<8x32x32x16xf32>", "tensor<3x3x16x16xf32>"
    body = f"""
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {{pad = [[1, 1], [1, 1]]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : ({image}, {filters}) -> {image}
  return %0 : {image}"""
    text = f"func.func @main(%a: {image}, %b: {filters}) -> {image} {{{body}\n}}"
    found = Module.parse(text).propagate().cost("h100").kernels
    [library] = [row for row in found if row.name.endswith("convolution") and not row.is_copy]
    assert library.bytes > 0 == library.bytes_accessed


def test_a_long_sum_takes_two_kernels() -> None:
    tall, row = "tensor<32768x32xf32>", "tensor<32xf32>"
    body = f"""
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
      : ({tall}, tensor<f32>) -> {row}
  return %0 : {row}"""
    text = f"func.func @main(%a: {tall}) -> {row} {{{body}\n}}"
    first, second = Module.parse(text).propagate().cost("h100").kernels
    assert (first.read_bytes, first.written_bytes) == (4 * MIB, 128 * 128)
    assert (second.read_bytes, second.written_bytes) == (128 * 128, 128)


@pytest.mark.parametrize("compiler", ["xla-gpu", "xla-tpu", "xla-cpu", "none"])
def test_all_compilers_have_kernels(compiler: str) -> None:
    body = elementwise("add", "%0", "%a0", "%a1") + f"\nreturn %0 : {ROWS}"
    [kernel] = cost(body, compiler=compiler).kernels
    assert kernel.bytes == 12 * MIB
    assert kernel.record()["bytes"] == 12 * MIB


def test_kernels_are_pickled() -> None:
    found = cost(elementwise("add", "%0", "%a0", "%a1") + f"\nreturn %0 : {ROWS}")
    assert pickle.loads(pickle.dumps(found)).kernels == found.kernels


def test_the_command_line_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "program.mlir"
    file.write_text(
        f"func.func @main(%a: {ROWS}) -> {ROWS} {{\n"
        f"  %0 = stablehlo.negate %a : {ROWS}\n  return %0 : {ROWS}\n}}"
    )
    command = ["cost", str(file), "--hardware", "h100", "--kernels"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "1 kernel as xla-gpu has them, started 1 times" in text
    assert "negate" in text
    assert main([*command, "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["kernels"]
    assert row["written_bytes"] == 4 * MIB
    with pytest.raises(SystemExit):
        main([*command, "--memory"])
    assert "--kernels takes one program" in capsys.readouterr().err


MATRIX = "tensor<512x512xf32>"
LAYER_NORM = """func.func @main(%x: tensor<64x256xf32>, %none: tensor<i32>) -> tensor<64x256xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %nan = stablehlo.constant dense<0x7FC00000> : tensor<64x1xf32>
  %size = stablehlo.constant dense<256.0> : tensor<f32>
  %left_out = stablehlo.convert %NONE : (tensor<i32>) -> tensor<f32>
  %left = stablehlo.subtract %size, %left_out : tensor<f32>
  %is_left = stablehlo.compare GT, %left, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %sizes = stablehlo.broadcast_in_dim %left, dims = [] : (tensor<f32>) -> tensor<64x1xf32>
  %squares = stablehlo.multiply %x, %x : tensor<64x256xf32>
  %sum = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x256xf32>, tensor<f32>) -> tensor<64xf32>
  %sums = stablehlo.reshape %sum : (tensor<64xf32>) -> tensor<64x1xf32>
  %mean = stablehlo.divide %sums, %sizes : tensor<64x1xf32>
  %known = stablehlo.select %is_left, %mean, %nan : tensor<i1>, tensor<64x1xf32>
  %again = stablehlo.reduce(%known init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<64x1xf32>, tensor<f32>) -> tensor<64xf32>
  %root = stablehlo.rsqrt %again : tensor<64xf32>
  %rows = stablehlo.broadcast_in_dim %root, dims = [0] : (tensor<64xf32>) -> tensor<64x256xf32>
  %result = stablehlo.multiply %x, %rows : tensor<64x256xf32>
  return %result : tensor<64x256xf32>
}"""


def test_a_norm_whose_degrees_of_freedom_are_constants_is_one_kernel() -> None:
    # As `jnp.var` writes it: what is selected is known, and a reduction of one element is none.
    constant = "%zeros = stablehlo.constant dense<0> : tensor<i32>"
    known = LAYER_NORM.replace("  %left_out", f"  {constant}\n  %left_out", 1)
    found = Module.parse(known.replace("%NONE", "%zeros")).propagate().cost("h100").kernels
    assert [row.value for row in found] == ["%result"]
    given = Module.parse(LAYER_NORM.replace("%NONE", "%none")).propagate().cost("h100").kernels
    assert len(given) > 1


def product(before: str, left: str = "%y") -> list[tuple[str, int]]:
    """The kernels of a product of what is computed before it: values, and bytes that are read."""
    text = f"""func.func @main(%x: {MATRIX}, %z: {MATRIX}, %w: {MATRIX}, %b: tensor<512xf32>)
        -> ({MATRIX}, {MATRIX}) {{
      %zero = stablehlo.constant dense<0.0> : {MATRIX}
      {before}
      %0 = stablehlo.dot_general {left}, %w, contracting_dims = [1] x [0]
        : ({MATRIX}, {MATRIX}) -> {MATRIX}
      %1 = stablehlo.negate %0 : {MATRIX}
      return %1, %0 : {MATRIX}, {MATRIX}
    }}"""
    found = Module.parse(text).propagate().cost("h100").kernels
    return [
        (row.value, row.read_bytes)
        for row in found
        if row.value in ("%0", "%y") and not row.is_copy
    ]


@pytest.mark.parametrize(
    ("before", "is_fused"),
    [
        (f"%y = stablehlo.maximum %x, %zero : {MATRIX}", True),
        (f"%y = stablehlo.exponential %x : {MATRIX}", True),
        (f"%y = stablehlo.add %x, %z : {MATRIX}", True),
        (f"%s = stablehlo.negate %z : {MATRIX}\n%y = stablehlo.add %x, %s : {MATRIX}", False),
        (f"%y = stablehlo.sign %x : {MATRIX}", False),
        (
            f"%c = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<512xf32>) -> {MATRIX}\n"
            f"%y = stablehlo.multiply %x, %c : {MATRIX}",
            True,
        ),
    ],
)
def test_a_product_computes_its_operands_if_it_reads_no_more_then(
    before: str, is_fused: bool
) -> None:
    # Two arrays instead of one are worth it only if they are arguments that nothing else reads.
    assert ("%y" in dict(product(before))) != is_fused


def test_a_product_leaves_what_others_read_in_memory() -> None:
    # The other user reads %y, which is written for it; the product computes it again.
    shared = f"%y = stablehlo.maximum %x, %zero : {MATRIX}"
    text = f"""func.func @main(%x: {MATRIX}, %w: {MATRIX}) -> ({MATRIX}, {MATRIX}) {{
      %zero = stablehlo.constant dense<0.0> : {MATRIX}
      {shared}
      %0 = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0]
        : ({MATRIX}, {MATRIX}) -> {MATRIX}
      return %0, %y : {MATRIX}, {MATRIX}
    }}"""
    found = Module.parse(text).propagate().cost("h100").kernels
    ops = {row.value: [name for name, _ in row.ops] for row in found if not row.is_copy}
    assert "stablehlo.maximum" in ops["%y"]
    assert "stablehlo.maximum" in ops["%0"]
