"""Manual computations: functions that they call, and products along axes that are not manual."""

from __future__ import annotations

import numpy as np
import pytest
import shardcore
from shardcore.partition.policies import POLICIES

from tests.spmd import generate


def asking(body: str) -> shardcore.Module:
    """A program with a function that asks for the device."""
    return shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x12xi32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}})
    -> tensor<8x12xi32> {{
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}, {{"y"}}]>]
      out_shardings=[<@mesh, [{{"x"}}, {{"y"}}]>] manual_axes={{"x", "y"}} (%b: tensor<4x3xi32>) {{
    %1 = func.call @outer(%b) : (tensor<4x3xi32>) -> tensor<4x3xi32>
    sdy.return %1 : tensor<4x3xi32>
  }} : (tensor<8x12xi32>) -> tensor<8x12xi32>
  {body}
}}
func.func private @outer(%a: tensor<4x3xi32>) -> tensor<4x3xi32> {{
  %0 = func.call @asks() : () -> tensor<4x3xi32>
  %1 = stablehlo.add %a, %0 : tensor<4x3xi32>
  return %1 : tensor<4x3xi32>
}}
func.func private @asks() -> tensor<4x3xi32> {{
  %0 = stablehlo.partition_id : tensor<ui32>
  %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<4x3xi32>
  return %2 : tensor<4x3xi32>
}}""")


@pytest.mark.parametrize("policy", POLICIES)
def test_functions_of_manual_computations_ask_for_the_device(policy: str) -> None:
    """JAX outlines the bodies of loops in a ``shard_map``."""
    module = asking("return %0 : tensor<8x12xi32>")
    found = module.propagate().partition(policy).simulate(np.zeros((8, 12), np.int32))
    expected = np.arange(8, dtype=np.int32).reshape(2, 4).repeat(4, 0).repeat(3, 1)
    np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize("policy", POLICIES)
def test_edges_that_propagation_needed_have_no_say(policy: str) -> None:
    """With priorities an edge may have an axis twice, until what does not divide is cut off."""
    result = shardcore.Module.parse("""
sdy.mesh @mesh = <["a"=2, "b"=3]>
func.func @main(%a: tensor<8x9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>})
    -> tensor<8x9xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"a", "b"}p3, {?}p0]>]
      out_shardings=[<@mesh, [{?}, {?}]>] manual_axes={} (%b: tensor<8x9xf32>) {
    %1 = stablehlo.abs %b : tensor<8x9xf32>
    sdy.return %1 : tensor<8x9xf32>
  } : (tensor<8x9xf32>) -> tensor<8x9xf32>
  return %0 : tensor<8x9xf32>
}""").propagate()
    found = result.partition(policy)
    given = np.arange(72, dtype=np.float32).reshape(8, 9) - 30
    np.testing.assert_array_equal(found.simulate(given)[0], np.abs(given))
    assert not result.cost(hardware="tpu-v5e", policy=policy).collectives


@pytest.mark.parametrize("policy", POLICIES)
def test_functions_that_ask_for_the_device_are_not_called_elsewhere(policy: str) -> None:
    module = asking("""%5 = func.call @asks() : () -> tensor<4x3xi32>
  %6 = stablehlo.concatenate %5, %5, dim = 0
      : (tensor<4x3xi32>, tensor<4x3xi32>) -> tensor<8x3xi32>
  %7 = stablehlo.concatenate %6, %6, %6, %6, dim = 1 : (tensor<8x3xi32>, tensor<8x3xi32>,
      tensor<8x3xi32>, tensor<8x3xi32>) -> tensor<8x12xi32>
  %8 = stablehlo.add %0, %7 : tensor<8x12xi32>
  return %8 : tensor<8x12xi32>""")
    with pytest.raises(shardcore.PartitionError, match="asks which device it is"):
        module.propagate().partition(policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_products_in_manual_computations_are_not_cut_along_manual_axes(policy: str) -> None:
    """Devices that differ in a manual axis hold different right sides."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) {
  %0 = sdy.manual_computation(%a, %b) in_shardings=[<@mesh, [{?}, {}]>, <@mesh, [{?}, {"y"}]>]
      out_shardings=[<@mesh, [{?}, {"y"}]>] manual_axes={"y"}
      (%c: tensor<8x16xf32>, %d: tensor<16x2xf32>) {
    %1 = sdy.sharding_constraint %d <@mesh, [{"x"}, {}]> : tensor<16x2xf32>
    %2 = stablehlo.dot_general %c, %1, contracting_dims = [1] x [0]
        : (tensor<8x16xf32>, tensor<16x2xf32>) -> tensor<8x2xf32>
    %3 = sdy.sharding_constraint %2 <@mesh, [{"x"}, {}]> : tensor<8x2xf32>
    sdy.return %3 : tensor<8x2xf32>
  } : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}""")
    assert shardcore.prove(module.propagate().partition(policy)).is_proven


FREE = generate.MeshCase('<["a"=2, "b"=2, "c"=2]>', {'"a"': 2, '"c"': 2}, 8)
"""A mesh, and the axes of it that are free where "b" is manual."""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("before", generate.shardings(FREE, 2))
def test_nothing_is_sent_along_manual_axes(before: str, policy: str) -> None:
    """Values are resharded along the free axes, in a function, from one sharding to all others."""
    tensor = "tensor<4x8xi32>"
    lines, total = [], "%at"
    for index, after in enumerate(generate.shardings(FREE, 2)):
        lines += [
            f"%to_{index} = sdy.sharding_constraint %at {after} : {tensor}",
            f"%new_{index} = stablehlo.negate %to_{index} : {tensor}",
            f"%sum_{index} = stablehlo.add {total}, %new_{index} : {tensor}",
        ]
        total = f"%sum_{index}"
    body = "\n".join(lines)
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = {FREE.text}
func.func @main(%a: tensor<8x8xi32>) -> tensor<8x8xi32> {{
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"b", ?}}, {{?}}]>]
      out_shardings=[<@mesh, [{{"b", ?}}, {{?}}]>] manual_axes={{"b"}} (%b: {tensor}) {{
    %1 = func.call @everywhere(%b) : ({tensor}) -> {tensor}
    sdy.return %1 : {tensor}
  }} : (tensor<8x8xi32>) -> tensor<8x8xi32>
  return %0 : tensor<8x8xi32>
}}
func.func private @everywhere(%a: {tensor}) -> {tensor} {{
  %at = sdy.sharding_constraint %a {before} : {tensor}
  {body}
  return {total} : {tensor}
}}""")
    assert shardcore.prove(module.propagate().partition(policy)).is_proven


