"""Control flow, calls and manual computations; devices whose predicates differ."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from shardcore import Module

from tests.simulate import agree, xla
from tests.simulate.check import check, function

COLLATZ = """
func.func @main(%n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.while(%i = %n, %k = %zero) : tensor<i32>, tensor<i32>
  cond {
    %1 = stablehlo.compare GT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.remainder %i, %two : tensor<i32>
    %2 = "stablehlo.case"(%1) ({
      %4 = stablehlo.divide %i, %two : tensor<i32>
      stablehlo.return %4 : tensor<i32>
    }, {
      %4 = stablehlo.multiply %i, %three : tensor<i32>
      %5 = stablehlo.add %4, %one : tensor<i32>
      stablehlo.return %5 : tensor<i32>
    }) : (tensor<i32>) -> tensor<i32>
    %3 = stablehlo.add %k, %one : tensor<i32>
    stablehlo.return %2, %3 : tensor<i32>, tensor<i32>
  }
  return %0#0, %0#1 : tensor<i32>, tensor<i32>
}"""


def test_devices_loop_as_often_as_each_has_to() -> None:
    n = np.array([1, 2, 7, 27, 6, 97, 1, 3], np.int32)
    got = Module.parse(COLLATZ).simulate(n, devices=8)
    for pair in zip(got, xla.run_on_devices(COLLATZ, [n], 8), strict=True):
        agree.assert_same(*pair)
    assert got[1].tolist() == [0, 1, 16, 111, 8, 118, 0, 7]


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 7])
def test_a_case_out_of_range_is_the_last(index: int) -> None:
    check(
        lambda i, x: lax.switch(i, [jnp.sin, lambda x: x * 2, lambda x: x - 1], x),
        np.int32(index),
        np.ones(3, np.float32),
        bound=2,
    )
    body = [
        '%0 = "stablehlo.case"(%i) ({ stablehlo.return %a : tensor<f32> }, '
        "{ stablehlo.return %b : tensor<f32> }) : (tensor<i32>) -> tensor<f32>"
    ]
    arguments = {"i": "tensor<i32>", "a": "tensor<f32>", "b": "tensor<f32>"}
    module = Module.parse(function(body, arguments, {"0": "tensor<f32>"}))
    assert module.simulate(np.int32(index), 3.0, 4.0)[0] == (3 if index == 0 else 4)


def test_loops_branches_and_calls_of_jax() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    def body(carry: Any, row: Any) -> Any:
        carry = lax.cond(jnp.sum(row) > 10, lambda c: c + row, lambda c: c - row, carry)
        return carry, jnp.max(carry)

    check(lambda x: lax.scan(body, x[0] * 0, x), x)
    check(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 2 - i, x), x)
    check(
        lambda x: jax.vmap(lambda r: lax.while_loop(lambda c: c[0] < 20, lambda c: c + 3, r))(x), x
    )
    check(lambda x: jax.jit(lambda y: y @ y.T)(x) + jax.checkpoint(lambda y: y @ y.T)(x), x)


def test_branches_capture_values_of_the_devices_that_take_them() -> None:
    text = """
    func.func @main(%p: tensor<i1>, %x: tensor<2xf32>, %y: tensor<2xf32>)
        -> (tensor<2xf32>, tensor<i32>) {
      %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
      %0:2 = "stablehlo.if"(%p) ({
        %1 = stablehlo.add %x, %c : tensor<2xf32>
        %k = stablehlo.constant dense<5> : tensor<i32>
        stablehlo.return %1, %k : tensor<2xf32>, tensor<i32>
      }, {
        %1 = stablehlo.multiply %y, %x : tensor<2xf32>
        %k = stablehlo.constant dense<6> : tensor<i32>
        stablehlo.return %1, %k : tensor<2xf32>, tensor<i32>
      }) : (tensor<i1>) -> (tensor<2xf32>, tensor<i32>)
      return %0#0, %0#1 : tensor<2xf32>, tensor<i32>
    }"""
    x, y = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([3, 5], np.float32)
    which = np.array([True, False, False, True])
    found, number = Module.parse(text).simulate(which, x, y, devices=4)
    wanted = np.where(which[:, None], x + np.array([1, 2]), x * y)
    assert np.array_equal(found, wanted)
    assert number.tolist() == [5, 6, 6, 5]


MANUAL = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %0:2 = sdy.manual_computation(%a, %b)
      in_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"y"}]>]
      out_shardings=[<@mesh, [{"x"}, {"y"}]>, <@mesh, [{"x"}]>] manual_axes={"x", "y"}
      (%c: tensor<2x2xf32>, %d: tensor<2xf32>) {
    %1 = stablehlo.broadcast_in_dim %d, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
    %2 = stablehlo.multiply %c, %1 : tensor<2x2xf32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across dimensions = [1]
        : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
    %4 = "stablehlo.all_reduce"(%3) <{replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]>
        : tensor<2x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
        use_global_device_ids}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %5 = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    sdy.return %2, %4 : tensor<2x2xf32>, tensor<2xf32>
  } : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4x8xf32>, tensor<4xf32>
}"""


