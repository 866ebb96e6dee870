"""``Result.partition``: the local module, what it sends, what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import shardcore
from shardcore import Module, PartitionError
from shardcore.cli import main

MLP = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<64x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>},
    %w: tensor<512x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"model"}]>},
    %v: tensor<2048x512xf32>) -> tensor<64x512xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x512xf32>, tensor<512x2048xf32>) -> tensor<64x2048xf32>
  %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0]
      : (tensor<64x2048xf32>, tensor<2048x512xf32>) -> tensor<64x512xf32>
  return %1 : tensor<64x512xf32>
}
"""


def module(body: str, arguments: str, result: str, mesh: str = '<["x"=2, "y"=4]>') -> Module:
    return Module.parse(
        f"sdy.mesh @mesh = {mesh}\nfunc.func @main({arguments}) -> {result} {{\n{body}\n}}"
    )


def argument(name: str, type_: str, dims: str) -> str:
    return f"%{name}: {type_} {{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"


def test_the_local_module_says_for_how_many_devices_it_is() -> None:
    local = Module.parse(MLP).propagate().partition().module
    text = str(local)
    assert "mhlo.num_partitions = 8 : i32" in text
    assert "mhlo.num_replicas = 1 : i32" in text
    assert "sdy" not in text
    assert [str(port.shape) for port in local.arguments()] == [
        "(32, 512)",
        "(512, 512)",
        "(512, 512)",
    ]
    assert str(Module.parse(text)) == text


def test_constants_are_those_of_stablehlo() -> None:
    body = (
        "%c = stablehlo.constant dense<[4, 8]> : tensor<2xi32>\n"
        "%0 = stablehlo.dynamic_reshape %a, %c "
        ": (tensor<8x4xf32>, tensor<2xi32>) -> tensor<4x8xf32>\n"
        "return %0 : tensor<4x8xf32>"
    )
    program = module(body, argument("a", "tensor<8x4xf32>", '{"x"}, {}'), "tensor<4x8xf32>")
    assert "sdy" not in str(program.propagate().partition().module)


def test_rules_that_users_wrote_are_not_left() -> None:
    rule = "#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}, custom>"
    call = (
        f"%0 = stablehlo.custom_call @mine(%a) {{sdy.sharding_rule = {rule}}} "
        ": (tensor<8x4xf32>) -> tensor<8x4xf32>\nreturn %0 : tensor<8x4xf32>"
    )
    program = module(call, argument("a", "tensor<8x4xf32>", '{"x"}, {}'), "tensor<8x4xf32>")
    shardcore.partition_rule("mine", "i j -> i j")
    try:
        text = str(program.propagate().partition().module)
    finally:
        shardcore.rules.unregister_partition_rule("mine")
    assert "sdy" not in text
    assert "tensor<4x4xf32>" in text
    assert str(Module.parse(text)) == text


