"""GSPMD, part I, of a series on language models in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
import shardcore.jax
from jax.sharding import PartitionSpec as P
from shardcore import HloSharding, Mesh, Module, ParseError, ShardcoreError, TensorSharding, hlo
from shardcore.calculus import parse_any
from shardcore.cli import main
from shardcore.expect.sharding_text import ExpectedSharding, parse_sharding

MESH = Mesh({"x": 2, "y": 4})
PERCEPTRON = """
module @jit_perceptron attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%arg0: tensor<48x24xf32> {mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"},
    %arg1: tensor<24x48xf32> {mhlo.sharding = "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"},
    %arg2: tensor<48xf32> {mhlo.sharding = "{replicated}"}) -> (tensor<48x48xf32> {jax.result_info = "", mhlo.sharding = "{replicated}"}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<48x24xf32>, tensor<24x48xf32>) -> tensor<48x48xf32>
  %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<48xf32>) -> tensor<48x48xf32>
  %2 = stablehlo.add %0, %1 : tensor<48x48xf32>
  return %2 : tensor<48x48xf32>
}
}"""  # fmt: skip

PRINTED = [
    ("206: x", "GSPMDSharding({devices=[2,1,4]<=[8] last_tile_dim_replicate}, memory_kind=tpu_hbm)", ["x", None]),
    ("207: w", "GSPMDSharding({devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}, memory_kind=tpu_hbm)", [None, "y"]),
    ("208: b", "GSPMDSharding({replicated}, memory_kind=tpu_hbm)", [None, None]),
    ("209: the dot", "GSPMDSharding({devices=[2,4]0,1,2,3,4,5,6,7}, memory_kind=tpu_hbm)", ["x", "y"]),
    ("075: NamedSharding", "NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=PartitionSpec('x', None), memory_kind=unpinned_host)", ["x", None]),
    ("076: with types of axes", "NamedSharding(mesh=Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto)), spec=P(None, 'y'), memory_kind=device)", [None, "y"]),
    ("217: as called", "jax.sharding.NamedSharding(mesh=AbstractMesh('x': 2, 'y': 4), spec=P('x', 'y'))", ["x", "y"]),
]  # fmt: skip
CASES = pytest.mark.parametrize(
    ("text", "dims"), [row[1:] for row in PRINTED], ids=[row[0] for row in PRINTED]
)


@CASES
def test_004_what_jax_prints_can_be_pasted(text: str, dims: list, capsys) -> None:
    expected = TensorSharding(MESH, dims)
    assert TensorSharding.parse(text, MESH) in (expected, TensorSharding(MESH, []))
    assert parse_any(text, MESH, shape=(48, 48))[0].to_sharding(MESH) == expected
    if text.startswith("GSPMD"):
        assert HloSharding.parse(text).to_sharding(MESH, rank=2) == expected
        assert TensorSharding.from_hlo(text, MESH, rank=2) == expected
    assert main(["array", text, "--mesh", "x=2,y=4", "--shape", "48x48"]) == 0
    assert str(expected.to_hlo()) in capsys.readouterr().out
    assert main(["show", text, "--mesh", "x=2,y=4", "--shape", "48x48"]) == 0


@CASES
def test_004_sessions_and_expectations_take_what_jax_prints(text: str, dims: list) -> None:
    module = Module.parse(PERCEPTRON)
    session = module.session(mesh=MESH)
    session.reset()
    session.unset("%arg0")
    session.set("%arg0", text)
    found = session.annotations["%arg0"]
    assert found.is_equivalent(TensorSharding(MESH, dims), (48, 24))
    expectation = parse_sharding(text)
    assert isinstance(expectation, ExpectedSharding)
    assert expectation.holds(TensorSharding(MESH, dims), (48, 24), MESH) is True
    assert expectation.holds(TensorSharding(MESH, [None, "x"]), (48, 24), MESH) is False
    result = session.result
    assert result.check({"shardings": {"%arg0": text}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=P('x')", "found the end"),
        ("NamedSharding(spec=P('x'))", "expected mesh="),
        ("NamedSharding(mesh=Mesh('x': 4), spec=P('x'))", "the mesh is"),
        ("NamedSharding(mesh=Mesh('x': 0), spec=P('x'))", "size"),
        ("NamedSharding(mesh=Mesh(2), spec=P('x'))", "an axis and its size"),
        ("NamedSharding(mesh=3, spec=P('x'))", "expected Mesh"),
        ("GSPMDSharding(devices, memory_kind=device)", "expected a sharding in braces"),
        ("GSPMDSharding({replicated}) x", "text after the end"),
        ("GSPMDSharding()", "expected a sharding in braces"),
    ],
)
def test_004_206_mistakes_in_pasted_text(text: str, message: str) -> None:
    with pytest.raises(ShardcoreError, match=message) as caught:
        TensorSharding.parse(text, MESH)
    assert "^" in str(caught.value)


def test_004_114_a_program_as_stablehlo_and_as_hlo(tmp_path, capsys) -> None:
    lowered = shardcore.jax.lower(
        lambda x, w: x @ w,
        jax.ShapeDtypeStruct((48, 24), jnp.float32),
        jax.ShapeDtypeStruct((24, 48), jnp.float32),
        mesh={"x": 2, "y": 4},
        in_shardings=(P("x"), P(None, "y")),
    )
    assert lowered.as_text() == lowered.as_text("stablehlo") == str(lowered.module)
    text = lowered.as_text("hlo")
    assert text.startswith("HloModule")
    assert "sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}" in text
    with pytest.raises(ValueError, match="not 'mhlo'"):
        lowered.as_text("mhlo")
    # Lines 139 and 146: a device's own program has the shapes of shards.
    local = lowered.propagate().partition().as_text("hlo")
    assert "(f32[24,24]{1,0}, f32[24,12]{1,0})->f32[24,12]{1,0}" in local
    path = tmp_path / "model.mlir"
    path.write_text(str(lowered.module))
    assert main(["partition", str(path), "--hlo", "-o", "-"]) == 0
    assert "f32[24,12]" in capsys.readouterr().out


HLO = """HloModule jit_perceptron, num_partitions=8
ENTRY main {
  x = f32[48,24]{1,0} parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}
  w = f32[24,48]{1,0} parameter(1), sharding={devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}
  d = f32[48,48]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = f32[48,48]{1,0} tanh(d), metadata={op_name="jit(f)/tanh" source_file="a.py" source_line=3}
}
"""
PARTITIONED = """HloModule jit_perceptron, num_partitions=8
ENTRY main_spmd {
  p = f32[24,12]{1,0} parameter(0)
  ROOT g = f32[24,48]{1,0} all-gather(p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={1}, use_global_device_ids=true
}
"""


def test_004_133_dumps_of_hlo_are_read(tmp_path, capsys) -> None:
    module = hlo.read(HLO)
    assert [str(port.sharding.to_hlo()) for port in module.propagate().arguments()] == [
        "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
        "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
    ]
    (value,) = module.propagate().at("a.py:3")
    assert str(value.sharding.to_hlo()) == "{devices=[2,4]<=[8]}"
    (gather,) = [op for op in hlo.read(PARTITIONED).ops() if op.name == "stablehlo.all_gather"]
    assert gather.results[0].shape == (24, 48)
    path = tmp_path / "dump.txt"
    path.write_text(HLO)
    assert main(["propagate", str(path)]) == 0
    assert "a.py:3" in capsys.readouterr().out
    for text in ("HloModule", "HloModule m\nENTRY e { nothing }", "HloModule m " * 100):
        with pytest.raises(ParseError) as caught:
            hlo.read(text)
        assert caught.value.code == "bytecode"


def test_004_133_protos_are_read() -> None:
    from jaxlib import _hlo

    module = _hlo.hlo_module_from_text(HLO).as_serialized_hlo_module_proto()
    size = []
    rest = len(module)
    while rest >= 128:
        size.append(rest % 128 | 128)
        rest //= 128
    wrapped = b"\n" + bytes([*size, rest]) + module
    for data in (module, wrapped):
        assert hlo.read(data).num_ops == hlo.read(HLO).num_ops
    with pytest.raises(ParseError):
        hlo.read(b"\n\xff\xff")


@pytest.mark.parametrize("scanned", [False, True], ids=["once", "in a scan"])
def test_004_057_a_shifted_stage_dim_is_one_permute(scanned: bool) -> None:
    def shift(x):
        return jnp.roll(jnp.tanh(x), 1, axis=0)

    def pipeline(x):
        if not scanned:
            return shift(x)
        return jax.lax.scan(lambda carry, _: (shift(carry), ()), x, jnp.arange(5))[0]

    result = shardcore.jax.lower(
        pipeline,
        jax.ShapeDtypeStruct((4, 16, 8), jnp.float32),
        mesh={"stage": 4},
        in_shardings=P("stage"),
        out_shardings=P("stage"),
    ).propagate()
    partitioned = result.partition()
    (permute,) = partitioned.collectives
    assert (permute.kind, permute.count) == ("collective_permute", 5 if scanned else 1)
    assert permute.wire_bytes == 16 * 8 * 4
    assert str(partitioned.module).count("stablehlo.collective_permute") == 1
    (priced,) = result.cost("tpu-v5p", policy="least").collectives
    assert (priced.kind, priced.count) == (permute.kind, permute.count)