def test_manual_computations_run_on_all_devices_of_their_mesh() -> None:
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    b = np.arange(8, dtype=np.float32)
    module = Module.parse(MANUAL)
    for program in (module, module.propagate().module):
        product, total = program.simulate(a, b)
        assert np.array_equal(product, a * b)
        assert np.array_equal(total, a @ b)


def test_the_rest_of_shardy_changes_no_value() -> None:
    text = """
    sdy.mesh @mesh = <["x"=2, "y"=4]>
    func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
        -> tensor<8x8xf32> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
      return %1 : tensor<8x8xf32>
    }"""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (8, 8)).astype(np.float32) for _ in range(2))
    module = Module.parse(text)
    result = module.propagate()
    for program in (module, result.module, result.with_collectives):
        assert np.array_equal(program.simulate(a, b)[0], a @ b)


@pytest.mark.parametrize("is_reverse", [False, True])
def test_a_scan_of_chlo(is_reverse: bool) -> None:
    text = """
    func.func @main(%x: tensor<4x3xi32>, %c: tensor<3xi32>) -> (tensor<4x3xi32>, tensor<3xi32>) {
      %0:2 = chlo.scan(%x) inits (%c) dimension=0 attributes {is_reverse = REVERSE} {
      ^bb0(%a: tensor<3xi32>, %b: tensor<3xi32>):
        %1 = stablehlo.add %a, %b : tensor<3xi32>
        stablehlo.return %1, %1 : tensor<3xi32>, tensor<3xi32>
      } : (tensor<4x3xi32>, tensor<3xi32>) -> (tensor<4x3xi32>, tensor<3xi32>)
      return %0#0, %0#1 : tensor<4x3xi32>, tensor<3xi32>
    }"""
    x, start = np.arange(12, dtype=np.int32).reshape(4, 3), np.array([5, 0, -5], np.int32)
    module = Module.parse(text.replace("REVERSE", str(is_reverse).lower()))
    sums, last = module.simulate(x, start)
    wanted = (x[::-1] if is_reverse else x).cumsum(axis=0) + start
    assert np.array_equal(sums, wanted[::-1] if is_reverse else wanted)
    assert np.array_equal(last, wanted[-1])


@pytest.mark.parametrize("length", [0, 3])
def test_a_scan_of_no_slices_or_no_inputs(length: int) -> None:
    long, short = f"tensor<{length}x2xi32>", "tensor<2xi32>"
    body = "%2 = stablehlo.add %b, %b : tensor<2xi32>\n stablehlo.return %2, %2"
    text = f"""
    func.func @main(%x: {long}, %c: {short}) -> ({long}, {short}, {long}, {short}) {{
      %0:2 = chlo.scan(%x) inits (%c) dimension=0 {{
      ^bb0(%a: {short}, %b: {short}):
        {body} : {short}, {short}
      }} : ({long}, {short}) -> ({long}, {short})
      %1:2 = chlo.scan() inits (%c) dimension=0 attributes {{scan_dim_size = {length} : i64}} {{
      ^bb0(%b: {short}):
        {body} : {short}, {short}
      }} : ({short}) -> ({long}, {short})
      return %0#0, %0#1, %1#0, %1#1 : {long}, {short}, {long}, {short}
    }}"""
    start = np.array([1, -3], np.int32)
    wanted = start * 2 ** np.arange(1, length + 1, dtype=np.int32)[:, None]
    for got, expected in zip(
        Module.parse(text).simulate(np.zeros((length, 2), np.int32), start),
        [wanted, start * 2**length] * 2,
        strict=True,
    ):
        assert np.array_equal(got, expected)
