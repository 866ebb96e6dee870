"""`sdy-pad-for-divisibility` does what the reference's does, and right what it does not do."""

from __future__ import annotations

import numpy as np
import pytest
import shardcore

from tests.shardy import reference
from tests.shardy.diff import explain, ours

PIPELINE = reference.join_passes([reference.PAD])
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
BY_Y = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}'
SLICED = '%0 = sdy.all_slice [{"y"}] %a out_sharding=<@mesh, [{"y"}]> : tensor<7xf32>\n'
T7 = "tensor<7xf32>"
ZERO = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"

BODY = (
    "({\n^bb0(%s: tensor<f32>, %t: tensor<f32>):\n%c = stablehlo.maximum %s, %t : tensor<f32>\n"
    "stablehlo.return %c : tensor<f32>\n})"
)
# Ops after SLICED, and the type of %r.
BODIES = {
    "nothing": (f"%r = sdy.reshard %0 <@mesh, [{{}}]> : {T7}", T7),
    "sharded": (f"%r = stablehlo.negate %0 {BY_Y} : {T7}", T7),
    "unsharded": (f"%r = stablehlo.negate %0 : {T7}", T7),
    "from reshard": (
        f'%1 = sdy.reshard %a <@mesh, [{{"y"}}]> : {T7}\n'
        f"%2 = stablehlo.negate %1 {BY_Y} : {T7}\n%r = stablehlo.add %2, %1 {BY_Y} : {T7}",
        T7,
    ),
    "broadcast": (
        f"{ZERO}%r = stablehlo.broadcast_in_dim %z, dims = [] {BY_Y} : (tensor<f32>) -> {T7}",
        T7,
    ),
    "compare and select": (
        f"%1 = stablehlo.iota dim = 0 {BY_Y} : {T7}\n"
        f"%2 = stablehlo.compare LT, %1, %0 {BY_Y} : ({T7}, {T7}) -> tensor<7xi1>\n"
        f"%r = stablehlo.select %2, %1, %0 {BY_Y} : tensor<7xi1>, {T7}",
        T7,
    ),
    "reduce": (
        f"{ZERO}%r = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] "
        f": ({T7}, tensor<f32>) -> tensor<f32>",
        "tensor<f32>",
    ),
    "reduce with body": (
        f"{ZERO}%r = stablehlo.reduce(%0 init: %z) across dimensions = [0] "
        f": ({T7}, tensor<f32>) -> tensor<f32>\n"
        "reducer(%s: tensor<f32>, %t: tensor<f32>) {\n%m = stablehlo.maximum %s, %t : tensor<f32>\n"
        "stablehlo.return %m : tensor<f32>\n}",
        "tensor<f32>",
    ),
    "transpose": (f"%r = stablehlo.transpose %0, dims = [0] {BY_Y} : ({T7}) -> {T7}", T7),
    "generic form": (f'%r = "stablehlo.negate"(%0) {BY_Y} : ({T7}) -> {T7}', T7),
    "custom call": (f"%r = stablehlo.custom_call @f(%0) {BY_Y} : ({T7}) -> {T7}", T7),
    "other dialect": (f"%r = chlo.square %0 {BY_Y} : {T7} -> {T7}", T7),
    "scatter": (
        "%i = stablehlo.constant dense<[[6],[7]]> : tensor<2x1xi32>\n"
        "%u = stablehlo.constant dense<9.0> : tensor<2xf32>\n"
        '%1 = "stablehlo.scatter"(%0, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> "
        f"{BODY} {BY_Y} : ({T7}, tensor<2x1xi32>, tensor<2xf32>) -> {T7}\n"
        f"%r = stablehlo.negate %1 {BY_Y} : {T7}",
        T7,
    ),
    "concatenate": (
        f"%r = stablehlo.concatenate %0, %a, dim = 0 : ({T7}, {T7}) -> tensor<14xf32>",
        "tensor<14xf32>",
    ),
    "pad": (
        f"{ZERO}%r = stablehlo.pad %0, %z, low = [1], high = [1], interior = [1] "
        f": ({T7}, tensor<f32>) -> tensor<15xf32>",
        "tensor<15xf32>",
    ),
    "clamp": (
        f"{ZERO}%r = stablehlo.clamp %z, %0, %z : (tensor<f32>, {T7}, tensor<f32>) -> {T7}",
        T7,
    ),
    "barrier": (f"%r, %1 = stablehlo.optimization_barrier %0, %0 : {T7}, {T7}", T7),
    "slices": (
        f"%1 = stablehlo.slice %0 [0:3] : ({T7}) -> tensor<3xf32>\n"
        f"%r = stablehlo.slice %0 [0:7] {BY_Y} : ({T7}) -> {T7}",
        T7,
    ),
    "slice and gather": (
        f'%1 = sdy.all_slice [{{"x"}}] %0 out_sharding=<@mesh, [{{"y", "x"}}]> : {T7}\n'
        f'%2 = sdy.all_gather [{{"x"}}] %1 out_sharding=<@mesh, [{{"y"}}]> : {T7}\n'
        f'%r = sdy.all_gather [{{"y"}}] %2 out_sharding=<@mesh, [{{}}]> : {T7}',
        T7,
    ),
    "dot of known zeros": (
        f"%r = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0] : ({T7}, {T7}) "
        "-> tensor<f32>",
        "tensor<f32>",
    ),
    "dot of the unknown": (
        f"%1 = stablehlo.exponential %0 {BY_Y} : {T7}\n"
        f"%r = stablehlo.dot_general %0, %1, contracting_dims = [0] x [0] : ({T7}, {T7}) "
        "-> tensor<f32>",
        "tensor<f32>",
    ),
}
TWO_DIMS = """
func.func @main(%a: tensor<3x5x6xf32>, %b: tensor<3x7x5xbf16>, %c: tensor<3x5x7xbf16>)
    -> (tensor<3x5x6xf32>, tensor<3x5xi32>) {
  %0 = sdy.all_slice [{"y"}, {"x"}, {}] %a out_sharding=<@mesh, [{"y"}, {"x"}, {}]>
    : tensor<3x5x6xf32>
  %1 = stablehlo.abs %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}, {}]>]>}
    : tensor<3x5x6xf32>
  %2 = stablehlo.dot_general %1, %0, batching_dims = [2] x [2], contracting_dims = [0, 1] x [0, 1]
    : (tensor<3x5x6xf32>, tensor<3x5x6xf32>) -> tensor<6xf32>
  %3 = sdy.all_gather [{}, {"x"}, {}] %0 out_sharding=<@mesh, [{"y"}, {}, {}]> : tensor<3x5x6xf32>
  %4 = sdy.all_gather [{"y"}, {}, {}] %3 out_sharding=<@mesh, [{}, {}, {}]> : tensor<3x5x6xf32>
  %5 = stablehlo.slice %4 [0:3, 0:5, 0:1] : (tensor<3x5x6xf32>) -> tensor<3x5x1xf32>
  %6 = stablehlo.constant dense<1> : tensor<3x5xi32>
  %7 = sdy.all_slice [{}, {"x":(2)2}] %6 out_sharding=<@mesh, [{}, {"x":(2)2}]> : tensor<3x5xi32>
  return %4, %7 : tensor<3x5x6xf32>, tensor<3x5xi32>
}
"""
TEXTS = {
    name: f"{MESH}func.func @main(%a: {T7}) -> {ty} {{\n{SLICED}{body}\nreturn %r : {ty}\n}}"
    for name, (body, ty) in BODIES.items()
} | {"two dims": MESH + TWO_DIMS}