@pytest.mark.parametrize("policy", ["shardy", "least", "xla"])
def test_a_function_that_is_inlined_twice_has_two_names_for_a_value(policy: str) -> None:
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>)
        -> (tensor<2x4x1xf32>, tensor<2x4x1xf32>) {
      %0 = func.call @f(%a) : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
      %1 = func.call @f(%b) : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
      return %0, %1 : tensor<2x4x1xf32>, tensor<2x4x1xf32>
    }
    func.func private @f(%p: tensor<2x4xf32>) -> tensor<2x4x1xf32> {
      %v = stablehlo.broadcast_in_dim %p, dims = [0, 1]
          : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
      return %v : tensor<2x4x1xf32>
    }
    """
    local = str(Module.parse(text).propagate().partition(policy=policy).module)
    assert str(Module.parse(local)) == local


def test_sums_are_over_the_axis_of_the_contracted_dim() -> None:
    partitioned = Module.parse(MLP).propagate().partition()
    (collective,) = partitioned.collectives
    assert (collective.kind, collective.axes) == ("all_reduce", ("model",))
    assert partitioned.sent_bytes == 2 * 32 * 512 * 4 * 3 // 4
    assert partitioned.count_outcomes() == {"local": 1, "collective": 1}


def test_an_update_of_some_rows_sends_nothing() -> None:
    body = """%0 = stablehlo.dynamic_update_slice %x, %u, %i, %j :
      (tensor<64x256xf32>, tensor<3x256xf32>, tensor<i32>, tensor<i32>) -> tensor<64x256xf32>
  return %0 : tensor<64x256xf32>"""
    arguments = argument("x", "tensor<64x256xf32>", '{"x"}, {}')
    arguments += ", %u: tensor<3x256xf32>, %i: tensor<i32>, %j: tensor<i32>"
    result = '(tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})'
    assert module(body, arguments, result).propagate().partition().sent_bytes == 0


def test_one_exchange_moves_two_axes_onto_one_dim() -> None:
    body = """%0 = sdy.sharding_constraint %x <@mesh, [{}, {"x", "y"}, {}]> : tensor<8x64x8xf32>
  return %0 : tensor<8x64x8xf32>"""
    arguments = argument("x", "tensor<8x64x8xf32>", '{"y"}, {}, {"x"}')
    result = '(tensor<8x64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}, {}]>})'
    partitioned = module(body, arguments, result).propagate().partition()
    [row] = partitioned.collectives
    assert (row.kind, row.axes) == ("all_to_all", ("x", "y"))
    # One over "x" and one over "y" would send half a shard, and three quarters.
    assert partitioned.sent_bytes == 2048 // 8 * 7


def test_exchanges_over_a_part_of_an_axis_are_counted() -> None:
    result = '(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y":(1)2}]>})'
    arguments = argument("x", "tensor<8x8xf32>", '{"y":(1)2}, {}')
    partitioned = module("return %x : tensor<8x8xf32>", arguments, result).propagate().partition()
    (collective,) = partitioned.collectives
    assert [str(axis) for axis in collective.axis_refs] == ['"y":(1)2']
    assert partitioned.sent_bytes == 8 * 4 * 4 // 2


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("dilation", [1, 3])
def test_a_sharded_kernel_leaves_terms(dilation: int, is_reversed: bool) -> None:
    high = 4 + 11 * (dilation - 1)
    body = f"""%0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {{stride = [1], pad = [[2, {high}]], lhs_dilate = [1], rhs_dilate = [{dilation}],
      reverse = [{str(is_reversed).lower()}]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
    : (tensor<2x10x8xf32>, tensor<12x8x3xf32>) -> tensor<2x5x3xf32>
  return %0 : tensor<2x5x3xf32>"""
    arguments = argument("a", "tensor<2x10x8xf32>", '{}, {"x"}, {}')
    arguments += ", " + argument("k", "tensor<12x8x3xf32>", '{"x"}, {}, {}')
    partitioned = module(body, arguments, "tensor<2x5x3xf32>").propagate().partition()
    assert "all_reduce" in {row.kind for row in partitioned.collectives}
    assert "all_gather" not in {row.kind for row in partitioned.collectives}
    assert shardcore.prove(partitioned).is_proven


def test_a_reduction_keeps_its_reducer() -> None:
    body = """%c = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [0] :
      (tensor<64x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>"""
    local = module(body, argument("x", "tensor<64x8xf32>", '{"x"}, {}'), "tensor<8xf32>")
    text = str(local.propagate().partition().module)
    assert "stablehlo.all_reduce" in text
    assert '"stablehlo.maximum"(' in text


def test_what_nobody_knows_is_refused_by_name_and_line() -> None:
    body = """%0 = stablehlo.custom_call @mystery(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>"""
    program = module(body, argument("x", "tensor<8xf32>", '{"x"}'), "tensor<8xf32>")
    with pytest.raises(PartitionError, match="mystery") as caught:
        program.propagate().partition()
    assert caught.value.code == "unpartitionable"
    assert caught.value.line == 3


def test_sent_bytes_are_those_of_the_collectives() -> None:
    """They are counted without them; pairs of devices and groups of two read alike."""
    from shardcore.partition import Partitioned

    text = """module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %0 = "stablehlo.collective_permute"(%a) {channel_handle = #stablehlo.channel_handle<handle = 1,
      type = 1>, source_target_pairs = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}
      : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.case"(%n) ({
    %2 = "stablehlo.all_gather"(%0) {all_gather_dim = 0 : i64, channel_handle
        = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]>
        : tensor<2x2xi64>, use_global_device_ids} : (tensor<8xf32>) -> tensor<16xf32>
    %3 = stablehlo.slice %2 [0:8] : (tensor<16xf32>) -> tensor<8xf32>
    %4 = stablehlo.sine %3 : tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }, {
    stablehlo.return %0 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
}"""
    good = Module.parse(MLP).propagate().partition()
    for module in (good.module, Module.parse(text)):
        partitioned = Partitioned(good.source, module, good.policy, 4, good.origin, good.result)
        collectives = partitioned.collectives
        assert partitioned.sent_bytes == sum(row.total_wire_bytes for row in collectives) > 0
    assert [(row.kind, row.wire_bytes) for row in collectives] == [
        ("collective_permute", 32),
        ("all_gather", 32),
    ]


def test_policies_are_named() -> None:
    with pytest.raises(ValueError, match="'shardy', 'least' or 'xla'"):
        Module.parse(MLP).propagate().partition("most")


def test_a_program_without_a_mesh_is_for_one_device() -> None:
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    partitioned = Module.parse(text).propagate().partition()
    assert partitioned.num_devices == 1
    assert partitioned.collectives == ()


def test_meshes_of_other_devices_are_refused() -> None:
    text = """
sdy.mesh @a = <["x"=2]>
sdy.mesh @b = <["x"=4]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>},
                %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>}) {
  return
}"""
    with pytest.raises(PartitionError, match="one set of devices"):
        Module.parse(text).propagate().partition()


def test_proof_finds_a_wrong_collective() -> None:
    from shardcore.partition import Partitioned

    good = Module.parse(MLP).propagate().partition()
    assert shardcore.prove(good).is_proven
    text = str(good.module).replace('"stablehlo.add"(', '"stablehlo.maximum"(')
    bad = Partitioned(good.source, Module.parse(text), good.policy, 8, good.origin, good.result)
    proof = shardcore.prove(bad)
    assert not proof.is_proven
    assert "NOT proven" in str(proof)
    assert "amplifies" not in str(proof)


AMPLIFIES = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %w: tensor<64x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %a : tensor<8x64xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
    : (tensor<8x64xf32>, tensor<64x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.constant dense<1.0e5> : tensor<8x8xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<8x8xf32>
  %4 = stablehlo.sine %3 : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
"""