def test_chains_of_functions_ask_for_the_device() -> None:
    """What is manual around the first call is so around the last."""
    count = 3000
    chain = "".join(
        f"""
func.func private @f{at}(%a: tensor<4xi32>) -> tensor<4xi32> {{
  %0 = func.call @f{at + 1}(%a) : (tensor<4xi32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}}"""
        for at in range(count)
    )
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xi32>) -> tensor<8xi32> {{
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{{"x"}}]>]
      out_shardings=[<@mesh, [{{"x"}}]>] manual_axes={{"x"}} (%b: tensor<4xi32>) {{
    %1 = func.call @f0(%b) : (tensor<4xi32>) -> tensor<4xi32>
    sdy.return %1 : tensor<4xi32>
  }} : (tensor<8xi32>) -> tensor<8xi32>
  return %0 : tensor<8xi32>
}}{chain}
func.func private @f{count}(%a: tensor<4xi32>) -> tensor<4xi32> {{
  %0 = stablehlo.partition_id : tensor<ui32>
  %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<4xi32>
  return %2 : tensor<4xi32>
}}""")
    partitioned = module.propagate().partition("shardy")
    assert partitioned.sent_bytes == 0
    assert str(partitioned.module).count("stablehlo.partition_id") == 1


BY_AXES = """sdy.mesh @mesh = <["x"=2, "y"=4]IDS>
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>]
      out_shardings=[<@mesh, [{"x"}, {"y"}]>] manual_axes={"x", "y"} (%b: tensor<4x2xf32>) {
    %1 = "stablehlo.all_reduce"(%b) <{
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [AXES]>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids
    }> ({
    ^bb0(%c: tensor<f32>, %d: tensor<f32>):
      %2 = stablehlo.add %c, %d : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    sdy.return %1 : tensor<4x2xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""


@pytest.mark.parametrize(
    ("ids", "axes", "groups"),
    [
        ("", ['<name = "x">'], [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("", ['<name = "y">', '<name = "x">'], [[0, 4, 1, 5, 2, 6, 3, 7]]),
        ("", ['<name = "y", sub_axis_info = (2)2>'], [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("", ['<name = "y", sub_axis_info = (1)2>'], [[0, 2], [1, 3], [4, 6], [5, 7]]),
        (
            ", device_ids=[7, 6, 5, 4, 3, 2, 1, 0]",
            ['<name = "x">'],
            [[7, 3], [6, 2], [5, 1], [4, 0]],
        ),
        ("", [], [[device] for device in range(8)]),
    ],
)
def test_groups_by_axes_are_listed(ids: str, axes: list[str], groups: list[list[int]]) -> None:
    """JAX writes them since 0.11; the program of one device has no meshes."""
    written = ", ".join(f"#stablehlo.axis_ref{axis}" for axis in axes)
    text = BY_AXES.replace("IDS", ids).replace("AXES", written)
    partitioned = shardcore.Module.parse(text, shardy="0.12").propagate().partition()
    type_ = f"tensor<{len(groups)}x{len(groups[0])}xi64>"
    assert f"replica_groups = dense<{groups}> : {type_}" in str(partitioned.module)
