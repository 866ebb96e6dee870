"""Shardy, "Sharding representation": what open dims, replicated axes and priorities mean for
propagation.
"""

from __future__ import annotations

import pytest
from shardcore import DimSharding, Mesh, Module, TensorSharding

MESH = '<["x"=2, "y"=4, "z"=2]>'


def completed(
    first: str, second: str, op: str = "add", mesh: str = MESH, **options
) -> dict[str, str]:
    """The shardings of two operands and the result of an elementwise op."""
    module = Module.parse(
        f"""sdy.mesh @mesh = {mesh}
func.func @main(%a: tensor<48x48xf32> {{sdy.sharding = #sdy.sharding<@mesh, {first}>}},
    %b: tensor<48x48xf32> {{sdy.sharding = #sdy.sharding<@mesh, {second}>}}) -> tensor<48x48xf32> {{
  %0 = stablehlo.{op} %a, %b : tensor<48x48xf32>
  return %0 : tensor<48x48xf32>
}}"""
    )
    result = module.propagate(**options)
    found = {"%a": result.arguments()[0].sharding, "%b": result.arguments()[1].sharding}
    found["%0"] = result["%0"].sharding
    return {
        name: str(each).removeprefix("<@mesh, ").removesuffix(">") for name, each in found.items()
    }


def test_000_063_an_open_dim_may_be_sharded_further_and_a_closed_one_not() -> None:
    # Lines 63, 69 and 75 to 82: {"x"} stays, {"z", ?} may become {"z", "y"}.
    found = completed('[{"x"}, {"z", ?}]', '[{?}, {"z", "y"}]')
    assert found["%a"] == '[{"x"}, {"z", "y"}]'
    found = completed('[{"x"}, {"z", ?}]', '[{"x", "y"}, {?}]')
    assert found["%a"] == '[{"x"}, {"z"}]'


def test_000_096_explicitly_replicated_axes_shard_nothing() -> None:
    # Line 104: "y" is replicated and cannot shard dim 1, which is open; "z" may.
    found = completed('[{"x"}, {?}], replicated={"y"}', '[{?}, {"z", "y"}]')
    assert found["%a"] == '[{"x"}, {"z"}]'
    # Without it, "y" shards it too.
    assert completed('[{"x"}, {?}]', '[{?}, {"z", "y"}]')["%a"] == '[{"x"}, {"z", "y"}]'


def test_000_176_replicated_sub_axes_shard_nothing() -> None:
    found = completed('[{?}, {?}], replicated={"y":(2)2}', '[{"y"}, {}]', keep_sub_axes_on_io=True)
    assert found["%a"] == '[{"y":(1)2}, {}]'


def test_000_196_tensors_on_two_meshes_in_one_program() -> None:
    # Line 206: an op on one mesh uses a tensor on another, resharded to it.
    mesh_0, mesh_1 = (
        Mesh({"a": 4, "b": 2}),
        Mesh({"a": 4, "b": 2}, device_ids=[7, 6, 5, 4, 3, 2, 1, 0]),
    )
    one = TensorSharding(mesh_0, ["a"])
    other = TensorSharding(mesh_1, ["a"])
    assert not one.is_equivalent(other, (8,))
    assert one.device_slices((8,))[0] == other.device_slices((8,))[7]
    module = Module.parse("""
sdy.mesh @mesh_0 = <["a"=4, "b"=2]>
sdy.mesh @mesh_1 = <["a"=4, "b"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh_0, [{"a"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh_1, [{"a"}]>}) {
  %0 = sdy.sharding_constraint %x <@mesh_1, [{"a"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}""")
    assert set(module.meshes) == {"mesh_0", "mesh_1"}
    (moved,) = module.propagate().partition().collectives
    assert moved.kind == "collective_permute"


PRIORITIES = [
    ("228: p0 goes first", '[{"x"}p1, {?}]', '[{?}, {"x"}p0]', "%0", '[{}, {"x"}]'),
    ("228: p1 goes second", '[{"x"}p0, {?}]', '[{?}, {"x"}p1]', "%0", '[{"x"}, {}]'),
    ("236: gaps are allowed", '[{"x"}p7, {?}]', '[{?}, {"x"}p2]', "%0", '[{}, {"x"}]'),
    ("222: y is p0", '[{"x"}p1, {?}]', '[{?}, {"x"}]', "%0", '[{}, {"x"}]'),
    # Line 232: {"z", ?}p2 is not overridden by p0, and may be sharded further afterwards.
    ("232: is not overridden", '[{"z", ?}p2, {?}]', '[{"x", "y"}p0, {?}]', "%a", '[{"z"}, {}]'),
    ("232: is sharded further", '[{"z", ?}p2, {?}]', '[{"z", "y"}p0, {?}]', "%a", '[{"z", "y"}, {}]'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "value", "sharding"),
    [row[1:] for row in PRIORITIES],
    ids=[row[0] for row in PRIORITIES],
)
def test_000_228_priorities(first: str, second: str, value: str, sharding: str) -> None:
    assert completed(first, second)[value] == sharding


def test_000_226_the_program_after_megatron_alone() -> None:
    # Batch parallelism is p0, Megatron p1, ZeRO p2: the program after each can be looked at.
    first, second = '[{"x"}p0, {"y"}p1]', '[{"z", ?}p2, {?}]'
    after = [completed(first, second, up_to_priority=priority)["%0"] for priority in (0, 1, 2)]
    assert after[0] == '[{"x"}, {}]'
    assert after[1] == '[{"x"}, {"y"}]'


def test_000_240_replicated_axes_and_empty_closed_dims_have_no_priority() -> None:
    with pytest.raises(Exception, match="priority"):
        DimSharding([], is_closed=True, priority=1)
    assert DimSharding([], is_closed=False, priority=1).priority == 1


def test_000_250_a_dim_that_does_not_divide_is_padded() -> None:
    mesh = Mesh({"x": 8, "y": 2, "z": 3})
    sharding = TensorSharding(mesh, ["x", "y", "z"])
    padding = sharding.padding((7, 3, 8))
    assert sharding.local_shape((7, 3, 8)) == (1, 2, 3)
    assert padding[0] == (0, 0, 0)
    # The last along each axis: 8 - 7, 2 * 2 - 3, 3 * 3 - 8.
    assert padding[mesh.num_devices - 1] == (1, 1, 1)


GRAMMAR = [
    "[{}, {}]",
    '[{"x"}, {?}]',
    '[{"x", "y"}, {"z", ?}]',
    '[{"y":(1)2}, {"y":(2)2, ?}]',
    '[{"x"}p1, {"z", ?}p2], replicated={"y"}',
    '[{}, {?}p3], replicated={"x", "y":(1)2}',
]


@pytest.mark.parametrize("dims", GRAMMAR)
def test_000_256_the_grammar_there_and_back(dims: str) -> None:
    text = f"<@mesh, {dims}>"
    assert str(TensorSharding.parse(text, Mesh.parse(MESH))) == text


@pytest.mark.parametrize(
    "text", [MESH, "<[]>", '<["a"=1]>', '<["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>']
)
def test_000_256_meshes_there_and_back(text: str) -> None:
    assert str(Mesh.parse(text)) == text