BY_X = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}'
FROM_X = '%0 = sdy.all_slice [{"x"}] %a out_sharding=<@mesh, [{"x"}]> : tensor<7xf32>\n'
OF_ARGUMENT = f"%n = stablehlo.negate %0 {BY_X} : {T7}\n"


def padded_dot(value: str, pad: str, operand: str = "%0") -> str:
    """A dot of a tensor that is padded with this value."""
    return (
        f"{FROM_X}{OF_ARGUMENT}%c = {value} : tensor<f32>\n"
        f"%1 = stablehlo.pad {operand}, %c, {pad} {BY_X} : ({T7}, tensor<f32>) -> tensor<15xf32>\n"
        "%2 = stablehlo.iota dim = 0 : tensor<15xf32>\n"
        f'%3 = sdy.all_slice [{{"x"}}] %2 out_sharding=<@mesh, [{{"x"}}]> : tensor<15xf32>\n'
        "%r = stablehlo.dot_general %1, %3, contracting_dims = [0] x [0] : (tensor<15xf32>, "
        "tensor<15xf32>) -> tensor<f32>"
    )


SAME, WIDE = "low = [3], high = [5], interior = [0]", "low = [1], high = [1], interior = [1]"
ZEROS, ONES = "stablehlo.constant dense<0.0>", "stablehlo.constant dense<1.0>"
# What only the later version pads; the type of %r.
LATER = {
    "scattered terms": (
        f'{FROM_X}%1 = sdy.all_gather [{{"x"}}] %0 out_sharding=<@mesh, [{{}}]> : {T7}\n'
        f'%2 = sdy.replicated_to_unreduced {{"x", "y"}} %1 out_sharding=<@mesh, [{{}}], '
        f'unreduced={{"x", "y"}}> : {T7}\n'
        f'%3 = sdy.reduce_scatter [{{"x"}}] %2 out_sharding=<@mesh, [{{"x"}}], unreduced={{"y"}}> '
        f": {T7}\n"
        f'%4 = sdy.all_reduce {{"y"}} %3 out_sharding=<@mesh, [{{"x"}}]> : {T7}\n'
        f"%r = stablehlo.dot_general %4, %4, contracting_dims = [0] x [0] : ({T7}, {T7}) -> "
        "tensor<f32>",
        "tensor<f32>",
    ),
    "exchange": (
        "%0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<7xf32>) -> tensor<7x5xf32>\n"
        '%1 = sdy.all_slice [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<7x5xf32>\n'
        '%2 = sdy.all_to_all [{"x"}: 0->1] %1 out_sharding=<@mesh, [{}, {"x"}]> : tensor<7x5xf32>\n'
        "%r = stablehlo.dot_general %2, %2, contracting_dims = [0, 1] x [0, 1] : "
        "(tensor<7x5xf32>, tensor<7x5xf32>) -> tensor<f32>",
        "tensor<f32>",
    ),
    "permute": (
        f'{FROM_X}%1 = sdy.collective_permute %0 out_sharding=<@mesh, [{{"x":(2)2, "y"}}]> : {T7}\n'
        f'%r = sdy.all_gather [{{"x":(2)2, "y"}}] %1 out_sharding=<@mesh, [{{}}]> : {T7}',
        T7,
    ),
    "pad of zeros with zeros": (padded_dot(ZEROS, SAME), "tensor<f32>"),
    "pad of zeros with negative zeros": (
        padded_dot("stablehlo.constant dense<-0.0>", SAME),
        "tensor<f32>",
    ),
    "pad of zeros with ones": (padded_dot(ONES, SAME), "tensor<f32>"),
    "pad of the unknown with zeros": (padded_dot(ZEROS, SAME, "%n"), "tensor<f32>"),
    "pad over the padding": (padded_dot(ZEROS, WIDE, "%n"), "tensor<f32>"),
    "padding of ones is padded with ones": (
        "%z = stablehlo.iota dim = 0 : tensor<8xi32>\n"
        "%c = stablehlo.constant dense<1> : tensor<i32>\n"
        '%0 = sdy.all_slice [{"x"}] %z out_sharding=<@mesh, [{"x"}]> : tensor<8xi32>\n'
        f"%1 = stablehlo.pad %0, %c, low = [1], high = [0], interior = [0] {BY_X} : "
        "(tensor<8xi32>, tensor<i32>) -> tensor<9xi32>\n"
        '%2 = sdy.all_slice [{"y"}] %1 out_sharding=<@mesh, [{"x", "y"}]> : tensor<9xi32>\n'
        "%r = stablehlo.negate %a : tensor<7xf32>",
        T7,
    ),
    "stray zero": (
        "%0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<7xf32>) -> tensor<7x5xf32>\n"
        '%1 = sdy.all_slice [{"y"}, {}] %0 out_sharding=<@mesh, [{"y"}, {}]> : tensor<7x5xf32>\n'
        '%2 = stablehlo.negate %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} '
        ": tensor<7x5xf32>\n"
        "%3 = stablehlo.dot_general %2, %0, contracting_dims = [1] x [1] {sdy.sharding = "
        '#sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>} : (tensor<7x5xf32>, tensor<7x5xf32>) -> '
        "tensor<7x7xf32>\n%r = stablehlo.negate %a : tensor<7xf32>",
        T7,
    ),
    "convolution of features": (
        "%k = stablehlo.constant dense<2.0> : tensor<3x7x1xf32>\n"
        "%i = stablehlo.broadcast_in_dim %a, dims = [2] : (tensor<7xf32>) -> tensor<1x9x7xf32>\n"
        '%1 = sdy.all_slice [{}, {"x"}, {"y"}] %i out_sharding=<@mesh, [{}, {"x"}, {"y"}]> : '
        "tensor<1x9x7xf32>\n"
        '%2 = sdy.all_slice [{}, {"y"}, {}] %k out_sharding=<@mesh, [{}, {"y"}, {}]> : '
        "tensor<3x7x1xf32>\n"
        "%3 = stablehlo.exponential %1 {sdy.sharding = "
        '#sdy.sharding_per_value<[<@mesh, [{}, {"x"}, {"y"}]>]>} : tensor<1x9x7xf32>\n'
        "%4 = stablehlo.convolution(%3, %2) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], "
        "window = {stride = [2], pad = [[0, 0]]} {batch_group_count = 1 : i64, "
        "feature_group_count = 1 : i64, "
        "sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>} : "
        "(tensor<1x9x7xf32>, tensor<3x7x1xf32>) -> tensor<1x4x1xf32>\n"
        "%r = stablehlo.negate %a : tensor<7xf32>",
        T7,
    ),
    # The slice of the result is what the function returns.
    "returned convolution": (
        "%k = stablehlo.constant dense<2.0> : tensor<3x1x1xf32>\n"
        "%i = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<7xf32>) -> tensor<1x7x1xf32>\n"
        '%1 = sdy.all_slice [{}, {"y"}, {}] %i out_sharding=<@mesh, [{}, {"y"}, {}]> : '
        "tensor<1x7x1xf32>\n"
        "%r = stablehlo.convolution(%1, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], "
        "window = {pad = [[0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, "
        "sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>} : "
        "(tensor<1x7x1xf32>, tensor<3x1x1xf32>) -> tensor<1x5x1xf32>",
        "tensor<1x5x1xf32>",
    ),
}
# What leaves casts, which the later version refuses.
LEAVES_CASTS = {
    *("nothing", "sharded", "unsharded", "from reshard", "broadcast", "compare and select"),
    *("transpose", "generic form", "custom call", "other dialect", "concatenate", "clamp"),
    *("barrier", "slices", "two dims", "scatter"),
}
if reference.IS_NEW:
    # The later version dies on pads that have no sharding.
    del TEXTS["pad"]
    TEXTS |= {
        name: f"{MESH}func.func @main(%a: {T7}) -> {ty} {{\n{body}\nreturn %r : {ty}\n}}"
        for name, (body, ty) in LATER.items()
    }

