"""`sdy-pad-for-divisibility` does what the reference's does, and refuses what it refuses."""

from __future__ import annotations

import pytest
import shardcore

from tests.shardy import reference
from tests.shardy.diff import explain, ours

PIPELINE = "builtin.module(func.func(sdy-pad-for-divisibility))"
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'
BY_Y = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}'
SLICED = '%0 = sdy.all_slice [{"y"}] %a out_sharding=<@mesh, [{"y"}]> : tensor<7xf32>\n'
T7 = "tensor<7xf32>"
ZERO = "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"

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

REFUSED = {
    "constant": (f"%r = stablehlo.constant {BY_Y} dense<1.0> : {T7}", T7, "holds its elements"),
    "reshape": (
        f"%r = stablehlo.reshape %0 : ({T7}) -> tensor<7x1xf32>",
        "tensor<7x1xf32>",
        "not padded alike",
    ),
    "convert": (f"%r = stablehlo.convert %0 : {T7}", T7, "not padded alike"),
    "result only": (f"%r = stablehlo.negate %a {BY_Y} : {T7}", T7, "more than its operands"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_padding(name: str) -> None:
    difference = explain(reference.run(TEXTS[name], PIPELINE), ours(TEXTS[name], PIPELINE))
    assert not difference, f"\n{difference}"


@pytest.mark.parametrize("name", TEXTS)
def test_locations(name: str) -> None:
    text = reference.canonical(TEXTS[name], locations=True)
    theirs = reference.run(text, PIPELINE, locations=True)
    difference = explain(theirs, ours(text, PIPELINE, locations=True))
    assert not difference, f"\n{difference}"


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    body, ty, why = REFUSED[name]
    text = f"{MESH}func.func @main(%a: {T7}) -> {ty} {{\n{SLICED}{body}\nreturn %r : {ty}\n}}"
    with pytest.raises(reference.RejectedError):
        reference.run(text, PIPELINE)
    with pytest.raises(shardcore.ShardcoreError, match=why):
        ours(text, PIPELINE)


def test_slices_that_move_elements_are_refused() -> None:
    body = f"%r = stablehlo.slice %0 [2:5] {BY_Y} : ({T7}) -> tensor<3xf32>"
    signature = f"func.func @main(%a: {T7}) -> tensor<3xf32>"
    text = f"{MESH}{signature} {{\n{SLICED}{body}\nreturn %r : tensor<3xf32>\n}}"
    with pytest.raises(reference.DiedError):
        reference.run_isolated(text, PIPELINE)
    with pytest.raises(shardcore.ShardcoreError, match="moves elements between shards"):
        ours(text, PIPELINE)


@pytest.mark.parametrize(
    ("signature", "what"),
    [
        (f'(%a: {T7} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> {T7}', "argument #0"),
        (f'(%a: {T7}) -> ({T7} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}})', "result #0"),
    ],
)
def test_uneven_inputs_and_outputs(signature: str, what: str) -> None:
    text = f"{MESH}func.func @main{signature} {{\nreturn %a : {T7}\n}}"
    with pytest.raises(reference.RejectedError, match=f"{what} has a non-divisible sharding"):
        reference.run(text, PIPELINE)
    with pytest.raises(shardcore.ShardcoreError, match=f"{what} has a non-divisible sharding"):
        ours(text, PIPELINE)
