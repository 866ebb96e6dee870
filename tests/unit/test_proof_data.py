"""The data of proofs: a mistake in one place of the program of one device changes a result."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import shardcore
from shardcore import Module, Partitioned
from shardcore.partition import data
from shardcore.partition.uses import Use, uses

MESH = 'sdy.mesh @mesh = <["x"=4]>\n'
SPLIT = 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>'


def fold(op: str, element: str, initial: str, length: int = 64) -> str:
    """A reduction along a sharded dim."""
    return f"""{MESH}func.func @main(%a: tensor<{length}x8x{element}> {{{SPLIT}}})
    -> tensor<8x{element}> {{
  %c = stablehlo.constant dense<{initial}> : tensor<{element}>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.{op} across dimensions = [0]
      : (tensor<{length}x8x{element}>, tensor<{element}>) -> tensor<8x{element}>
  return %0 : tensor<8x{element}>
}}"""


def chain(element: str) -> str:
    """Rows of a sharded dim that are multiplied with each other one by one."""
    kind, row = f"tensor<16x8x{element}>", f"tensor<1x8x{element}>"
    lines = [f"%s0 = stablehlo.slice %a [0:1, 0:8] : ({kind}) -> {row}"]
    for at in range(1, 16):
        lines += [
            f"%r{at} = stablehlo.slice %a [{at}:{at + 1}, 0:8] : ({kind}) -> {row}",
            f"%s{at} = stablehlo.multiply %s{at - 1}, %r{at} : {row}",
        ]
    body = "\n  ".join(lines)
    return f"""{MESH}func.func @main(%a: {kind} {{{SPLIT}}}) -> {row} {{
  {body}
  return %s15 : {row}
}}"""


LOOP = f"""{MESH}func.func @main(%a: tensor<16x8xi32> {{{SPLIT}}}) -> tensor<1x8xi32> {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<16> : tensor<i32>
  %step = stablehlo.constant dense<1> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<1x8xi32>
  %r:2 = stablehlo.while(%i = %z, %p = %one) : tensor<i32>, tensor<1x8xi32>
  cond {{
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %x = stablehlo.dynamic_slice %a, %i, %z, sizes = [1, 8]
        : (tensor<16x8xi32>, tensor<i32>, tensor<i32>) -> tensor<1x8xi32>
    %q = stablehlo.multiply %p, %x : tensor<1x8xi32>
    %j = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %j, %q : tensor<i32>, tensor<1x8xi32>
  }}
  return %r#1 : tensor<1x8xi32>
}}"""

TAKE = f"""{MESH}func.func @main(%a: tensor<64x8xf32> {{{SPLIT}}}, %i: tensor<32x1xi32>)
    -> tensor<32x8xf32> {{
  %0 = "stablehlo.gather"(%a, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
      slice_sizes = array<i64: 1, 8>}}> : (tensor<64x8xf32>, tensor<32x1xi32>) -> tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}}"""

DOT = f"""{MESH}func.func @main(%a: tensor<8x8xi8>, %b: tensor<64x8xi8> {{{SPLIT}}},
    %c: tensor<8x64xi8>) -> tensor<8x8xi8> {{
  %0 = stablehlo.dot_general %c, %b, contracting_dims = [1] x [0]
      : (tensor<8x64xi8>, tensor<64x8xi8>) -> tensor<8x8xi8>
  %1 = stablehlo.multiply %0, %a : tensor<8x8xi8>
  return %1 : tensor<8x8xi8>
}}"""


def neutral(local: str, element: str, value: str, op: str = "all_reduce") -> str:
    """``local`` in which device 2 gives ``value`` instead of its term to the first ``op``."""
    found = next(each for each in Module.parse(local).ops() if each.name == f"stablehlo.{op}")
    [term] = found.operands
    name, shape, mask = term.name, term.type, term.type.replace(f"{element}>", "i1>")
    start = local.rindex("\n", 0, local.index(f'"stablehlo.{op}"({name})')) + 1
    added = f"""  %own = stablehlo.partition_id : tensor<ui32>
  %two = stablehlo.constant dense<2> : tensor<ui32>
  %is = stablehlo.compare EQ, %own, %two : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %all = stablehlo.broadcast_in_dim %is, dims = [] : (tensor<i1>) -> {mask}
  %nothing = stablehlo.constant dense<{value}> : {shape}
  %broken = stablehlo.select %all, %nothing, {name} : {mask}, {shape}