# Ops after SLICED which the reference refuses, or pads so that the result changes.
TRUE_SIZE = {
    "constant": (f"%r = stablehlo.constant {BY_Y} dense<1.0> : {T7}", T7),
    "reshape": (f"%r = stablehlo.reshape %0 : ({T7}) -> tensor<7x1xf32>", "tensor<7x1xf32>"),
    "convert": (f"%r = stablehlo.convert %0 : {T7}", T7),
    "result only": (f"%r = stablehlo.negate %a {BY_Y} : {T7}", T7),
    "slice": (f"%r = stablehlo.slice %0 [2:5] {BY_Y} : ({T7}) -> tensor<3xf32>", "tensor<3xf32>"),
    "gather": (
        "%i = stablehlo.constant dense<[[6],[9]]> : tensor<2x1xi32>\n"
        '%r = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<'
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
        f"slice_sizes = array<i64: 1>}}> : ({T7}, tensor<2x1xi32>) -> tensor<2xf32>",
        "tensor<2xf32>",
    ),
    "sort": (
        '%1 = "stablehlo.sort"(%0) <{dimension = 0 : i64}> ({\n'
        "^bb0(%s: tensor<f32>, %t: tensor<f32>):\n"
        "%c = stablehlo.compare LT, %s, %t : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        f"stablehlo.return %c : tensor<i1>\n}}) {BY_Y} : ({T7}) -> {T7}\n"
        f"%2 = stablehlo.exponential %1 {BY_Y} : {T7}\n"
        f"%r = stablehlo.dot_general %2, %1, contracting_dims = [0] x [0] : ({T7}, {T7}) "
        "-> tensor<f32>",
        "tensor<f32>",
    ),
    "window": (
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        '%r = "stablehlo.reduce_window"(%0, %z) <{window_dimensions = array<i64: 3>, '
        f"padding = dense<1> : tensor<1x2xi64>}}> {BODY} {BY_Y} : ({T7}, tensor<f32>) -> {T7}",
        T7,
    ),
    "convolution": (
        "%k = stablehlo.constant dense<2.0> : tensor<3x1x1xf32>\n"
        f"%1 = stablehlo.broadcast_in_dim %0, dims = [1] : ({T7}) -> tensor<1x7x1xf32>\n"
        "%r = stablehlo.convolution(%1, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], "
        "window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        ": (tensor<1x7x1xf32>, tensor<3x1x1xf32>) -> tensor<1x7x1xf32>",
        "tensor<1x7x1xf32>",
    ),
    "while": (
        "%i = stablehlo.constant dense<0> : tensor<i32>\n"
        "%n = stablehlo.constant dense<3> : tensor<i32>\n"
        "%j = stablehlo.constant dense<1> : tensor<i32>\n"
        f"%1, %2 = stablehlo.while(%u = %0, %k = %i) : {T7}, tensor<i32>\ncond {{\n"
        "%c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        f"stablehlo.return %c : tensor<i1>\n}} do {{\n%v = stablehlo.add %u, %0 {BY_Y} : {T7}\n"
        f"%l = stablehlo.add %k, %j : tensor<i32>\nstablehlo.return %v, %l : {T7}, tensor<i32>\n}}"
        f"\n%r = stablehlo.negate %1 {BY_Y} : {T7}",
        T7,
    ),
    # The reference pads the maximum; beside the sort it keeps its meaning.
    "maximum": (
        "%z = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        f"%n = stablehlo.reshape %0 : ({T7}) -> tensor<7x1xf32>\n"
        f"%1 = stablehlo.reverse %0, dims = [0] {BY_Y} : {T7}\n"
        f"%2 = stablehlo.pad %1, %z, low = [1], high = [0], interior = [0] : ({T7}, tensor<f32>) "
        "-> tensor<8xf32>\n"
        "%r = stablehlo.reduce(%2 init: %z) applies stablehlo.maximum across dimensions = [0] "
        ": (tensor<8xf32>, tensor<f32>) -> tensor<f32>",
        "tensor<f32>",
    ),
}
REFUSED = ["constant", "reshape", "convert", "result only", "while", "maximum"]
DIES = ["slice"]
SHARDED = '{sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}'


