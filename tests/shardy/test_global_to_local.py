"""``sdy-convert-global-to-local``: the reference's text where that is right, else right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib.mlir import ir
from shardcore import Module, PartitionError, PassManager, Port

from tests.shardy import reference as shardy
from tests.shardy.global_to_local import OPTIONS, PASS, PROGRAMS
from tests.shardy.global_to_local_ops import PROGRAMS as PROGRAMS_WITH_OPS
from tests.shardy.global_to_local_ops import WRONG_IN_REFERENCE

ROOT = Path(__file__).resolve().parents[2]


def converted(text: str, options: str = "") -> Module:
    module = Module.parse(text)
    PassManager.parse(PASS.format(options)).run(module)
    return module


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    """What the reference makes of all programs, from a process of its own."""
    command = [sys.executable, "-m", "tests.shardy.global_to_local"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_text_is_the_reference_s(name: str, options: str, reference: dict[str, str]) -> None:
    mine = str(converted(PROGRAMS[name], options))
    with jax_mlir.make_ir_context():
        assert str(ir.Module.parse(mine)) == reference[f"{name} {options}"]


@pytest.mark.parametrize("name", PROGRAMS_WITH_OPS)
def test_text_of_ops_is_the_reference_s(name: str, reference: dict[str, str]) -> None:
    mine = str(converted(PROGRAMS_WITH_OPS[name]))
    with jax_mlir.make_ir_context():
        is_same = str(ir.Module.parse(mine)) == reference[name]
    assert is_same == (name not in WRONG_IN_REFERENCE)


def test_ops_of_other_dialects_are_kept_on_shards() -> None:
    body = """%0 = "some.op"(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<8x16xf32>) -> tensor<8x16xf32>
return %0 : tensor<8x16xf32>"""  # noqa: E501
    text = one_axis(body, '[{"x"}, {}]', '[{"x"}, {}]')
    assert '"some.op"(%a)' in str(converted(text))
    assert "(tensor<1x16xf32>) -> tensor<1x16xf32>" in str(converted(text))
    with pytest.raises(PartitionError, match="nothing is known of it"):
        Module.parse(text).propagate().partition()


def given(port: Port, rng: np.random.Generator) -> np.ndarray:
    """Numbers for an argument; indices out of bounds among them."""
    array = rng.integers(-3, 12, tuple(size or 0 for size in port.shape or ()))
    element = port.type.removeprefix("tensor<").removesuffix(">").rsplit("x", 1)[-1]
    return array.astype({"f32": np.float32, "i32": np.int32, "i64": np.int64}[element])


@pytest.mark.parametrize("name", PROGRAMS_WITH_OPS)
def test_ops_are_right(name: str) -> None:
    text, rng = PROGRAMS_WITH_OPS[name], np.random.default_rng(1)
    source = Module.parse(text)
    count = next(iter(source.meshes.values())).num_devices
    for _ in range(4):
        arrays = [given(port, rng) for port in source.arguments()]
        held = [
            shards(port, array, count)
            for port, array in zip(source.arguments(), arrays, strict=True)
        ]
        found = Module.parse(str(converted(text))).simulate(*held, devices=count)
        expected = source.simulate(*arrays)
        for port, mine, want in zip(source.results(), found, expected, strict=True):
            for device, shard in enumerate(shards(port, want, count)):
                np.testing.assert_array_equal(mine[device], shard)


def shards(port: Port, array: np.ndarray, count: int) -> np.ndarray:
    """The shard of each device; all dims divide."""
    if port.sharding is None:
        return np.stack([array] * count)
    pieces = [array[port.sharding.shard_slice(array.shape, device)] for device in range(count)]
    return np.stack(pieces)


def run(text: str, array: np.ndarray, count: int, options: str = "") -> np.ndarray:
    """The result of the converted program, each device having its shard of ``array``."""
    source, module = Module.parse(text), converted(text, options)
    [argument], [result] = source.arguments(), source.results()
    assert argument.sharding is not None
    assert result.sharding is not None
    local = argument.sharding.local_shape(array.shape)
    held = np.full((count, *local), np.nan, array.dtype)
    for device in range(count):
        piece = array[argument.sharding.shard_slice(array.shape, device)]
        held[(device, *(slice(0, size) for size in piece.shape))] = piece
    [found] = Module.parse(str(module)).simulate(held, devices=count)
    shape = tuple(size or 0 for size in result.shape or ())
    whole = np.full(shape, np.nan, found.dtype)
    for device in range(count):
        place = result.sharding.shard_slice(shape, device)
        sizes = whole[place].shape
        whole[place] = found[(device, *(slice(0, size) for size in sizes))]
    return whole


ARRAY = np.random.default_rng(0).integers(-4, 5, (8, 16)).astype(np.float32)


def one_axis(body: str, sharding: str, out: str, result: str = "tensor<8x16xf32>") -> str:
    return (
        'sdy.mesh @mesh = <["x"=8]>\nfunc.func @main(%a: tensor<8x16xf32> '
        f"{{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}) -> ({result} "
        f"{{sdy.sharding = #sdy.sharding<@mesh, {out}>}}) {{\n{body}\n}}\n"
    )


@pytest.mark.parametrize("part", ['"x":(1)2', '"x":(2)2', '"x":(4)2', '"x":(1)4', '"x":(2)4'])
def test_sub_axes_are_those_that_are_there(part: str) -> None:
    body = (
        f"%0 = sdy.all_slice [{{{part}}}, {{}}] %a out_sharding=<@mesh, [{{{part}}}, {{}}]> : "
        "tensor<8x16xf32>\nreturn %0 : tensor<8x16xf32>"
    )
    text = one_axis(body, "[{}, {}]", f"[{{{part}}}, {{}}]")
    np.testing.assert_array_equal(run(text, ARRAY, 8), ARRAY)


def test_permutes_of_sub_axes() -> None:
    body = """%0 = sdy.collective_permute %a out_sharding=<@mesh, [{"x":(4)2}, {}]> : tensor<8x16xf32>
