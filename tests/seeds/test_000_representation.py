"""Shardy, "Sharding representation"."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P
from shardcore import (
    AxisRef,
    HloSharding,
    LoweringError,
    Mesh,
    Module,
    PassManager,
    ShardcoreError,
    TensorSharding,
    VerificationError,
)
from shardcore.jax import lower, named_sharding

MESHES = {
    "mesh_xy": Mesh({"x": 2, "y": 4, "z": 2}),
    "mesh_xyz": Mesh({"x": 2, "y": 8, "z": 2}),
    "mesh_x": Mesh({"x": 4}),
    "mesh_full": Mesh({"devices": 8}),
    "mesh_42": Mesh({"x": 4, "y": 2}),
    "mesh_odd": Mesh({"x": 8, "y": 2, "z": 3}),
    "mesh_cab": Mesh({"c": 2, "a": 2, "b": 2}),
    "mesh_0": Mesh({"a": 4, "b": 2}, device_ids=range(8)),
    "mesh_1": Mesh({"x": 2, "y": 2, "z": 2}, device_ids=range(8)),
}


def sub(name: str, pre_size: int, size: int) -> AxisRef:
    return AxisRef(name, pre_size=pre_size, size=size)


def sharding(text: str) -> TensorSharding:
    return TensorSharding.parse(text, MESHES)


LOCAL_SHAPES = [
    ("053: two dims", '<@mesh_xy, [{"x"}, {"z", "y"}]>', (4, 8), (2, 1)),
    ("082: an open dim", '<@mesh_xy, [{"x"}, {"z", ?}]>', (4, 8), (2, 4)),
    ("104: replicated", '<@mesh_xy, [{"x"}, {?}], replicated={"y"}>', (4, 8), (2, 8)),
    ("153: sub-axes of x", '<@mesh_x, [{"x":(1)2}, {"x":(2)2}]>', (2, 4), (1, 2)),
    ("165: one sub-axis", '<@mesh_xyz, [{"x"}, {"y":(2)2}]>', (4, 8), (2, 4)),
    ("184: a replicated one", '<@mesh_xyz, [{"x"}, {"y":(2)2}], replicated={"y":(1)2}>', (4, 8), (2, 4)),
    ("250: sizes that do not divide", '<@mesh_odd, [{"x"}, {"y"}, {"z"}]>', (7, 3, 8), (1, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shape", "local"), [row[1:] for row in LOCAL_SHAPES], ids=[row[0] for row in LOCAL_SHAPES]
)  # fmt: skip
def test_000_local_shapes(text: str, shape: tuple[int, ...], local: tuple[int, ...]) -> None:
    found = sharding(text)
    assert found.local_shape(shape) == local
    assert str(found) == text


def test_000_026_a_matrix_on_four_devices() -> None:
    mesh = Mesh({"x": 2, "y": 2})
    slices = TensorSharding(mesh, ["x", "y"]).device_slices((2, 2))
    array = np.array([["a", "b"], ["c", "d"]])
    assert [array[slices[device]].item() for device in range(4)] == ["a", "b", "c", "d"]


REFUSED = [
    ("057: one entry a dim", '%0: tensor<4x8xf32>', '<@mesh_xy, [{"x"}]>'),
    ("058: axes of the mesh", '%0: tensor<4x8xf32>', '<@mesh_xy, [{"w"}, {}]>'),
    ("059: an axis once", '%0: tensor<4x8xf32>', '<@mesh_xy, [{"x"}, {"x"}]>'),
    ("059: an axis once, replicated", '%0: tensor<4x8xf32>', '<@mesh_xy, [{"x"}, {}], replicated={"x"}>'),
    ("192: overlapping sub-axes", '%0: tensor<4x8xf32>', '<@mesh_xyz, [{"y":(1)4}, {"y":(2)4}]>'),
    ("194: sub-axes that could be one", '%0: tensor<4x8xf32>', '<@mesh_xyz, [{"y":(1)2, "y":(2)4}, {}]>'),
    ("094: replicated axes in mesh order", '%0: tensor<4x8xf32>', '<@mesh_cab, [{}, {}], replicated={"a", "c"}>'),
    ("240: an empty closed dim has no priority", '%0: tensor<4x8xf32>', '<@mesh_xy, [{}p1, {}]>'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_000_invariants_of_text(value: str, text: str) -> None:
    meshes = "".join(f"sdy.mesh @{name} = {mesh}\n" for name, mesh in MESHES.items())
    argument = value.replace("%0", "%arg0")
    with pytest.raises(ShardcoreError) as caught:
        Module.parse(
            f"{meshes}func.func @f({argument} {{sdy.sharding = #sdy.sharding{text}}}) {{ return }}"
        )
    assert caught.value.line == len(MESHES) + 1
    assert "^" in str(caught.value)


ORDERED = [
    ("088: a and c", "mesh_cab", ["a", "c"], '{"c", "a"}'),
    ("188: sub-axes by pre-size", "mesh_xyz", [sub("y", 4, 2), "x", sub("y", 1, 2)], '{"x", "y":(1)2, "y":(4)2}'),
    ("194: parts that are next to each other", "mesh_xyz", [sub("y", 2, 4), sub("y", 1, 2)], '{"y"}'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mesh", "axes", "text"), [row[1:] for row in ORDERED], ids=[row[0] for row in ORDERED]
)
def test_000_188_replicated_axes_are_put_in_order(mesh: str, axes: list, text: str) -> None:
    expected = sharding(f"<@{mesh}, [{{}}], replicated={text}>")
    made = TensorSharding(MESHES[mesh], [None], replicated=axes, mesh_name=mesh)
    unresolved = TensorSharding(f"@{mesh}", [None], replicated=axes)
    assert made == made.canonical() == expected
    assert unresolved.canonical(MESHES[mesh]) == unresolved.with_mesh(MESHES[mesh]) == expected
    assert TensorSharding(MESHES[mesh], [None], unreduced=axes).unreduced == expected.replicated


def test_000_194_neighbouring_sub_axes_of_a_dim_are_merged() -> None:
    # The document merges "x":(1)2 and "x":(2)4 to "x":(1)8.
    mesh = Mesh({"x": 16, "y": 2})
    parts = [sub("x", 1, 2), sub("x", 2, 4)]
    made = TensorSharding(mesh, [parts, "y"])
    assert made.dims[0].axes == (sub("x", 1, 8),)
    assert TensorSharding(mesh, [[*parts, sub("x", 8, 2)], None]).dims[0].axes == (AxisRef("x"),)
    assert TensorSharding(mesh, [parts[::-1], None]).dims[0].axes == tuple(parts[::-1])
    with pytest.raises(VerificationError, match="overlap"):
        TensorSharding(mesh, [None], replicated=[sub("x", 1, 4), sub("x", 2, 4)])


def test_000_144_sub_axes_are_named_by_pre_size_and_size() -> None:
    axis = AxisRef.parse('"y":(2)2')
    assert (axis.pre_size, axis.size, axis.size_in(MESHES["mesh_xyz"])) == (2, 2, 2)
    assert axis.stride_in(MESHES["mesh_xyz"]) == 2 * 2  # the post-size of "y", times "z"
    for text in ('"y":(3)2', '"y":(1)1', '"y":(0)2'):
        with pytest.raises(ShardcoreError):
            TensorSharding(MESHES["mesh_xyz"], [AxisRef.parse(text)])


def test_000_172_the_same_with_one_mesh_axis_and_with_two() -> None:
    split = sharding('<@mesh_42, [{"x"}, {"y"}]>')
    full = sharding('<@mesh_full, [{"devices":(1)4}, {"devices":(4)2}]>')
    assert split.is_equivalent(full, (4, 4))
    assert split.device_slices((4, 4)) == full.device_slices((4, 4))


def test_000_210_meshes_with_other_axis_names() -> None:
    # <@mesh_0, "b"> is <@mesh_1, "z">.
    assert sharding('<@mesh_0, [{"b"}]>').is_equivalent(sharding('<@mesh_1, [{"z"}]>'), (4,))
    assert sharding('<@mesh_0, [{"a"}]>').is_equivalent(sharding('<@mesh_1, [{"x", "y"}]>'), (4,))


def test_000_226_priorities() -> None:
    text = '<@mesh, [{"x"}p1, {"y"}, {"z", ?}p2]>'
    found = TensorSharding.parse(text, Mesh({"w": 6, "x": 2, "y": 4, "z": 2}))
    assert [dim.priority for dim in found.dims] == [1, None, 2]
    # The document writes a brace after "]" and in the grammar of a sharding: a slip of the pen.
    with pytest.raises(ShardcoreError):
        TensorSharding.parse(text.replace("]>", "], replicated={} }>"))


def test_000_119_a_reshape_takes_sub_axes() -> None:
    module = Module.parse("""