"""
    rest = local[start:].replace(f"({name})", "(%broken)", 1)
    return local[:start] + added + rest


@dataclass(frozen=True)
class Bug:
    """A program, and what is wrong in what devices run."""

    text: str
    broken: Callable[[str], str]


def of_fold(op: str, element: str, initial: str, length: int = 64) -> Bug:
    """A reduction that leaves out the shard of one device."""
    return Bug(fold(op, element, initial, length), lambda text: neutral(text, element, initial))


BUGS = {
    **{
        f"product-{element}": of_fold("multiply", element, "1")
        for element in ("i4", "ui4", "i8", "ui8", "i16", "i32", "ui32", "i64")
    },
    **{f"product-{element}": of_fold("multiply", element, "1.0") for element in ("f32", "bf16")},
    "long-product": of_fold("multiply", "f32", "1.0", 1024),
    "all": of_fold("and", "i1", "true"),
    "product-i1": of_fold("multiply", "i1", "true"),
    "least-i1": of_fold("minimum", "i1", "true"),
    "any": of_fold("or", "i1", "false"),
    "take": Bug(TAKE, lambda text: neutral(text, "f32", "7.0", "all_to_all")),
    "chain": Bug(chain("i32"), lambda text: one_row_twice(text)),
    "loop": Bug(LOOP, lambda text: text.replace("dense<16>", "dense<15>")),
}  # fmt: skip
"""Mistakes that numbers from -3 to 3, alike for all arguments, seldom show."""


def one_row_twice(text: str) -> str:
    """The local program with another row of the last factor."""
    factors = re.findall(r"stablehlo\.multiply (%\w+), (%\w+)", text)
    return text.replace(
        f"{factors[-1][0]}, {factors[-1][1]}", f"{factors[-1][0]}, {factors[-2][1]}"
    )


def with_module(good: Partitioned, text: str) -> Partitioned:
    """``good`` with another program of one device."""
    return Partitioned(
        good.source, Module.parse(text), good.policy, good.num_devices, good.origin, good.result
    )


@pytest.mark.parametrize("name", BUGS)
def test_a_mistake_is_found_by_the_data(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = BUGS[name]
    good = Module.parse(bug.text).propagate().partition()
    broken = bug.broken(str(good.module))
    assert broken != str(good.module)
    bad = with_module(good, broken)
    seeds = range(4)
    assert all(shardcore.prove(good, seed=seed).is_proven for seed in seeds)
    missed = [seed for seed in seeds if shardcore.prove(bad, seed=seed).is_proven]
    assert not missed
    monkeypatch.setattr(data, "uses", lambda _: [])
    assert any(shardcore.prove(bad, seed=seed).is_proven for seed in seeds)


def test_a_shard_that_is_left_out_of_a_sum_of_products_is_found() -> None:
    good = Module.parse(DOT).propagate().partition()
    bad = with_module(good, neutral(str(good.module), "i8", "0"))
    for seed in range(4):
        assert shardcore.prove(good, seed=seed).is_proven
        proof = shardcore.prove(bad, seed=seed)
        assert not proof.is_proven
        assert proof.differences[0].rounding == 0


def test_data_depend_on_the_seed_alone() -> None:
    module = Module.parse(LOOP)
    ports = module.arguments()

    def drawn(seed: int) -> list[np.ndarray]:
        found = data.rounds(module, ports, np.random.default_rng(seed))
        return [array for arrays in found for array in arrays]

    assert all(map(np.array_equal, drawn(3), drawn(3)))
    assert not all(map(np.array_equal, drawn(3), drawn(4)))


def test_odd_numbers_have_no_product_of_zero() -> None:
    random = np.random.default_rng(0)
    for element in ("i2", "ui2", "i4", "ui4", "i8", "ui8", "i32", "ui64"):
        module = Module.parse(fold("multiply", element, "1", 512))
        _, [units] = data.rounds(module, module.arguments(), random)
        assert set(np.unique(units.astype(np.int64)) % 2) == {1}
        assert module.simulate(units)[0].astype(np.int64).all()


@pytest.mark.parametrize("element", ["i2", "ui4", "i4", "i8", "f4E2M1FN", "f8E8M0FNU", "i1"])
def test_programs_of_narrow_types_with_padding_are_proven(element: str) -> None:
    kind = f"tensor<10x8x{element}>"
    good = (
        Module.parse(f"""{MESH}func.func @main(%a: {kind} {{{SPLIT}}}) -> {kind} {{
  %0 = stablehlo.multiply %a, %a : {kind}
  return %0 : {kind}
}}""")
        .propagate()
        .partition()
    )
    for dtype in (None, "f32", "f64"):
        assert shardcore.prove(good, dtype=dtype).is_proven
    [numbers] = next(data.rounds(good.source, good.arguments, np.random.default_rng(0)))
    assert np.isfinite(numbers.astype(np.float64)).all()


def test_indices_are_in_range_and_out_of_it() -> None:
    module = Module.parse(
        TAKE.replace("tensor<32x1xi32>", "tensor<512x1xi32>").replace("32x8", "512x8")
    )
    [[_, indices]] = data.rounds(module, module.arguments(), np.random.default_rng(0))
    assert {-1, 64} <= set(indices.ravel().tolist())
    inside = indices[(indices >= 0) & (indices < 64)]
    assert len(np.unique(inside)) > 48
    assert len(inside) > 400


USES = {
    "a loop's bound is no index, however often it is one": (
        """func.func @main(%n: tensor<i32>, %a: tensor<64xf32>) -> tensor<1xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r = stablehlo.while(%i = %z) : tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
  %0 = stablehlo.dynamic_slice %a, %n, sizes = [1]
      : (tensor<64xf32>, tensor<i32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}""",
        [Use(index_of=64, is_bound=True), Use()],
    ),
    "calls and branches are followed": (
        """func.func @main(%p: tensor<i1>, %n: tensor<i32>, %a: tensor<64xf32>) -> tensor<1xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = func.call @at(%a, %n) : (tensor<64xf32>, tensor<i32>) -> tensor<1xf32>
    stablehlo.return %1 : tensor<1xf32>
  }, {
    %1 = stablehlo.slice %a [0:1] : (tensor<64xf32>) -> tensor<1xf32>
    stablehlo.return %1 : tensor<1xf32>
  }) : (tensor<i1>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
func.func private @at(%a: tensor<64xf32>, %n: tensor<i32>) -> tensor<1xf32> {
  %0 = stablehlo.dynamic_slice %a, %n, sizes = [1]
      : (tensor<64xf32>, tensor<i32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}""",
        [Use(), Use(index_of=64), Use()],
    ),
    "booleans that are reduced": (
        """func.func @main(%a: tensor<64x8xi1>, %b: tensor<64x8xi1>) -> (tensor<8xi1>, tensor<i1>) {
  %t = stablehlo.constant dense<true> : tensor<i1>
  %f = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.reduce(%a init: %t) applies stablehlo.and across dimensions = [0]
      : (tensor<64x8xi1>, tensor<i1>) -> tensor<8xi1>
  %1 = stablehlo.reduce(%b init: %f) applies stablehlo.or across dimensions = [0, 1]
      : (tensor<64x8xi1>, tensor<i1>) -> tensor<i1>
  return %0, %1 : tensor<8xi1>, tensor<i1>
}""",
        [Use(all_of=64, all_results=8), Use(any_of=512, any_results=1)],
    ),
    "divisors and factors": (
        """func.func @main(%a: tensor<8xi32>, %b: tensor<8xi32>, %c: tensor<8xi32>,
    %d: tensor<8xf32>) -> (tensor<8xi32>, tensor<8xf32>) {
  %0 = stablehlo.multiply %a, %b : tensor<8xi32>
  %1 = stablehlo.divide %0, %c : tensor<8xi32>
  %2 = stablehlo.divide %d, %d : tensor<8xf32>
  return %1, %2 : tensor<8xi32>, tensor<8xf32>
}""",
        [Use(is_factor=True), Use(is_factor=True), Use(is_divisor=True), Use(is_divisor=True)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_uses_of_arguments(name: str) -> None:
    text, expected = USES[name]
    assert uses(Module.parse(text)) == expected


def test_divisors_are_not_zero() -> None:
    module = Module.parse(USES["divisors and factors"][0].replace("tensor<8x", "tensor<512x"))
    for _, _, integers, floats in data.rounds(module, module.arguments(), np.random.default_rng(0)):
        assert np.all(integers != 0)
        assert np.all(floats != 0)
