"""Walking a program: ops, blocks, attributes, elements."""

from __future__ import annotations

import struct

import pytest
from shardcore import Module

LOOP = """
module @loop attributes {mhlo.num_partitions = 8 : i32} {
  func.func @main(%a: tensor<2x3xf32>, %n: tensor<i32>) -> tensor<2x3xf32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%i = %n, %x = %a) : tensor<i32>, tensor<2x3xf32>
    cond {
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = func.call @f(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
      stablehlo.return %i, %1 : tensor<i32>, tensor<2x3xf32>
    }
    return %0#1 : tensor<2x3xf32>
  }
  func.func private @f(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.reshape %0 : (tensor<3x2xf32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}"""


def test_ops_come_in_program_order_with_what_is_inside() -> None:
    module = Module.parse(LOOP)
    names = [(op.function, op.name.split(".")[1]) for op in module.ops()]
    assert names == [
        *(("main", name) for name in ("func", "constant", "while", "compare", "return")),
        *(("main", name) for name in ("call", "return", "return")),
        *(("f", name) for name in ("func", "transpose", "reshape", "return")),
    ]
    assert module.attributes["mhlo.num_partitions"] == 8


def test_regions_blocks_and_values_are_those_of_the_op() -> None:
    main, _, loop, *_ = Module.parse(LOOP).ops()
    assert [[len(block.ops) for block in region] for region in loop.regions] == [[2], [2]]
    _, [body] = loop.regions
    assert [value.name for value in body.arguments] == ["%i", "%x"]
    assert body.ops[0].operands == body.arguments[1:]
    assert [value.name for value in loop.operands] == ["%n", "%a"]
    assert [value.shape for value in loop.results] == [(), (2, 3)]
    [[entry]] = main.regions
    assert entry.ops[1] == loop
    assert {entry.ops[1], loop, body.ops[0]} == {loop, body.ops[0]}
    assert {entry, body} == {entry, body, main.regions[0][0]}
    assert (
        str([loop, body])
        == "[<shardcore.Op %0#0, %0#1 = stablehlo.while>, <shardcore.Block of 2 ops>]"
    )


def test_ops_know_their_place_and_symbols() -> None:
    ops = {op.name: op for op in Module.parse(LOOP).ops()}
    place = ops["stablehlo.transpose"].place
    assert place is not None
    assert (place.line, place.column) == (16, 10)
    assert place.source_line.strip().startswith("%0 = stablehlo.transpose")
    assert ops["func.call"].attributes["callee"] == "f"
    assert ops["func.func"].attributes["sym_name"] == "f"
    assert ops["stablehlo.transpose"].location is None


PRETTY = """
func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %i: tensor<i32>, %x: tensor<1x8x8x3xf32>,
                %k: tensor<3x3x3x5xf32>, %z: tensor<f32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1], precision = [DEFAULT, HIGHEST]
      {note = "n"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.slice %a [0:4:2, 1:8] : (tensor<4x8xf32>) -> tensor<2x7xf32>
  %2 = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 2]
      : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %3 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [2, 2], pad = [[0, 1], [1, 0]], reverse = [false, true]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<1x4x4x5xf32>
  %4 = stablehlo.compare GT, %a, %b, TOTALORDER
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %5 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return
}"""

GENERIC = """
"func.func"() <{function_type = (tensor<4x8xf32>, tensor<4x8xf32>, tensor<i32>, tensor<1x8x8x3xf32>,
                 tensor<3x3x3x5xf32>, tensor<f32>) -> (), sym_name = "main"}> ({
^bb0(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %i: tensor<i32>, %x: tensor<1x8x8x3xf32>,
     %k: tensor<3x3x3x5xf32>, %z: tensor<f32>):
  %0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<
      lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]}>
      {note = "n"}
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  %1 = "stablehlo.slice"(%a) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 4, 8>,
      strides = array<i64: 2, 1>}> : (tensor<4x8xf32>) -> tensor<2x7xf32>
  %2 = "stablehlo.dynamic_slice"(%a, %i, %i) <{slice_sizes = array<i64: 1, 2>}>
      : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %3 = "stablehlo.convolution"(%x, %k) <{batch_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
      feature_group_count = 1 : i64, padding = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>,
      window_reversal = array<i1: false, true>, window_strides = array<i64: 2, 2>}>
      : (tensor<1x8x8x3xf32>, tensor<3x3x3x5xf32>) -> tensor<1x4x4x5xf32>
  %4 = "stablehlo.compare"(%a, %b) <{compare_type = #stablehlo<comparison_type TOTALORDER>,
      comparison_direction = #stablehlo<comparison_direction GT>}>
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %5 = "stablehlo.reduce"(%a, %z) <{dimensions = array<i64: 0>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %6 = "stablehlo.add"(%p, %q) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%6) : (tensor<f32>) -> ()
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  "func.return"() : () -> ()
}) : () -> ()"""