sdy.mesh @mesh_x = <["x"=4]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh_x, [{"x"}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.negate %0 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}""")
    result = module.propagate(keep_sub_axes_on_io=True)
    assert str(result["%0"].sharding) == '<@mesh_x, [{"x":(1)2}, {"x":(2)2}]>'
    assert not result.partition().collectives  # nothing is sent: line 121
    # Line 131: without the flag sub-axes on inputs and outputs are gathered.
    (gather,) = {each.kind for each in module.propagate().partition().collectives}
    assert gather == "all_gather"


def test_003_012_a_mesh_from_devices_and_names() -> None:
    mesh = Mesh(devices=((0, 1), (2, 3)), axis_names=("X", "Y"))
    assert mesh == Mesh({"X": 2, "Y": 2})
    turned = Mesh(devices=np.arange(8).reshape(4, 2).T, axis_names=("X", "Y"))
    assert turned == Mesh({"X": 2, "Y": 4}, device_ids=[0, 2, 4, 6, 1, 3, 5, 7])
    assert Mesh(devices=range(3), axis_names="x") == Mesh({"x": 3})
    for devices, names, message in [
        (((0, 1), (2,)), ("X", "Y"), "rows of 2 and of 1"),
        ((0, 1), ("X", "Y"), 'no dim for axis "Y"'),
        (((0, 1), (2, 3)), ("X",), "more dims than"),
        ((0, 0), ("X",), "device"),
        ((), ("X",), "size"),
    ]:
        with pytest.raises(VerificationError, match=message) as caught:
            Mesh(devices=devices, axis_names=names)
        assert caught.value.code == "invalid-mesh"
    with pytest.raises(TypeError, match="axis_names"):
        Mesh(devices=(0, 1))
    with pytest.raises(TypeError, match="axis_names"):
        Mesh({"x": 2}, devices=(0, 1), axis_names="x")


def test_000_129_sub_axes_on_outputs_in_another_form() -> None:
    result = lower(
        lambda x: {"y": jnp.reshape(x, (2, 4))},
        jax.ShapeDtypeStruct((8,), jnp.float32),
        mesh={"x": 4},
        in_shardings=P("x"),
    ).propagate()
    (given,) = result.in_hlo_shardings
    assert str(given) == "{devices=[4]<=[4]}"
    assert result.kwarg_hlo_shardings == {}
    found = result.out_hlo_shardings["y"]
    assert str(found) == "{devices=[2,2]<=[4]}"
    assert result.out_specs == {"y": P()}
    # JAX takes it over a mesh that is split. (JAX has no PositionalSharding any more.)
    named = named_sharding(found)
    assert named.shard_shape((2, 4)) == (1, 2)
    assert dict(named.mesh.shape) == {"x": 2, "y": 2}
    text = '<@mesh, [{"x":(2)2}, {"x":(1)2}]>'
    turned = TensorSharding.parse(text, MESHES["mesh_x"])
    devices = jax.devices()
    if len(devices) >= 4:
        places = named_sharding(turned, devices[:4]).devices_indices_map((2, 4))
        mine = turned.device_slices((2, 4))
        assert {device.id: where for device, where in places.items()} == {
            number: tuple(slice(part.start, part.stop) for part in where)
            for number, where in mine.items()
        }
    with pytest.raises(LoweringError, match="4 devices"):
        named_sharding(found, devices[:3])
    assert named_sharding(HloSharding.parse("{replicated}"), rank=2).spec == P()


def test_dims_that_do_not_divide_are_padded_everywhere() -> None:
    """Line 244: a dim of d elements over n shards is padded, inputs and outputs included."""
    ty, sharding = "tensor<7x3x8xf32>", '#sdy.sharding<@mesh, [{"x"}, {"y"}, {"z"}]>'
    module = Module.parse(
        f"""sdy.mesh @mesh = <["x"=8, "y"=2, "z"=3]>
        func.func @main(%a: {ty} {{sdy.sharding = {sharding}}}) -> {ty} {{
          %0 = stablehlo.negate %a {{
            sdy.sharding = #sdy.sharding_per_value<[{sharding.removeprefix("#sdy.sharding")}]>
          }} : {ty}
          return %0 : {ty}
        }}"""
    )
    array = np.arange(168, dtype=np.float32).reshape(7, 3, 8)
    pipeline = "builtin.module(func.func(sdy-pad-for-divisibility))"
    PassManager.parse(pipeline, shardy="0.10").run(module)
    assert str(module["%0"].type) == "tensor<8x4x9xf32>"
    np.testing.assert_array_equal(module.simulate(array)[0], -array)
