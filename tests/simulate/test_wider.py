"""Floats computed in a wider type than the program's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import shardcore
from shardcore import Module
from shardcore.simulate import TARGETS, Simulator
from shardcore.simulate.registry import arrays

from tests.simulate.check import function

F = "tensor<4xf32>"
B = "tensor<4xbf16>"
THIRDS = np.arange(4) / 3


def run(line: str, result: str, *given: Any, dtype: str | None = "f64") -> np.ndarray:
    """The result of a program of a few lines on ``%x``, ``%y``, computed in ``dtype``."""
    kinds = dict(zip("xy", [F] * len(given), strict=False))
    text = function(line.splitlines(), kinds, {"0": result})
    [found] = Simulator(Module.parse(text), dtype=dtype)(*given)
    return found


def test_sums_are_not_rounded() -> None:
    tiny = np.full(4, 1e-12)
    line = f"%0 = stablehlo.add %x, %y : {F}"
    assert np.array_equal(run(line, F, np.ones(4), tiny), 1 + tiny)
    in_own = run(line, F, np.ones(4, np.float32), tiny.astype(np.float32), dtype=None)
    assert np.array_equal(in_own, np.ones(4))


@pytest.mark.parametrize(
    ("element", "dtype", "computed"),
    [
        ("bf16", "f64", np.float64), ("f32", "f64", np.float64), ("f64", "f64", np.float64),
        ("bf16", "f32", np.float32), ("f8E4M3FN", "f32", np.float32), ("f64", "f32", np.float64),
        ("complex<f32>", "f64", np.complex128), ("complex<f64>", "f32", np.complex128),
        ("complex<f32>", "f32", np.complex64), ("i32", "f64", np.int32), ("i1", "f64", np.bool_),
    ],
)  # fmt: skip
def test_types_of_results(element: str, dtype: str, computed: Any) -> None:
    kind = f"tensor<4x{element}>"
    text = function([f"%0 = stablehlo.add %x, %x : {kind}"], {"x": kind}, {"0": kind})
    module = Module.parse(text)
    own = module.simulate(np.ones(4, shardcore.simulate.dtypes.DTYPES[element]))[0].dtype
    for given in (np.ones(4, own), np.ones(4, computed)):
        assert Simulator(module, dtype=dtype)(given)[0].dtype == computed


def test_constants_keep_their_values() -> None:
    line = "%0 = stablehlo.constant dense<0.1> : tensor<4xbf16>"
    assert np.all(run(line, B) == float(ml_dtypes.bfloat16(0.1)))
    line = "%0 = stablehlo.constant dense<0xFF80> : tensor<4xbf16>"
    assert np.all(run(line, B) == -np.inf)


def test_conversions_to_narrower_floats_do_not_round() -> None:
    line = f"%1 = stablehlo.convert %x : ({F}) -> {B}\n%0 = stablehlo.convert %1 : ({B}) -> {F}"
    assert np.array_equal(run(line, F, THIRDS), THIRDS)


def test_conversions_to_integers_truncate() -> None:
    line = f"%0 = stablehlo.convert %x : ({F}) -> tensor<4xi8>"
    given = np.array([-1.9, 2.999999999, np.nan, 1e9])
    assert run(line, "tensor<4xi8>", given).tolist() == [-1, 2, 0, 127]


def test_bits_are_those_of_the_program_s_own_types() -> None:
    ints = "tensor<4xi32>"
    line = f"%0 = stablehlo.bitcast_convert %x : ({F}) -> {ints}"
    found = run(line, ints, THIRDS)
    assert np.array_equal(found, THIRDS.astype(np.float32).view(np.int32))
    line += f"\n%1 = stablehlo.bitcast_convert %0 : ({ints}) -> {F}"
    back = run(line.replace("%0", "%2").replace("%1 =", "%0 ="), F, THIRDS)
    assert back.dtype == np.float64
    assert np.array_equal(back, THIRDS.astype(np.float32))


def test_precision_is_reduced_once_and_to_less_than_the_own_type_alone() -> None:
    def reduced(layout: str) -> np.ndarray:
        return run(f"%0 = stablehlo.reduce_precision %x, format = {layout} : {F}", F, THIRDS)

    assert np.array_equal(reduced("e8m7"), THIRDS.astype(ml_dtypes.bfloat16).astype(np.float64))
    assert np.array_equal(reduced("e8m23"), THIRDS)
    assert np.array_equal(reduced("e5m23"), THIRDS)
    line = f"%0 = stablehlo.reduce_precision %x, format = e5m23 : {F}"
    assert run(line, F, np.array([1e5, -1e5, 1.0, 1e-9])).tolist() == [np.inf, -np.inf, 1, 0]


def test_the_next_number_is_that_of_the_own_type() -> None:
    found = run(f"%0 = chlo.next_after %x, %y : {F}, {F} -> {F}", F, np.ones(4), np.full(4, 2.0))
    assert np.all(found == np.nextafter(np.float32(1), np.float32(2)))


def test_random_bits_do_not_depend_on_the_type() -> None:
    text = """
    func.func @main(%s: tensor<2xui64>) -> tensor<8xui32> {
      %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY
          : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
      return %1 : tensor<8xui32>
    }"""
    state = np.array([3, 5], np.uint64)
    both = [Simulator(Module.parse(text), dtype=dtype)(state)[0] for dtype in (None, "f64")]
    assert np.array_equal(*both)


def test_targets_of_the_user_s_may_compute_in_the_own_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(TARGETS, "halves", lambda _: arrays(lambda x: np.float32(x / 2)))
    line = f"%0 = stablehlo.custom_call @halves(%x) : ({F}) -> {F}"
    assert run(line, F, THIRDS).dtype == np.float64


def test_programs_of_every_kind_run_in_double_precision() -> None:
    text = """
    func.func @main(%x: tensor<4x4xbf16>, %n: tensor<i32>) -> (tensor<4xbf16>, tensor<4x4xbf16>) {
      %zero = stablehlo.constant dense<0.0> : tensor<bf16>
      %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
          : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
      %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
          : (tensor<4x4xbf16>, tensor<bf16>) -> tensor<4xbf16>
      %2 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
          %c = stablehlo.compare LT, %a, %b, TOTALORDER
              : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }) : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
      return %1, %2 : tensor<4xbf16>, tensor<4x4xbf16>
    }"""
    x = (np.arange(16.0)[::-1] / 7 - 1).reshape(4, 4)
    total, ordered = Simulator(Module.parse(text), dtype="f64")(x, np.int32(0))
    assert np.allclose(total, (x @ x).sum(1), rtol=1e-14)
    assert np.array_equal(ordered, np.sort(x, axis=1))
