"""Programs of one device on eight: every collective, against XLA's devices as replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardcore import Mesh, Module
from shardcore.errors import SimulationError
from shardcore.simulate.dtypes import DTYPES

from tests.simulate import agree, xla
from tests.simulate.check import few, function
from tests.simulate.numbers import small

DEVICES = 8
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>"
ELEMENTS = ("f32", "f64", "bf16", "i32", "i8", "ui32")

Groups = list[list[int]]


def check(text: str, *stacked: np.ndarray, bound: float = 0) -> None:
    """Fails unless all devices have the same on both sides; arguments are stacked by device."""
    got = Module.parse(text).simulate(*stacked, devices=DEVICES)
    want = xla.run_on_devices(text, stacked, DEVICES)
    for at, pair in enumerate(zip(got, want, strict=True)):
        agree.assert_same(*pair, bound, f"result {at}")


def dense(groups: Groups) -> str:
    rows = ", ".join(f"[{', '.join(map(str, group))}]" for group in groups)
    return f"dense<[{rows}]> : tensor<{len(groups)}x{len(groups[0])}xi64>"


def body_of(name: str, element: str) -> str:
    scalar = f"tensor<{element}>"
    return (
        f"({{ ^bb0(%p: {scalar}, %q: {scalar}): %s = stablehlo.{name} %p, %q : {scalar} "
        f"stablehlo.return %s : {scalar} }})"
    )


def program(element: str, groups: Groups, pairs: Groups, name: str) -> str:
    """Every collective over a tensor of 8 by 4."""
    size = len(groups[0])
    kind = f"tensor<8x4x{element}>"
    at = f"replica_groups = {dense(groups)}"
    tall, part = f"tensor<{8 * size}x4x{element}>", f"tensor<{8 // size}x4x{element}>"
    wide = f"tensor<{8 // size}x{4 * size}x{element}>"
    with_ids = "use_global_device_ids"
    body = [
        "%id = stablehlo.partition_id : tensor<ui32>",
        f'%0 = "stablehlo.all_gather"(%x) <{{all_gather_dim = 0 : i64, {at}, '
        f"{CHANNEL.format(1)}, {with_ids}}}> : ({kind}) -> {tall}",
        f'%1 = "stablehlo.all_reduce"(%x) <{{{at}, {CHANNEL.format(2)}, {with_ids}}}> '
        f"{body_of(name, element)} : ({kind}) -> {kind}",
        f'%2 = "stablehlo.reduce_scatter"(%x) <{{scatter_dimension = 0 : i64, {at}, '
        f"{CHANNEL.format(3)}, {with_ids}}}> {body_of(name, element)} : ({kind}) -> {part}",
        '%3 = "stablehlo.all_to_all"(%x) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, '
        f"split_count = {size} : i64, {at}, {CHANNEL.format(4)}}}> : ({kind}) -> {wide}",
        f'%4 = "stablehlo.collective_permute"(%x) <{{source_target_pairs = {dense(pairs)}, '
        f"{CHANNEL.format(5)}}}> : ({kind}) -> {kind}",
    ]
    results = {"0": tall, "1": kind, "2": part, "3": wide, "4": kind, "id": "tensor<ui32>"}
    return function(body, {"x": kind}, results)


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Groups, Groups]:
    """Devices in groups of one size, in any order; who sends to whom."""
    order = draw(st.permutations(range(DEVICES)))
    size = draw(st.sampled_from([1, 2, 4, 8]))
    groups = [list(order[at : at + size]) for at in range(0, DEVICES, size)]
    targets = draw(st.permutations(range(DEVICES)))
    count = draw(st.integers(1, DEVICES))
    return groups, [list(pair) for pair in list(zip(order, targets, strict=True))[:count]]


@few
@given(
    layouts(),
    st.sampled_from(ELEMENTS),
    st.sampled_from(["add", "maximum", "minimum", "multiply"]),
    st.integers(0, 99),
)
def test_collectives(layout: tuple[Groups, Groups], element: str, name: str, seed: int) -> None:
    x = small(np.random.default_rng(seed), (DEVICES, 8, 4), element)
    check(program(element, *layout, name), x)


@pytest.mark.parametrize("element", ["f32", "f64", "bf16"])
def test_sums_of_minus_zeros_keep_their_sign(element: str) -> None:
    x = -np.zeros((DEVICES, 8, 4), DTYPES[element])
    text = program(element, [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 1]], "add")
    _, reduced, scattered, *_ = Module.parse(text).simulate(x, devices=DEVICES)
    assert np.signbit(reduced).all()
    assert np.signbit(scattered).all()


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_reducers_of_booleans(name: str) -> None:
    x = np.random.default_rng(0).integers(0, 2, (DEVICES, 8, 4)).astype(bool)
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]]
    kind = "tensor<8x4xi1>"
    body = [
        f'%r = "stablehlo.all_reduce"(%x) <{{replica_groups = {dense(groups)}, '
        f"{CHANNEL.format(1)}, use_global_device_ids}}> {body_of(name, 'i1')} : ({kind}) -> {kind}"
    ]
    text = function(body, {"x": kind}, {"r": kind})
    if name != "xor":  # XLA has no such collective.
        check(text, x)
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[name]
    halves = [combine.reduce(x[group], axis=0) for group in groups]
    [found] = Module.parse(text).simulate(x, devices=DEVICES)
    assert np.array_equal(found, np.repeat(halves, 4, axis=0))


@pytest.mark.parametrize("returned", ["%n", "%p"])
def test_reducers_of_their_own_combine_in_the_order_of_the_group(returned: str) -> None:
    scalar, kinds = "tensor<f32>", "tensor<3xf32>, tensor<f32>"
    body = (
        f"({{ ^bb0(%p: {scalar}, %q: {scalar}): %c = stablehlo.constant dense<0.5> : {scalar} "
        f"%m = stablehlo.multiply %p, %c : {scalar} %n = stablehlo.multiply %m, %q : {scalar} "
        f"stablehlo.return {returned} : {scalar} }})"
    )
    order = [3, 1, 4, 0, 5, 2, 6, 7]
    lines = [
        f'%r:2 = "stablehlo.all_reduce"(%x, %y) <{{replica_groups = {dense([order])}, '
        f"{CHANNEL.format(1)}, use_global_device_ids}}> {body} : ({kinds}) -> ({kinds})",
        "%0 = stablehlo.add %r#0, %r#0 : tensor<3xf32>",
        "%1 = stablehlo.add %r#1, %r#1 : tensor<f32>",
    ]
    arguments = {"x": "tensor<3xf32>", "y": scalar}
    text = function(lines, arguments, {"0": "tensor<3xf32>", "1": scalar})
    rng = np.random.default_rng(0)
    x, y = (2.0 ** rng.integers(-2, 3, shape) for shape in ((DEVICES, 3), (DEVICES,)))
    found = Module.parse(text).simulate(x, y, devices=DEVICES)
    for got, values in zip(found, (x, y), strict=True):
        wanted = values[3] if returned == "%p" else values.prod(axis=0) * 0.5**7
        assert np.array_equal(got, np.broadcast_to(2 * wanted, values.shape))


def test_a_broadcast_and_devices_that_are_in_no_group() -> None:
    kind = "tensor<4xf32>"
    body = [
        f'%0 = "stablehlo.collective_broadcast"(%x) <{{replica_groups = {dense([[2, 0, 5]])}, '
        f"{CHANNEL.format(1)}}}> : ({kind}) -> {kind}"
    ]
    x = np.arange(32, dtype=np.float32).reshape(DEVICES, 4)
    [found] = Module.parse(function(body, {"x": kind}, {"0": kind})).simulate(x, devices=DEVICES)
    wanted = np.zeros_like(x)
    wanted[[2, 0, 5]] = x[2]
    assert np.array_equal(found, wanted)


def groups_program(attributes: str) -> str:
    kind = "tensor<f32>"
    body = [
        f'%0 = "stablehlo.all_reduce"(%x) <{{{attributes}}}> '
        f"{body_of('add', 'f32')} : ({kind}) -> {kind}"
    ]
    return function(body, {"x": kind}, {"0": kind})


@pytest.mark.parametrize(
    ("attributes", "groups"),
    [
        # Groups of replicas, for each partition by itself.
        ("replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        # Groups of replicas, with all of their partitions.
        (
            f"replica_groups = dense<[[0], [1]]> : tensor<2x1xi64>, {CHANNEL.format(1)}",
            [[0, 1, 2, 3], [4, 5, 6, 7]],
        ),
        # Groups of devices.
        (
            "replica_groups = dense<[[0, 5], [1, 2], [4, 3], [6, 7]]> : tensor<4x2xi64>, "
            f"{CHANNEL.format(1)}, use_global_device_ids",
            [[0, 5], [1, 2], [4, 3], [6, 7]],
        ),
        # Shorter groups are filled up with -1.
        (
            "replica_groups = dense<[[0, 5, 1], [2, 7, -1], [3, 4, 6]]> : tensor<3x3xi64>, "
            f"{CHANNEL.format(1)}, use_global_device_ids",
            [[0, 5, 1], [2, 7], [3, 4, 6]],
        ),
        # One group of all.
        (
            f"replica_groups = dense<> : tensor<0x0xi64>, {CHANNEL.format(1)}",
            [list(range(8))],
        ),
    ],
)
def test_groups_are_those_of_the_specification(attributes: str, groups: Groups) -> None:
    x = 2.0 ** np.arange(8, dtype=np.float32)
    module = Module.parse(groups_program(attributes))
    [found] = module.simulate(x, devices=DEVICES, replicas=2)
    wanted = np.zeros(8, np.float32)
    for group in groups:
        wanted[group] = x[group].sum()
    assert np.array_equal(found, wanted)


def test_groups_along_axes_of_a_mesh() -> None:
    axes = [
        ('[#stablehlo.axis_ref<name = "y">]', [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (
            '[#stablehlo.axis_ref<name = "x", sub_axis_info = (1)2>]',
            [[0, 4], [1, 5], [2, 6], [3, 7]],
        ),
        ('[#stablehlo.axis_ref<name = "y">, #stablehlo.axis_ref<name = "x">]', [list(range(8))]),
        # As `sdy-convert-global-to-local` writes them.
        ('[#sdy<axis_ref"y">]', [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ('[#sdy<axis_ref"x":(1)2>]', [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ('[#sdy<axis_ref"x":(2)2>, #sdy<axis_ref"y">]', [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ]
    for listed, groups in axes:
        text = 'sdy.mesh @m = <["x"=4, "y"=2]>\n' + groups_program(
            f"replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = {listed}>, "
            f"{CHANNEL.format(1)}, use_global_device_ids"
        )
        x = 2.0 ** np.arange(8, dtype=np.float32)
        [found] = Module.parse(text).simulate(x, devices=DEVICES)
        wanted = np.zeros(8, np.float32)
        for group in groups:
            wanted[group] = x[group].sum()
        assert np.array_equal(found, wanted), listed


def test_ids_are_those_of_the_grid() -> None:
    body = [
        "%0 = stablehlo.replica_id : tensor<ui32>",
        "%1 = stablehlo.partition_id : tensor<ui32>",
    ]
    text = function(body, {}, {"0": "tensor<ui32>", "1": "tensor<ui32>"})
    module = Module.parse(text)
    replica, partition = module.simulate(devices=6, replicas=2)
    assert (replica.tolist(), partition.tolist()) == ([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2])
    with_attribute = Module.parse(f"module attributes {{mhlo.num_replicas = 3 : i32}} {{\n{text}}}")
    assert with_attribute.simulate(devices=6)[0].tolist() == [0, 0, 1, 1, 2, 2]
    assert [int(x) for x in module.simulate()] == [0, 0]


BRANCH = """
func.func @main(%p: tensor<i1>, %x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = "stablehlo.all_reduce"(%x) <{replica_groups = GROUPS, CHANNEL, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %2 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }, {
    stablehlo.return %x : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}"""


def branch(groups: Groups) -> Module:
    text = BRANCH.replace("GROUPS", dense(groups)).replace("CHANNEL", CHANNEL.format(1))
    return Module.parse(text)


def test_a_collective_in_a_branch_that_its_group_takes() -> None:
    module = branch([[0, 2], [1, 3]])
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    [found] = module.simulate(np.array([True, False, True, False]), x, devices=4)
    assert np.array_equal(found, np.array([[4, 6], [2, 3], [4, 6], [6, 7]]))


def test_a_collective_that_not_all_of_its_group_reach_is_refused() -> None:
    module = branch([[0, 1], [2, 3]])
    x = np.zeros((4, 2), np.float32)
    with pytest.raises(SimulationError) as caught:
        module.simulate(np.array([True, False, True, True]), x, devices=4)
    assert caught.value.code == "diverging-collective"
    assert caught.value.line == 4
    assert "device 0 but not by device 1" in caught.value.message
    assert caught.value.hint


def test_a_device_that_there_is_not_is_refused() -> None:
    x: Any = np.zeros(2, np.float32)
    for options in ({"devices": 2}, {}):
        with pytest.raises(SimulationError) as caught:
            branch([[0, 2], [1, 3]]).simulate(np.array(True), x, **options)
        assert caught.value.code == "unknown-device"


def test_what_is_the_same_on_all_devices_is_held_once() -> None:
    text = groups_program(
        f"replica_groups = {dense([list(range(8))])}, {CHANNEL.format(1)}, use_global_device_ids"
    )
    from shardcore.simulate import Simulator
    from shardcore.simulate.run import Grid, Run

    simulator = Simulator(Module.parse(text))
    run = Run(np.arange(8), Grid(1, 8), "")
    [found] = run.call(simulator._body, [np.arange(8, dtype=np.float32)])
    assert found.shape == (1,)
    [found] = run.call(simulator._body, [np.ones(1, np.float32)])
    assert (found.shape, found[0]) == ((1,), 8)


def ragged() -> Module:
    """Two devices that exchange rows as the documentation of JAX's ``ragged_all_to_all`` shows."""
    numbers = "tensor<2xi32>"
    line = (
        "%0 = stablehlo.custom_call @ragged_all_to_all(%x, %o, %a, %b, %c, %d) "
        "{api_version = 4 : i32, backend_config = {replica_groups = dense<[[0, 1]]> : "
        "tensor<1x2xi64>, channel_id = 1 : i64}} : "
        f"(tensor<3xi32>, tensor<4xi32>, {', '.join([numbers] * 4)}) -> tensor<4xi32>"
    )
    arguments = {"x": "tensor<3xi32>", "o": "tensor<4xi32>", **dict.fromkeys("abcd", numbers)}
    return Module.parse(function([line], arguments, {"0": "tensor<4xi32>"}))


def test_a_ragged_exchange() -> None:
    numbers = {
        "x": [[1, 2, 2], [3, 4, 0]],
        "o": [[0, 0, 0, 0], [0, 0, 0, 0]],
        "starts": [[0, 1], [0, 1]],
        "sizes": [[1, 2], [1, 1]],
        "targets": [[0, 0], [1, 2]],
        "received": [[1, 1], [2, 1]],
    }
    arrays = [np.array(rows, np.int32) for rows in numbers.values()]
    [found] = ragged().simulate(*arrays, devices=2)
    assert found.tolist() == [[1, 3, 0, 0], [2, 2, 4, 0]]
    arrays[-1] = np.array([[1, 1], [1, 1]], np.int32)
    with pytest.raises(SimulationError, match="device 0 sends 2 rows to device 1, which expects 1"):
        ragged().simulate(*arrays, devices=2)


def test_a_mesh_in_another_order_groups_its_devices() -> None:
    mesh = Mesh({"x": 2, "y": 2}, device_ids=[0, 2, 1, 3])
    assert mesh.device_ids == (0, 2, 1, 3)
    text = 'sdy.mesh @m = <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>\n' + groups_program(
        "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @m, axes = "
        f'[#stablehlo.axis_ref<name = "y">]>, {CHANNEL.format(1)}, use_global_device_ids'
    )
    [found] = Module.parse(text).simulate(2.0 ** np.arange(4, dtype=np.float32), devices=4)
    assert found.tolist() == [5, 10, 5, 10]