@pytest.mark.parametrize("name", TEXTS)
def test_padding(name: str) -> None:
    if reference.IS_NEW and name in LEAVES_CASTS:
        with pytest.raises(reference.RejectedError, match="found unrealized_conversion_cast"):
            reference.run(TEXTS[name], PIPELINE)
        assert "unrealized_conversion_cast" not in ours(TEXTS[name], PIPELINE)
        return
    difference = explain(reference.run(TEXTS[name], PIPELINE), ours(TEXTS[name], PIPELINE))
    assert not difference, f"\n{difference}"


@pytest.mark.skipif(not reference.IS_NEW, reason="jaxlib before 0.12 leaves casts")
@pytest.mark.parametrize("name", sorted(LEAVES_CASTS - {"custom call", "two dims"}))
def test_without_casts_results_are_the_same(name: str) -> None:
    assert_same_results(TEXTS[name])


@pytest.mark.parametrize(
    "name", [name for name in TEXTS if not reference.IS_NEW or name not in LEAVES_CASTS]
)
def test_locations(name: str) -> None:
    text = reference.canonical(TEXTS[name], locations=True)
    theirs = reference.run(text, PIPELINE, locations=True)
    difference = explain(theirs, ours(text, PIPELINE, locations=True))
    assert not difference, f"\n{difference}"


