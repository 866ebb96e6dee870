"""Hints of diagnostics: edits that were tried, with what they change."""

from __future__ import annotations

import re

import pytest
from shardcore import Diagnostic, Module, Result
from shardcore.diagnose import hints
from shardcore.units import parse_bytes

from tests.unit.texts import sharded

MESH = 'sdy.mesh @mesh = <["data"=2, "model"=4]>\n'
BIG = "tensor<8192x8192xf32>"


def result(text: str) -> Result:
    return Module.parse(MESH + text).propagate()


def of(found: Result, code: str) -> list[Diagnostic]:
    return [each for each in found.diagnostics() if each.code == code]


_EDIT = re.compile(r"annotate (?P<target>.+?) with (?P<sharding>\[.*\]): (?P<effect>.*)")
_PEAK = re.compile(r"the peak gets (\S+ \S+) (lower|higher)")


def check(found: Result, hint: str | None, chip: str = "tpu-v5p") -> dict[str, str]:
    """Make the edit that ``hint`` names, and compare what it changes with what the hint says."""
    match = _EDIT.match(hint or "")
    assert match, hint
    session = found._given().session()
    before = session.cost(chip)
    session.set(match["target"], match["sharding"])
    after = session.cost(chip)
    step = after.step_seconds / before.step_seconds if before.step_seconds else 1.0
    assert step * after.peak_bytes / before.peak_bytes < 1
    change = after.peak_bytes - before.peak_bytes
    peak = _PEAK.search(match["effect"])
    if peak is None:
        assert abs(change) <= before.peak_bytes / 1000
    else:
        assert (change < 0) == (peak[2] == "lower")
        assert abs(change) == pytest.approx(parse_bytes(peak[1].replace(" ", "")), rel=0.06)
    return match.groupdict()


CACHE = "tensor<32x2048x16x128xbf16>"
UPDATED = f"""func.func @main(%cache: {CACHE} {sharded("", "", "", "")} loc("cache"),
    %k: tensor<32x1x16x128xbf16> {sharded("data", "", "model", "")}, %at: tensor<i32>)
    -> ({CACHE} {sharded("data", "", "model", "")}) {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %cache, %k, %z, %at, %z, %z : ({CACHE},
    tensor<32x1x16x128xbf16>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> {CACHE}
  return %0 : {CACHE}
}}"""


def test_the_layout_of_what_it_becomes_is_advised() -> None:
    """A cache over its largest dim would be moved in each step; its next state says how it is."""
    found = result(UPDATED)
    [each] = of(found, "large-replicated")
    assert check(found, each.hint)["sharding"] == '[{"data"}, {}, {"model"}, {}]'


def test_no_layout_is_advised_where_none_helps() -> None:
    """All of a sharded tensor is needed whole, in each row of a product over both its dims."""
    text = f"""func.func @main(%w: {BIG} {sharded("", "")}, %x: tensor<64x8192xf32>
      {sharded("", "")}) -> (tensor<64x8192xf32> {sharded("data", "")}) {{
    %0 = stablehlo.custom_call @kernel(%w) : ({BIG}) -> {BIG}
    %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0]
      : (tensor<64x8192xf32>, {BIG}) -> tensor<64x8192xf32>
    return %1 : tensor<64x8192xf32>
  }}"""
    [each] = of(result(text), "large-replicated")
    assert each.hint == "no annotation of %w that was tried makes the step or the peak smaller"


def test_dims_that_no_axis_divides() -> None:
    odd = "tensor<8191x8191xf32>"
    text = f"""func.func @main(%w: {odd},
      %x: tensor<8x8xf32> {sharded("data", "model")}) -> {odd} {{
    return %w : {odd}
  }}"""
    [each, *_] = of(result(text), "large-replicated")
    assert "no axis of the mesh divides a dim of %w" in str(each.hint)


def test_large_programs_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "MOST_OPS_TRIED", 0)
    [each] = of(result(UPDATED), "large-replicated")
    assert each.hint == ("compare what annotations of cache lead to: shardcore sweep FILE --set")


W = "tensor<16x4096x4096xf32>"
LAYER = "tensor<1x4096x4096xf32>"


