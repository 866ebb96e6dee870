"""What a proof says of programs whose results differ: by rounding, or by a mistake."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import shardcore
from shardcore import Module, Partitioned, ProgramTooLargeError, SimulationError
from shardcore.cli import main
from shardcore.partition import comparison
from shardcore.simulate import PREPARERS, Simulator, control, memory
from shardcore.simulate.order import Order
from shardcore.simulate.run import Run
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array

MIXED = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %w: tensor<256x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<64x256xf32> {
  %0 = stablehlo.convert %w : (tensor<256x256xf32>) -> tensor<256x256xbf16>
  %1 = stablehlo.convert %x : (tensor<64x256xf32>) -> tensor<64x256xbf16>
  %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0]
      : (tensor<64x256xbf16>, tensor<256x256xbf16>) -> tensor<64x256xbf16>
  %3 = stablehlo.tanh %2 : tensor<64x256xbf16>
  %4 = stablehlo.dot_general %3, %0, contracting_dims = [1] x [0]
      : (tensor<64x256xbf16>, tensor<256x256xbf16>) -> tensor<64x256xbf16>
  %5 = stablehlo.convert %4 : (tensor<64x256xbf16>) -> tensor<64x256xf32>
  %6 = stablehlo.sine %5 : tensor<64x256xf32>
  return %6 : tensor<64x256xf32>
}
"""
"""Floats are rounded to eight bits on the way, and arguments and results are not."""


def with_local(good: Partitioned, old: str, new: str) -> Partitioned:
    """``good`` with another program of one device."""
    text = str(good.module)
    assert old in text
    module = Module.parse(text.replace(old, new, 1))
    return Partitioned(good.source, module, good.policy, good.num_devices, good.origin, good.result)


def partitioned(text: str) -> Partitioned:
    return Module.parse(text).propagate().partition()


def test_rounding_to_narrow_types_on_the_way_is_told_from_mistakes() -> None:
    proof = shardcore.prove(partitioned(MIXED))
    assert proof.verdict == "equal within reordering"
    assert proof.is_proven
    [row] = proof.reordered
    assert 1e-3 < row.largest <= 8 * row.reordering
    assert "within what reordering does" in str(proof)
    assert proof.record()["verdict"] == proof.verdict
    assert shardcore.prove(partitioned(MIXED), dtype="f64").is_proven
    strict = shardcore.prove(partitioned(MIXED), tolerance=1e-5)
    assert strict.verdict == "wrong"


def test_equal_is_bit_for_bit() -> None:
    exact = MIXED.replace("stablehlo.sine %5", "stablehlo.negate %5").replace(
        "stablehlo.tanh", "stablehlo.sign"
    )
    proof = shardcore.prove(
        partitioned(exact.replace("64x256", "8x16").replace("256x256", "16x16"))
    )
    assert (proof.verdict, proof.tolerance, proof.reordered) == ("equal", 0.0, ())
    assert "bit for bit" in str(proof)