return %0 : tensor<8x16xf32>"""  # noqa: E501
    text = one_axis(body, '[{"x":(1)2}, {}]', '[{"x":(4)2}, {}]')
    np.testing.assert_array_equal(run(text, ARRAY, 8), ARRAY)


def test_terms_are_reduced_as_they_came_about() -> None:
    body = """%c = stablehlo.constant dense<0xFF800000> : tensor<f32>
%0 = stablehlo.reduce(%a init: %c) applies stablehlo.maximum across dimensions = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"x"}>]>} : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
%1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
return %1 : tensor<8xf32>"""  # noqa: E501
    text = one_axis(body, '[{}, {"x"}]', "[{}]", "tensor<8xf32>")
    assert str(converted(text)).count("stablehlo.maximum") == 2
    np.testing.assert_array_equal(run(text, ARRAY, 8), ARRAY.max(1))


@pytest.mark.parametrize("options", ["", "combine-multi-dimension-reduce-scatter=true"])
def test_terms_scattered_over_two_dims(options: str) -> None:
    body = """%0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"x"}>]>} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
%1 = sdy.reduce_scatter [{"x":(1)2}, {"x":(2)4}] %0 out_sharding=<@mesh, [{"x":(1)2}, {"x":(2)4}]> : tensor<16x16xf32>
return %1 : tensor<16x16xf32>"""  # noqa: E501
    text = one_axis(body, '[{"x"}, {}]', '[{"x":(1)2}, {"x":(2)4}]', "tensor<16x16xf32>")
    np.testing.assert_array_equal(run(text, ARRAY, 8, options), ARRAY.T @ ARRAY)


def test_several_exchanges_at_once() -> None:
    body = """%0 = sdy.all_to_all [{"x":(1)2}: 0->1] %a out_sharding=<@mesh, [{"x":(2)4}, {"x":(1)2}]> : tensor<8x16xf32>