def test_a_program_that_amplifies_rounding_is_told_from_a_wrong_one() -> None:
    text = AMPLIFIES
    measured = shardcore.prove(Module.parse(text).propagate().partition())
    assert (measured.verdict, measured.in_double) == ("equal within reordering", True)
    proof = shardcore.prove(Module.parse(text).propagate().partition(), tolerance=1e-5)
    [difference] = proof.differences
    assert difference.largest <= 10 * difference.rounding
    assert "the program amplifies rounding" in str(proof)
    assert 'prove(..., dtype="f64") or --prove --dtype f64' in str(proof)
    assert proof.record()["differences"][0]["rounding"] == difference.rounding
    exact = shardcore.prove(Module.parse(text).propagate().partition(), dtype="f64")
    assert exact.is_proven
    assert (exact.dtype, exact.record()["dtype"], exact.tolerance) == ("f64", "f64", 1e-6)
    assert "in f64" in str(exact)
    strict = shardcore.prove(Module.parse(text).propagate().partition(), dtype="f64", tolerance=0.0)
    assert not strict.is_proven
    assert "help:" not in str(strict)
    double = Module.parse(text.replace("f32", "f64")).propagate().partition()
    assert "help:" not in str(shardcore.prove(double, tolerance=0.0))


def test_the_hint_of_a_proof_can_be_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(AMPLIFIES)
    assert main(["partition", str(path), "--prove"]) == 0
    assert "within what reordering does" in " ".join(capsys.readouterr().out.split())
    proof = shardcore.prove(Module.parse(AMPLIFIES).propagate().partition(), tolerance=1e-5)
    [options] = re.findall(r"or (--prove --dtype \S+)", str(proof))
    assert main(["partition", str(path), *options.split()]) == 0
    assert "in f64" in capsys.readouterr().out
    assert main(["partition", str(path), *options.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proof"]["dtype"] == "f64"
    with pytest.raises(SystemExit):
        main(["partition", str(path), "--dtype", "f64"])
    assert "--dtype is for --prove" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["partition", str(path), "--prove", "--dtype", "f16"])


@pytest.mark.parametrize("dtype", ["f16", "float64", "", 64, ["f64"]])
def test_types_that_floats_are_not_computed_in(dtype: object) -> None:
    partitioned = Module.parse(AMPLIFIES).propagate().partition()
    with pytest.raises(ValueError, match="dtype is 'f32', 'f64' or None"):
        shardcore.prove(partitioned, dtype=dtype)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dtype is 'f32', 'f64' or None"):
        partitioned.simulate(dtype=dtype)  # type: ignore[arg-type]


def test_simulation_takes_and_gives_global_arrays() -> None:
    import numpy as np

    partitioned = Module.parse(MLP).propagate().partition()
    x, w, v = (np.ones(port.shape, np.float32) for port in partitioned.arguments)
    (found,) = partitioned.simulate(x, w, v)
    assert found.shape == (64, 512)
    assert np.all(found == 512 * 2048)


STARTS = """
  %0 = stablehlo.dynamic_slice %a, %i, sizes = [8] : (tensor<{0}xf32>, tensor<i8>) -> tensor<8xf32>
  %1 = stablehlo.iota dim = 0 : tensor<{0}xi64>
  %2 = stablehlo.convert %1 : (tensor<{0}xi64>) -> tensor<{0}xf32>
  %3 = stablehlo.add %a, %2 : tensor<{0}xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.pad %3, %c, low = [1], high = [1], interior = [0]
      : (tensor<{0}xf32>, tensor<f32>) -> tensor<{1}xf32>
  return %0, %4 : tensor<8xf32>, tensor<{1}xf32>"""


def of_length(length: int) -> Module:
    arguments = argument("a", f"tensor<{length}xf32>", '{"y"}') + ", %i: tensor<i8>"
    results = f"(tensor<8xf32>, tensor<{length + 2}xf32>)"
    return module(STARTS.format(length, length + 2), arguments, results)


@pytest.mark.parametrize("policy", ["least", "shardy", "xla"])
def test_offsets_have_as_many_bits_as_the_longest_dim_needs(policy: str) -> None:
    for length, index in [(1 << 20, "i32"), (1 << 36, "i64")]:
        local = of_length(length).propagate().partition(policy).module
        text = str(local)
        assert str(Module.parse(text)) == text
        assert f"(tensor<ui32>) -> tensor<{index}>" in text


def test_padding_of_quantized_elements_is_made_of_what_they_stand_for() -> None:
    quantized = "tensor<5x8x!quant.uniform<i8:f32, 2.0>>"
    body = f"  %0 = stablehlo.reverse %a, dims = [0] : {quantized}\n  return %0 : {quantized}"
    sharded = module(body, argument("a", quantized, '{"x"}, {"y"}'), quantized)
    text = str(sharded.propagate().partition("xla").module)
    assert "stablehlo.uniform_quantize" in text
    assert str(Module.parse(text)) == text


@pytest.mark.parametrize("policy", ["least", "shardy", "xla"])
def test_terms_of_quantized_types_are_not_added(policy: str) -> None:
    """Each would be rounded by itself: the contracted dim is made whole."""
    quantized, sums = (
        f"tensor<{shape}x!quant.uniform<{kind}:f32, 2.0>>"
        for shape, kind in (("8x6", "i8"), ("6x6", "i32"))
    )
    body = (
        "  %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0]\n"
        f"    : ({quantized}, {quantized}) -> {sums}\n  return %0 : {sums}"
    )
    sharded = module(body, argument("a", quantized, '{"x"}, {}'), sums)
    kinds = {row.kind for row in sharded.propagate().partition(policy).collectives}
    assert kinds
    assert not kinds & {"all_reduce", "reduce_scatter"}


def test_scales_that_differ_along_a_dim_are_refused_by_name() -> None:
    """A shard would have scales of its own, and with them a type."""
    quantized = "tensor<8x2x!quant.uniform<i8:f32:1, {1.0, 2.0}>>"
    body = f"  %0 = stablehlo.reverse %a, dims = [0] : {quantized}\n  return %0 : {quantized}"
    sharded = module(body, argument("a", quantized, '{"x"}, {}'), quantized).propagate()
    with pytest.raises(PartitionError, match=r"stablehlo\.reverse.*scales differ") as caught:
        sharded.partition()
    assert "one scale" in str(caught.value)
    module(body, argument("a", quantized, "{}, {}"), quantized).propagate().partition()


def test_dims_whose_padding_would_overflow_are_refused() -> None:
    result = of_length((1 << 63) - 3).propagate()
    with pytest.raises(PartitionError, match="a dim of 9223372036854775807 elements") as caught:
        result.partition()
    assert caught.value.code == "unpartitionable"


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "mlp.mlir"
    source.write_text(MLP, encoding="utf-8")
    local = tmp_path / "local.mlir"
    assert main(["partition", str(source), "--prove", "-o", str(local)]) == 0
    shown = capsys.readouterr().out
    assert "8 devices" in shown
    assert "proven" in shown
    assert "stablehlo.all_reduce" in local.read_text(encoding="utf-8")
    assert main(["partition", str(source), "--json", "--policy", "shardy"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["policy"] == "shardy"
    assert record["sent_bytes"] == 98304


def test_copies_of_what_is_no_number_are_equal() -> None:
    """Logarithms of negative numbers, on two devices each, in a type that NumPy does not know."""
    module = Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> tensor<8xbf16> {
  %0 = stablehlo.log %a : tensor<8xbf16>
  return %0 : tensor<8xbf16>
}""")
    proof = shardcore.prove(module.propagate().partition())
    assert proof.is_proven
    assert proof.tolerance == 0


ON_ONE_DEVICE = """
sdy.mesh @mesh = <["x"=4]>
sdy.mesh @one = <[], device_ids=[3]>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@one, []>},
                %arg1: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x16xf32>, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@one, []>}) {
  %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
  %1 = stablehlo.add %0, %arg1 : tensor<8x16xf32>
  return %1, %0 : tensor<8x16xf32>, tensor<8x16xf32>
}
"""


def test_what_is_on_one_device_is_held_by_all() -> None:
    # Later versions of Shardy refuse arguments on one device.
    module = shardcore.Module.parse(ON_ONE_DEVICE, shardy="0.10")
    partitioned = module.propagate().partition("xla")
    assert partitioned.num_devices == 4
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", ["xla", "least", "shardy"])
def test_a_program_of_one_device_is_proven(policy: str) -> None:
    text = ON_ONE_DEVICE.replace('@mesh, [{"x"}, {}]', "@one, []").replace(
        'sdy.mesh @mesh = <["x"=4]>', ""
    )
    partitioned = shardcore.Module.parse(text, shardy="0.10").propagate().partition(policy)
    assert shardcore.prove(partitioned).is_proven


def test_programs_with_elements_that_numpy_lacks_are_not_proven() -> None:
    ty = "tensor<8x4x!quant.uniform<i8:f32, 2.0>>"
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: {ty} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {ty} {{
  %0 = stablehlo.add %arg0, %arg0 : {ty}
  return %0 : {ty}
}}
""")
    with pytest.raises(shardcore.SimulationError, match="%arg0 has elements of type !quant"):
        shardcore.prove(module.propagate().partition())