def assert_same_results(text: str) -> str:
    """Pads `text`, checks that it computes the same and that MLIR accepts it, and returns it."""
    module = shardcore.Module.parse(text)
    array = np.arange(7, dtype=np.float32) - 9
    before = module.simulate(array)
    shardcore.PassManager.parse(PIPELINE).run(module)
    for old, new in zip(before, module.simulate(array), strict=True):
        np.testing.assert_array_equal(old, new)
    padded = reference.canonical(str(module))
    assert "unrealized_conversion_cast" not in padded
    return padded


@pytest.mark.parametrize("name", TRUE_SIZE)
def test_padding_changes_no_result(name: str) -> None:
    body, ty = TRUE_SIZE[name]
    text = f"{MESH}func.func @main(%a: {T7}) -> {ty} {{\n{SLICED}{body}\nreturn %r : {ty}\n}}"
    padded = assert_same_results(text)
    assert "tensor<8xf32>" in padded
    if name in DIES:
        with pytest.raises(reference.DiedError):
            reference.run_isolated(text, PIPELINE)
    elif name in REFUSED:
        with pytest.raises(reference.RejectedError):
            reference.run(text, PIPELINE)


@pytest.mark.parametrize(
    ("signature", "what", "slices"),
    [
        # Before the reversal, and at the end.
        (f"(%a: {T7} {SHARDED}) -> {T7}", "argument #0", 2),
        # The negation runs on its true size, as its operand is not sharded.
        (f"(%a: {T7}) -> ({T7} {SHARDED})", "result #0", 1),
    ],
)
def test_uneven_inputs_and_outputs(signature: str, what: str, slices: int) -> None:
    text = (
        f"{MESH}func.func @main{signature} {{\n%0 = stablehlo.negate %a {BY_Y} : {T7}\n"
        f"%1 = stablehlo.reverse %0, dims = [0] {BY_Y} : {T7}\n"
        f"%2 = stablehlo.exponential %1 {BY_Y} : {T7}\nreturn %2 : {T7}\n}}"
    )
    with pytest.raises(reference.RejectedError, match=f"{what} has a non-divisible sharding"):
        reference.run(text, PIPELINE)
    padded = assert_same_results(text)
    exponential = next(line for line in padded.splitlines() if "stablehlo.exponential" in line)
    assert "tensor<8xf32>" in exponential
    assert padded.count("stablehlo.slice") == slices


