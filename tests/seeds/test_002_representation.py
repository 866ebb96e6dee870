"""Shardy, "Sharding representation", in another translation: every example, by its lines.

The text is that of document 000, whose tests say what each rule means for propagation.
"""

from __future__ import annotations

import pytest
from shardcore import Mesh, Module, ShardcoreError, TensorSharding

from tests.seeds.test_000_propagation import completed
from tests.seeds.test_000_representation import MESHES, sharding, sub

EXAMPLES = [
    ("033: two dims", '<@mesh_xy, [{"x"}, {"z", "y"}]>', (4, 8), (2, 1)),
    ("056: an open dim", '<@mesh_xy, [{"x"}, {"z", ?}]>', (4, 8), (2, 4)),
    ("072: replicated", '<@mesh_xy, [{"x"}, {?}], replicated={"y"}>', (4, 8), (2, 8)),
    ("122: sub-axes", '<@mesh_x, [{"x":(1)2}, {"x":(2)2}]>', (2, 4), (1, 2)),
    ("131: one sub-axis", '<@mesh_xyz, [{"x"}, {"y":(2)2}]>', (4, 8), (2, 4)),
    ("145: a replicated one", '<@mesh_xyz, [{"x"}, {"y":(2)2}], replicated={"y":(1)2}>', (4, 8), (2, 4)),
    ("198: padded", '<@mesh_odd, [{"x"}, {"y"}, {"z"}]>', (7, 3, 8), (1, 2, 3)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shape", "local"), [row[1:] for row in EXAMPLES], ids=[row[0] for row in EXAMPLES]
)
def test_002_examples(text: str, shape: tuple[int, ...], local: tuple[int, ...]) -> None:
    found = sharding(text)
    assert str(found) == text
    assert found.local_shape(shape) == local
    sizes = {tuple(len(range(*part.indices(size))) for part, size in zip(held, shape, strict=True))
             for held in found.device_slices(shape).values()}  # fmt: skip
    assert max(sizes) == local


def test_002_015_a_mesh_is_a_list_of_devices_in_another_shape() -> None:
    mesh = Mesh.parse('<["x"=2, "y"=2]>')
    assert mesh == Mesh(devices=[[0, 1], [2, 3]], axis_names=("x", "y"))
    blocks = TensorSharding(mesh, ["x", "y"]).device_slices((2, 2))
    assert [[part.start for part in blocks[device]] for device in range(4)] == [
        [0, 0],
        [0, 1],
        [1, 0],
        [1, 1],
    ]


INVARIANTS = [
    ("035: as many dims as the tensor has", '<@mesh_xy, [{"x"}]>', "rank"),
    ("036: axes of the mesh", '<@mesh_xy, [{"q"}, {}]>', "unknown axis"),
    ("037: an axis once", '<@mesh_xy, [{"x"}, {"x"}]>', "duplicate"),
    ("150: sub-axes do not overlap", '<@mesh_xyz, [{"y":(1)4}, {"y":(2)4}]>', "overlap"),
    ("153: nor follow each other", '<@mesh_xyz, [{"y":(1)2, "y":(2)4}, {}]>', "consecutive"),
    ("189: priorities have an effect", "<@mesh_xy, [{}p1, {}]>", "priority"),
]


@pytest.mark.parametrize(
    ("text", "message"), [row[1:] for row in INVARIANTS], ids=[row[0] for row in INVARIANTS]
)
def test_002_invariants(text: str, message: str) -> None:
    meshes = "".join(f"sdy.mesh @{name} = {mesh}\n" for name, mesh in MESHES.items())
    argument = f"%a: tensor<4x8xf32> {{sdy.sharding = #sdy.sharding{text}}}"
    with pytest.raises(ShardcoreError, match=message) as caught:
        Module.parse(f"{meshes}func.func @f({argument}) {{ return }}")
    assert caught.value.line == len(MESHES) + 1


@pytest.mark.parametrize(
    ("mesh", "axes", "text"),
    [
        ("mesh_cab", ["a", "c"], '{"c", "a"}'),
        ("mesh_xyz", [sub("y", 4, 2), "x", sub("y", 1, 2)], '{"x", "y":(1)2, "y":(4)2}'),
    ],
    ids=["065: in the order of the mesh", "147: by pre-size"],
)
def test_002_replicated_axes_have_an_order(mesh: str, axes: list, text: str) -> None:
    found = TensorSharding(MESHES[mesh], [None], replicated=axes, mesh_name=mesh)
    assert str(found) == f"<@{mesh}, [{{}}], replicated={text}>"


def test_002_082_a_reshape_that_sends_nothing() -> None:
    module = Module.parse("""
sdy.mesh @mesh_x = <["x"=4]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh_x, [{"x"}]>})
    -> (tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh_x, [{"x":(1)2}, {"x":(2)2}]>}) {
  %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}""")
    result = module.propagate(keep_sub_axes_on_io=True)
    assert str(result["%0"].sharding) == '<@mesh_x, [{"x":(1)2}, {"x":(2)2}]>'
    assert result.partition().collectives == ()


def test_002_108_a_sub_axis_is_one_of_three_parts_of_an_axis() -> None:
    # An axis of n as [m, k, n / (m k)]: "x":(m)k is the middle one.
    mesh = Mesh({"x": 24})
    for pre_size, size in [(1, 2), (2, 3), (4, 6), (3, 8)]:
        axis = sub("x", pre_size, size)
        post_size = 24 // (pre_size * size)
        assert axis.stride_in(mesh) == post_size
        blocks = TensorSharding(mesh, [[axis]]).device_slices((size,))
        assert [blocks[device][0].start for device in range(24)] == [
            device // post_size % size for device in range(24)
        ]


def test_002_136_two_spellings_of_one_sharding() -> None:
    one = sharding('<@mesh_42, [{"x"}, {"y"}]>')
    other = sharding('<@mesh_full, [{"devices":(1)4}, {"devices":(4)2}]>')
    assert one.is_equivalent(other, (4, 4))


def test_002_155_sub_axes_that_follow_each_other_are_one() -> None:
    # The document's "x":(1)2 and "x":(2)4 are "x":(1)8.
    found = TensorSharding(Mesh({"x": 16}), [[sub("x", 1, 2), sub("x", 2, 4)]])
    assert found.dims[0].axes == (sub("x", 1, 8),)


def test_002_161_devices_in_any_order() -> None:
    # GSPMD has lists of devices that no axes of one mesh denote: a mesh of its own does.
    found = TensorSharding.from_hlo("{devices=[4]3,1,0,2}")
    assert [found.device_slices((4,))[device][0].start for device in (3, 1, 0, 2)] == [0, 1, 2, 3]
    assert str(found.to_hlo()) == "{devices=[4]3,1,0,2}"


def test_002_170_meshes_of_the_same_devices() -> None:
    assert sharding('<@mesh_0, [{"b"}]>').is_equivalent(sharding('<@mesh_1, [{"z"}]>'), (2,))


def test_002_178_priorities() -> None:
    mesh = Mesh({"w": 6, "x": 2, "y": 4, "z": 2})
    found = TensorSharding.parse('<@mesh, [{"x"}p1, {"y"}, {"z", ?}p2]>', mesh)
    assert [dim.priority for dim in found.dims] == [1, None, 2]
    # Line 181: all of p0 goes through the whole program before p1.
    assert completed('[{"x"}p1, {?}]', '[{?}, {"x"}]')["%0"] == '[{}, {"x"}]'
    assert completed('[{"x"}p1, {?}]', '[{?}, {"x"}p2]')["%0"] == '[{"x"}, {}]'


@pytest.mark.parametrize(
    "dims",
    ["[{}, {}]", "[{?}, {?}]", '[{"x"}, {"z", ?}]', '[{"y":(1)2, ?}, {"y":(2)2}]'],
)
def test_002_201_the_grammar(dims: str) -> None:
    text = f'<@mesh_xyz, {dims}, replicated={{"y":(4)2}}>'
    assert str(sharding(text)) == text
