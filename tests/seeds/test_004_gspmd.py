"""GSPMD, part I, of a series on language models in JAX."""

from __future__ import annotations

import pytest
from shardcore import HloSharding, Mesh, Module, ShardcoreError, TensorSharding
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
    if text.startswith("GSPMD"):
        return
    expectation = parse_sharding(text)
    assert isinstance(expectation, ExpectedSharding)
    assert expectation.holds(TensorSharding(MESH, dims), (48, 24), MESH) is True


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