def test_dynamic_tensors_are_not_padded() -> None:
    ty, sharding = "tensor<?x7xf32>", '<@mesh, [{}, {"y"}]>'
    text = (
        f"{MESH}func.func @main(%a: {ty}) -> {ty} {{\n"
        f'%0 = sdy.all_slice [{{}}, {{"y"}}] %a out_sharding={sharding} : {ty}\n'
        f'%1 = sdy.all_gather [{{}}, {{"y"}}] %0 out_sharding=<@mesh, [{{}}, {{}}]> : {ty}\n'
        f"return %1 : {ty}\n}}"
    )
    with pytest.raises(reference.RejectedError, match="larger than limit"):
        reference.run(text, PIPELINE)
    assert ours(text, PIPELINE) == reference.canonical(text)


def test_padding_that_a_dot_contracts_is_zero() -> None:
    """Shardy pads both operands with what they were sliced from, and adds that up."""
    text = """sdy.mesh @mesh = <["y"=2]>
func.func private @main(
    %a: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
    %b: tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) -> tensor<4x8xf32> {
  %0 = stablehlo.slice %a [0:4, 0:5]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>}
    : (tensor<4x6xf32>) -> tensor<4x5xf32>
  %1 = stablehlo.slice %b [0:5, 0:8]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>}
    : (tensor<6x8xf32>) -> tensor<5x8xf32>
  %2 = stablehlo.dot %0, %1
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"y"}>]>}
    : (tensor<4x5xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
  %3 = sdy.all_reduce {"y"} %2 out_sharding=<@mesh, [{}, {}]> : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}"""
    padded = ours(text, PIPELINE)
    assert "stablehlo.dot %" in padded
    assert "tensor<4x6xf32>, tensor<6x8xf32>" in padded
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-4, 5, shape).astype(np.float32) for shape in ((4, 6), (6, 8))]
    [want] = shardcore.Module.parse(text).simulate(*arrays)
    [found] = shardcore.Module.parse(padded).simulate(*arrays)
    np.testing.assert_array_equal(found, want)
    [wrong] = shardcore.Module.parse(reference.run(text, PIPELINE)).simulate(*arrays)
    assert (wrong != want).any()