def loop(returned: str, results: str) -> str:
    """Gradients of the layers of ``w``, computed one by one: each is summed over ``data``."""
    return f"""func.func @main(%w: {W} {sharded("", "data", "model")} loc("params['w']"),
      %x: tensor<8192x4096xf32> {sharded("data", "")},
      %y: tensor<8192x4096xf32> {sharded("data", "model")}) -> {results} {{
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<16> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : {W}
    %0:2 = stablehlo.while(%i = %zero, %g = %none) : tensor<i32>, {W}
    cond {{
      %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }} do {{
      %1 = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0]
        : (tensor<8192x4096xf32>, tensor<8192x4096xf32>) -> tensor<4096x4096xf32>
      %2 = stablehlo.reshape %1 : (tensor<4096x4096xf32>) -> {LAYER}
      %3 = stablehlo.dynamic_update_slice %g, %2, %i, %zero, %zero
        : ({W}, {LAYER}, tensor<i32>, tensor<i32>, tensor<i32>) -> {W}
      %4 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %4, %3 : tensor<i32>, {W}
    }}
    {returned}
  }}"""


def test_a_gradient_lacks_an_axis_of_its_parameter() -> None:
    found = result(loop(f"return %0#1 : {W}", W))
    [each] = of(found, "lacks-axis")
    assert each.message == (
        "result 0 is not sharded over \"data\" as params['w'] of the same shape is: a device holds "
        "256.0 MiB of it, and 128.0 MiB of params['w']"
    )
    assert check(found, each.hint)["sharding"] == '[{}, {"data"}, {"model"}]'
    session = found._given().session()
    session.set("result 0", '[{}, {"data"}, {"model"}]')
    assert of(session.result, "lacks-axis") == []


def test_the_gradient_of_a_loop_is_reported_where_it_is_used_inside() -> None:
    used = f"""%5 = stablehlo.reduce(%0#1 init: %f) applies stablehlo.maximum across
      dimensions = [0, 1, 2] : ({W}, tensor<f32>) -> tensor<f32>
    return %5 : tensor<f32>"""
    text = loop(used, "tensor<f32>").replace(
        "%zero = ", "%f = stablehlo.constant dense<0.0> : tensor<f32>\n%zero = ", 1
    )
    found = result(text)
    [each] = of(found, "lacks-axis")
    assert each.value == "%0#1"
    check(found, each.hint)


def test_the_state_of_an_optimizer_lacks_an_axis() -> None:
    text = f"""func.func @main(%w: {BIG} {sharded("data", "model")} loc("params['w']"),
      %m: {BIG} {sharded("", "model")} loc("opt[0].mu['w']"),
      %n: {BIG} {sharded("", "model")} loc("other")) -> ({BIG}, {BIG} {sharded("", "model")}) {{
    %0 = stablehlo.add %w, %m : {BIG}
    return %0, %n : {BIG}, {BIG}
  }}"""
    found = result(text)
    [each] = of(found, "lacks-axis")
    assert each.value == "opt[0].mu['w']"
    assert check(found, each.hint)["sharding"] == '[{"data"}, {"model"}]'


def test_values_inserted_by_propagation_are_not_named() -> None:
    """A constant that is replicated for one use and sharded for another is copied."""
    text = f"""func.func @main(%x: {BIG} {sharded("data", "model")}) -> ({BIG} {sharded("", "")}) {{
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {BIG}
    %1 = stablehlo.add %x, %0 : {BIG}
    %2 = stablehlo.custom_call @kernel(%0) : ({BIG}) -> {BIG}
    %3 = stablehlo.add %2, %1 : {BIG}
    return %3 : {BIG}
  }}"""
    assert not any("%shc" in f"{each.message} {each.hint}" for each in result(text).diagnostics())


def test_an_op_computed_whole_is_not_moved_to_its_argument() -> None:
    """To replicate the argument removes the gather, and everyone who makes it pays for that."""
    wide = "tensor<8192x8192xcomplex<f32>>"
    text = f"""func.func @main(%x: {wide} {sharded("model", "")}) -> {wide} {{
    %0 = stablehlo.fft %x, type = FFT, length = [8192, 8192] : ({wide}) -> {wide}
    return %0 : {wide}
  }}"""
    [each] = of(result(text), "computed-whole")
    assert "the dims that are not transformed" in str(each.hint)


def test_a_layer_that_a_loop_takes_is_sharded_otherwise() -> None:
    text = f"""func.func @main(%w: {W} {sharded("model", "", "")}, %i: tensor<i32>) -> {LAYER} {{
    %z = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %w, %i, %z, %z, sizes = [1, 4096, 4096]
      : ({W}, tensor<i32>, tensor<i32>, tensor<i32>) -> {LAYER}
    return %0 : {LAYER}
  }}"""
    found = result(text)
    [each] = of(found, "computed-whole")
    assert '{"model"}' in check(found, each.hint)["sharding"]