def test_attributes_are_the_same_in_both_forms() -> None:
    pretty, generic = (
        [(op.name, op.attributes) for op in Module.parse(text).ops()[1:]]
        for text in (PRETTY, GENERIC)
    )
    assert [name for name, _ in pretty] == [name for name, _ in generic]
    for (name, own), (_, plain) in zip(pretty, generic, strict=True):
        if name == "stablehlo.convolution":
            assert own.pop("padding") == [0, 1, 1, 0]
            assert plain.pop("padding") == [[0, 1], [1, 0]]
        if name == "stablehlo.dot_general":
            dims = [a.pop("dot_dimension_numbers") for a in (own, plain)]
            assert dims[0] == dims[1]
        assert own == plain, name


@pytest.mark.parametrize(
    ("literal", "type", "expected"),
    [
        ("dense<[1, -2]>", "2xi16", struct.pack("<2h", 1, -2)),
        ("dense<7>", "3x4xi64", struct.pack("<q", 7)),
        ("dense<[0.5, 0x7FC00000]>", "2xf32", struct.pack("<fI", 0.5, 0x7FC00000)),
        ("dense<[true, false]>", "2xi1", b"\1\0"),
        ('dense<"0x0000803F00000040">', "2xf32", struct.pack("<2f", 1, 2)),
        ("dense<(1.0, -2.0)>", "complex<f64>", struct.pack("<2d", 1, -2)),
        ("dense<18446744073709551615>", "ui64", b"\xff" * 8),
        ("dense<[1.0, -2.5]>", "2xbf16", b"\x80\x3f\x20\xc0"),
        ("dense<>", "0x3xf32", b""),
    ],
)
def test_elements_are_bytes(literal: str, type: str, expected: bytes) -> None:
    text = f"func.func @main() {{ %0 = stablehlo.constant {literal} : tensor<{type}> return }}"
    _, constant, _ = Module.parse(text).ops()
    *sizes, element = type.split("x") if "complex" not in type else [type]
    assert constant.elements() == (element, [int(size) for size in sizes], expected)


def test_what_is_not_dense_has_no_elements() -> None:
    _, add, *_ = Module.parse(PRETTY).ops()
    for name in ("value", "note", "dot_dimension_numbers"):
        with pytest.raises(KeyError, match=name):
            add.elements(name)


def test_ops_with_the_same_signature_differ_in_nothing_but_names() -> None:
    text = """func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) {
      %0 = stablehlo.transpose %a, dims = [1, 0] {x.y = 1 : i64}
          : (tensor<4x8xf32>) -> tensor<8x4xf32>
      %1 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
      %2 = stablehlo.transpose %b, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
      return
    }"""
    _, one, two, three, end = Module.parse(text).ops()
    assert one.signature == two.signature != three.signature
    assert end.signature is None
    # Attributes with a dialect in their name stay those of the op itself.
    assert (set(one.attributes), set(two.attributes)) == ({"permutation", "x.y"}, {"permutation"})


def test_manual_computations_have_their_shardings() -> None:
    text = """sdy.mesh @m = <["x"=2]>
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = sdy.manual_computation(%a) in_shardings=[<@m, [{"x"}]>] out_shardings=[<@m, [{"x"}]>]
          manual_axes={"x"} (%b: tensor<2xf32>) {
        sdy.return %b : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    attributes = Module.parse(text).ops()[1].attributes
    assert attributes["manual_axes"] == ["x"]
    [sharding] = attributes["in_shardings"]
    assert sharding.local_shape((4,)) == (2,)
    assert attributes["out_shardings"] == [sharding]