def go_wrong(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let devices compute ops called ``name`` wrongly, and the global program rightly."""
    prepare = PREPARERS[name]

    def prepared(site: Site) -> Kernel:
        kernel = prepare(site)

        def wrong(run: Run, *values: Array) -> Array:
            found = kernel(run, *values)
            return found if run.grid.partitions == 1 else (found * 0.5).astype(found.dtype)

        return wrong

    monkeypatch.setitem(PREPARERS, name, prepared)


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("stablehlo.all_reduce", "%4"),
        ("stablehlo.reduce_scatter", "%2"),
        ("stablehlo.dot_general", "%2"),
        ("stablehlo.tanh", "%3"),
        ("stablehlo.sine", "%6"),
    ],
)
def test_a_mistake_is_wrong_and_its_op_named(
    op: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = partitioned(MIXED)
    go_wrong(monkeypatch, op)
    proof = shardcore.prove(good)
    assert proof.verdict == "wrong"
    assert proof.first is not None
    assert proof.first.result == name
    assert f"the first op that differs: {name} (" in str(proof)
    assert proof.record()["first"]["name"] == proof.first.name


LOOP = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %w: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<8x64xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
        : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %t = stablehlo.tanh %d : tensor<8x64xf32>
    stablehlo.return %j, %t : tensor<i32>, tensor<8x64xf32>
  }
  return %0#1 : tensor<8x64xf32>
}
"""


def test_the_op_in_a_loop_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shardcore.prove(partitioned(LOOP)).is_proven
    go_wrong(monkeypatch, "stablehlo.tanh")
    proof = shardcore.prove(partitioned(LOOP))
    assert proof.first is not None
    assert proof.first.name == "stablehlo.tanh"


@pytest.mark.parametrize(
    ("op", "other", "name"),
    [
        ("stablehlo.tanh", "stablehlo.sine", "%3"),
        ("stablehlo.sine", "stablehlo.cosine", "%6"),
        ("stablehlo.add", "stablehlo.subtract", "%2"),
    ],
)
def test_the_op_is_named_in_a_program_that_was_printed_and_read(
    op: str, other: str, name: str
) -> None:
    proof = shardcore.prove(with_local(partitioned(MIXED), op, other))
    assert proof.verdict == "wrong"
    assert proof.first is not None
    assert proof.first.result == name
    assert np.isfinite(proof.first.largest)


def test_values_that_other_tools_numbered_anew_are_not_taken_for_others() -> None:
    good = partitioned(MIXED)
    text = str(good.module)
    names = {}
    for found in re.findall(r"%(?!arg|x\b|w\b)\w+", text):
        names.setdefault(found, f"%{len(names)}")
    numbered = re.sub(r"%(?!arg|x\b|w\b)\w+", lambda each: names[each[0]], text)
    tanh = next(line for line in numbered.splitlines() if "stablehlo.tanh" in line)
    line = tanh.replace("tanh", "negate")
    proof = shardcore.prove(with_local(with_local(good, text, numbered), tanh, line))
    assert proof.verdict == "wrong"
    # Of the kinds of the mistake there are not as many in both programs: the next op is named.
    assert proof.first is not None
    assert proof.first.result == "%4"


def test_what_little_can_be_said_of_is_decided_in_double_precision() -> None:
    """Sines of large sums in eight bits are noise, which a mistake would not change."""
    noise = MIXED.replace(
        "%6 = stablehlo.sine %5 : tensor<64x256xf32>",
        "%k = stablehlo.constant dense<1.0e3> : tensor<64x256xf32>\n"
        "  %l = stablehlo.multiply %5, %k : tensor<64x256xf32>\n"
        "  %6 = stablehlo.sine %l : tensor<64x256xf32>",
    )
    good = partitioned(noise)
    proof = shardcore.prove(good)
    assert (proof.verdict, proof.in_double) == ("equal within reordering", True)
    bad = shardcore.prove(with_local(good, "stablehlo.sine", "stablehlo.cosine"))
    assert (bad.verdict, bad.in_double) == ("wrong", False)


def test_sums_in_another_order() -> None:
    text = """
func.func @main(%x: tensor<8x1024xbf16>, %i: tensor<1024x1xi32>)
    -> (tensor<8xbf16>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<8x1024xbf16>, tensor<bf16>) -> tensor<8xbf16>
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %r = stablehlo.slice %x [0:1, 0:1024] : (tensor<8x1024xbf16>) -> tensor<1x1024xbf16>
  %s = stablehlo.reshape %r : (tensor<1x1024xbf16>) -> tensor<1024xbf16>
  %u = stablehlo.convert %s : (tensor<1024xbf16>) -> tensor<1024xf32>
  %v = stablehlo.exponential %u : tensor<1024xf32>
  %1 = "stablehlo.scatter"(%z, %i, %v) <{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4xf32>, tensor<1024x1xi32>, tensor<1024xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<8xbf16>, tensor<4xf32>
}"""
    module = Module.parse(text)
    random = np.random.default_rng(0)
    x = random.normal(size=(8, 1024)).astype(np.float32)
    i = random.integers(0, 4, (1024, 1)).astype(np.int32)
    plain = Simulator(module)
    sums, scattered = plain(_narrow(x), i)
    for order in (Order(4), Order(4, True)):
        others, moved = Simulator(module, order=order)(_narrow(x), i)
        assert 0 < np.abs(others.astype(float) - sums.astype(float)).max() < 1
        assert np.allclose(moved, scattered, rtol=1e-5)
        assert (moved != scattered).any()
    assert [s.start for s in Order(4, True).slices(6)] == [0, 1, 2, 3]
    assert [(s.start, s.stop) for s in Order(4).slices(6)] == [(0, 1), (1, 3), (3, 4), (4, 6)]
    assert Order(4).slices(0) == [slice(0, 0)]


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), float("inf")])
def test_a_tolerance_that_would_allow_everything_is_refused(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance is a number of at least 0"):
        shardcore.prove(partitioned(MIXED), tolerance=tolerance)


def test_tokens_are_no_results_to_compare() -> None:
    token = MIXED.replace("sine %5", "negate %5").replace(
        "-> tensor<64x256xf32> {", "-> (tensor<64x256xf32>, !stablehlo.token) {"
    )
    token = token.replace("%w: tensor", "%t: !stablehlo.token, %w: tensor").replace(
        "return %6 : tensor<64x256xf32>", "return %6, %t : tensor<64x256xf32>, !stablehlo.token"
    )
    good = partitioned(token)
    proof = shardcore.prove(good)
    assert (proof.verdict, proof.elements) == ("equal within reordering", 64 * 256)
    assert not shardcore.prove(with_local(good, "stablehlo.tanh", "stablehlo.sine")).is_proven


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_windows_are_reduced_without_an_array_of_their_elements(dtype: str) -> None:
    length = 16384
    text = f"""
func.func @main(%x: tensor<{length}x{dtype}>) -> tensor<{length}x{dtype}> {{
  %init = stablehlo.constant dense<-1.0> : tensor<{dtype}>
  %1 = "stablehlo.reduce_window"(%x, %init) <{{window_dimensions = array<i64: {length}>,
      padding = dense<[[{length - 1}, 0]]> : tensor<1x2xi64>}}> ({{
  ^bb0(%a: tensor<{dtype}>, %b: tensor<{dtype}>):
    %2 = stablehlo.maximum %a, %b : tensor<{dtype}>
    stablehlo.return %2 : tensor<{dtype}>
  }}) : (tensor<{length}x{dtype}>, tensor<{dtype}>) -> tensor<{length}x{dtype}>
  return %1 : tensor<{length}x{dtype}>
}}"""
    x = -np.arange(length, dtype=np.float32) % 8 - 7
    x[:2] = -0.0, 0.0
    run = Simulator(Module.parse(text))
    given = _narrow(x) if dtype == "bf16" else x
    run(given)
    tracemalloc.start()
    [found] = run(given)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # An array of them would have a byte for each at least.
    assert peak < 2**28
    assert np.array_equal(found.astype(np.float32), np.maximum.accumulate(x))
    assert np.signbit(found).tolist() == [True] + [False] * (length - 1)


@pytest.mark.parametrize("op", ["stablehlo.multiply", "chlo.hypot"])
def test_products_and_other_reductions_are_rounded_in_other_orders_too(op: str) -> None:
    body = {
        "stablehlo.multiply": "%r = stablehlo.multiply %a, %b : tensor<f16>",
        "chlo.hypot": "%p = stablehlo.multiply %a, %a : tensor<f16>\n"
        "%q = stablehlo.multiply %b, %b : tensor<f16>\n"
        "%s = stablehlo.add %p, %q : tensor<f16>\n"
        "%r = stablehlo.sqrt %s : tensor<f16>",
    }[op]
    text = f"""
func.func @main(%x: tensor<64x32xf16>) -> tensor<64xf16> {{
  %one = stablehlo.constant dense<1.0> : tensor<f16>
  %0 = "stablehlo.reduce"(%x, %one) <{{dimensions = array<i64: 1>}}> ({{
  ^bb0(%a: tensor<f16>, %b: tensor<f16>):
    {body}
    stablehlo.return %r : tensor<f16>
  }}) : (tensor<64x32xf16>, tensor<f16>) -> tensor<64xf16>
  return %0 : tensor<64xf16>
}}"""
    x = np.random.default_rng(0).uniform(0.9, 1.1, (64, 32)).astype(np.float16)
    plain = Simulator(Module.parse(text))(x)[0].astype(float)
    for order in (Order(4), Order(4, True)):
        other = Simulator(Module.parse(text), order=order)(x)[0].astype(float)
        assert (other != plain).any()
        assert np.allclose(other, plain, rtol=1e-2)


def test_cumulative_sums_are_rounded_in_other_orders_too() -> None:
    text = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<4096xf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> tensor<4096xf16> {
  %zero = stablehlo.constant dense<0.0> : tensor<f16>
  %0 = stablehlo.multiply %x, %x : tensor<4096xf16>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 4096>,
      padding = dense<[[4095, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f16>, %b: tensor<f16>):
    %2 = stablehlo.add %a, %b : tensor<f16>
    stablehlo.return %2 : tensor<f16>
  }) : (tensor<4096xf16>, tensor<f16>) -> tensor<4096xf16>
  return %1 : tensor<4096xf16>
}"""
    x = np.arange(4096).astype(np.float16) % 7
    plain, *others = (
        Simulator(Module.parse(text), order=order)(x)[0].astype(float)
        for order in (None, Order(4), Order(4, True))
    )
    for each in others:
        assert 0 < np.abs(each - plain).max() < 256
    good = partitioned(text)
    assert shardcore.prove(good).is_proven
    assert not shardcore.prove(with_local(good, "stablehlo.multiply", "stablehlo.add")).is_proven


def _narrow(x: np.ndarray) -> np.ndarray:
    import ml_dtypes

    return x.astype(ml_dtypes.bfloat16)


ENDLESS = LOOP.replace(
    "%c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>",
    "%c = stablehlo.constant dense<true> : tensor<i1>",
)


def test_loops_that_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "MOST_STEPS", 100)
    with pytest.raises(SimulationError, match="has not ended after 100 steps") as caught:
        shardcore.prove(partitioned(ENDLESS))
    assert caught.value.code == "unsupported-op"
    assert shardcore.prove(partitioned(LOOP)).is_proven


def test_the_first_difference_after_ops_were_inserted_by_hand() -> None:
    """Ops of a program that was printed and read again have new numbers; names stay."""
    good = partitioned(MIXED)
    line = "  %3 = stablehlo.tanh %shc9 : tensor<64x64xbf16>\n"
    more = "  %n = stablehlo.negate %shc9 : tensor<64x64xbf16>\n"
    more += "  %m = stablehlo.negate %n : tensor<64x64xbf16>\n"
    [operand] = re.findall(r"%3 = stablehlo.tanh (%shc\d+)", str(good.module))
    line, more = (text.replace("%shc9", operand) for text in (line, more))
    assert shardcore.prove(with_local(good, line, more + line)).is_proven
    doubled = "  %h = stablehlo.add %3, %3 : tensor<64x64xbf16>\n"
    text = str(good.module).replace("dot_general %3,", "dot_general %h,")
    bad = Module.parse(text.replace(line, more + line + doubled))
    given = good.source, bad, good.policy, good.num_devices, good.origin, good.result
    proof = shardcore.prove(Partitioned(*given))
    assert not proof.is_proven
    assert proof.first is not None
    assert (proof.first.result, proof.first.name) == ("%4", "stablehlo.dot_general")


def test_a_program_that_does_not_fit_is_refused_with_a_figure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Simulator, "watched", never)
    monkeypatch.setattr(comparison, "available_bytes", lambda: 1 << 30)
    large = MIXED.replace("64x256", "262144x256")
    with pytest.raises(ProgramTooLargeError, match=r"about [\d.]+ GiB of memory, and 1.0 GiB are"):
        shardcore.prove(partitioned(large))
    path = tmp_path / "large.mlir"
    path.write_text(large)
    assert main(["partition", str(path), "--prove"]) == 1
    assert "error[program-too-large]" in capsys.readouterr().err


def test_arguments_that_do_not_fit_are_refused_before_they_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(comparison, "rounds", never)
    monkeypatch.setattr(comparison, "available_bytes", lambda: 1 << 30)
    with pytest.raises(ProgramTooLargeError, match=r"over 12\.\d GiB of memory, and 1.0 GiB are"):
        shardcore.prove(partitioned(MIXED.replace("64x256", "4194304x256")))


def test_the_estimate_is_near_what_is_needed() -> None:
    """Four devices hold their shards of both products, and the global program its own."""
    import tracemalloc

    text = MIXED.replace("64x256", "4096x256")
    found = partitioned(text)
    arrays = [np.ones(port.shape, np.float32) for port in found.arguments]
    simulator = found.simulator()
    estimate = simulator.peak_bytes([4, 4], 4)
    tracemalloc.start()
    found.simulate(*arrays)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.4 < estimate / peak < 2.5


def test_no_memory_for_an_array_is_an_error_of_ours() -> None:
    module = Module.parse("""
func.func @main() -> tensor<1048576x1048576x1024xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<1048576x1048576x1024xf32>
  %1 = stablehlo.add %0, %0 : tensor<1048576x1048576x1024xf32>
  return %1 : tensor<1048576x1048576x1024xf32>
}""")
    with pytest.raises((ProgramTooLargeError, SimulationError)):
        module.simulate()


def test_memory_that_is_free() -> None:
    found = memory.available_bytes()
    assert found is None or found > 1 << 20


def test_a_wrong_program_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mixed.mlir"
    path.write_text(MIXED)
    assert main(["partition", str(path), "--prove", "--json"]) == 0
    proof = json.loads(capsys.readouterr().out)["proof"]
    assert proof["verdict"] == "equal within reordering"
    assert proof["first"] is None
    assert proof["reordered"][0]["result"] == "result 0"