return %0 : tensor<8x16xf32>"""  # noqa: E501
    text = one_axis(body, '[{"x":(2)4, "x":(1)2}, {}]', '[{"x":(2)4}, {"x":(1)2}]')
    np.testing.assert_array_equal(run(text, ARRAY, 8), ARRAY)


def test_dims_that_do_not_divide_are_padded() -> None:
    text = """sdy.mesh @mesh = <["x"=3]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
  %0 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}"""  # noqa: E501
    text = text.replace("-> tensor<8x16xf32> {", "-> (tensor<8x16xf32> {sdy.sharding = SH}) {")
    text = text.replace("SH", "#sdy.sharding<@mesh, [{}, {}]>")
    np.testing.assert_array_equal(run(text, ARRAY, 3), ARRAY)


@pytest.mark.parametrize(
    ("op", "into"),
    [
        ('sdy.all_gather [{}, {"x"}]', "[{}, {}]"),
        ('sdy.reduce_scatter [{}, {"x"}]', '[{}, {"x"}]'),
    ],
)
def test_what_has_no_elements_is_not_sent(op: str, into: str) -> None:
    sharded = "[{}, {}]" if "scatter" in op else '[{}, {"x"}]'
    body = (
        f"%0 = {op} %a out_sharding=<@mesh, {into}> : tensor<8x0xf32>\nreturn %0 : tensor<8x0xf32>"
    )
    text = one_axis(body, sharded, into, "tensor<8x0xf32>").replace(
        "%a: tensor<8x16", "%a: tensor<8x0"
    )
    mine = str(converted(text))
    assert op.removeprefix("sdy.").split()[0] not in mine
    with jax_mlir.make_ir_context():
        ir.Module.parse(mine)


@pytest.mark.skipif(not shardy.IS_NEW, reason="jaxlib 0.10 permutes before reversals")
@pytest.mark.parametrize(
    ("shape", "given", "result"),
    [
        ("4x8", '[{"a"}, {"b"}]', '[{"a"}, {"b"}]'),
        ("4x7", '[{"a"}, {"b"}]', '[{"a"}, {"b"}]'),
        ("4x8", '[{"a"}, {"b"}]', '[{"a"}, {"b":(1)2}]'),
        ("4x8", '[{"b", "a"}, {}]', '[{"a"}, {"b"}]'),
    ],
)
def test_reversals_stay_on_their_devices(shape: str, given: str, result: str) -> None:
    """The export puts their results on the devices in reverse order, and permutes behind."""
    tensor = f"tensor<{shape}xi32>"
    text = f"""sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%0: {tensor} {{sdy.sharding = #sdy.sharding<@mesh, {given}>}})
    -> ({tensor} {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
  %1 = stablehlo.reverse %0, dims = [0, 1]
      {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, {result}>]>}} : {tensor}
  return %1 : {tensor}
}}"""
    pipeline = "builtin.module(sdy-export-pipeline{partitioner-stage=convert-global-to-local})"
    module = Module.parse(text)
    PassManager.parse(pipeline).run(module)
    assert shardy.canonical(str(module)) == shardy.run(text, pipeline)


def test_dims_too_long_for_whole_shards_are_refused() -> None:
    """Whatever pads them would count beyond 64 bits, also behind a reversal of another dim."""
    text = """sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<2x9223372036854775807xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>})
    -> tensor<2x9223372036854775807xf32> {
  %0 = stablehlo.reverse %a, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>} : tensor<2x9223372036854775807xf32>
  return %0 : tensor<2x9223372036854775807xf32>
}"""  # noqa: E501
    pipeline = "builtin.module(sdy-export-pipeline{partitioner-stage=convert-global-to-local})"
    module = Module.parse(text, shardy="0.12")
    with pytest.raises(PartitionError, match="cannot be partitioned"):
        PassManager.parse(pipeline, shardy="0.12").run(module)


def test_windows_over_nothing_but_padding() -> None:
    text = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<0xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %z: tensor<f32>) -> tensor<1xf32> {
  %0 = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 1>, window_strides = array<i64: 16>, padding = dense<[[-1, 4]]> : tensor<1x2xi64>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : (tensor<0xf32>, tensor<f32>) -> tensor<1xf32>
  return %0 : tensor<1xf32>
}"""  # noqa: E501
    assert "tensor<0xf32>" in str(converted(text))


def test_nothing_is_sent_of_tensors_without_elements() -> None:
    text = """sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<0x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x":(1)2}]>}) -> tensor<0x8xf32> {
  %0 = sdy.all_to_all [{"x":(1)2}: 1->0] %a out_sharding=<@mesh, [{"x":(1)2}, {}]> : tensor<0x8xf32>
  %1 = sdy.all_gather [{"x":(1)2}, {}] %0 out_sharding=<@mesh, [{}, {}]> : tensor<0x8xf32>
  return %1 : tensor<0x8xf32>
}"""  # noqa: E501
    assert "all_gather" not in str(converted(text))


def test_initial_values_count_once() -> None:
    text = """sdy.mesh @mesh = <["y"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) -> tensor<f32> {
  %0 = stablehlo.constant dense<3.0> : tensor<f32>
  %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [], unreduced={"y"}>]>}
    : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %2 = sdy.all_reduce {"y"} %1 out_sharding=<@mesh, []> : tensor<f32>
  return %2 : tensor<f32>
}"""
    shards = np.arange(8, dtype=np.float32).reshape(2, 4)
    [found] = Module.parse(str(converted(text))).simulate(shards, devices=2)
    assert found.tolist() == [31.0, 31.0]
    theirs = shardy.run(text, "builtin.module(sdy-convert-global-to-local)")
    [wrong] = Module.parse(theirs).simulate(shards, devices=2)
    assert wrong.tolist() == [34.0, 34.0]
