"""What devices hold, and when two shardings are the same thing, against the oracle."""

from __future__ import annotations

import itertools

import shardcore
from hypothesis import given
from shardcore.report.placement import Placement

from tests.oracle import axis, slices
from tests.oracle.axis import AxisRef
from tests.oracle.mesh import Mesh
from tests.oracle.sharding import DimSharding, TensorSharding
from tests.property.choices import Choices, chosen
from tests.property.strategies import divisors, make_mesh, make_shape, make_sharding

anything = chosen(lambda c: c)


def to_ours(sharding: TensorSharding, mesh: Mesh) -> shardcore.TensorSharding:
    return shardcore.TensorSharding.parse(str(sharding), shardcore.Mesh.parse(str(mesh)))


def ends(part: tuple[slice, ...]) -> slices.Slice:
    return tuple((dim.start, dim.stop) for dim in part)


@given(anything)
def test_device_slices(c: Choices) -> None:
    mesh, shape = make_mesh(c, device_orders=True), make_shape(c)
    sharding = make_sharding(c, mesh, len(shape), unreduced=True)
    mine = to_ours(sharding, mesh)
    assert mine.local_shape(shape) == slices.local_shape(sharding, mesh, shape)
    held = slices.device_slices(sharding, mesh, shape)
    assert {d: ends(part) for d, part in mine.device_slices(shape).items()} == held
    padding = slices.device_padding(sharding, mesh, shape)
    assert mine.padding(shape) == padding
    device = c.of(list(held)[:256])
    assert ends(mine.shard_slice(shape, device)) == held[device]
    assert mine.shard_padding(shape, device) == padding[device]


def split_axes(c: Choices, mesh: Mesh) -> tuple[Mesh, dict[str, list[str]]]:
    """Write axes of `mesh` as two each; return also the names of the parts, major to minor."""
    axes: list[tuple[str, int]] = []
    parts = {}
    for name, size in mesh.axes:
        inner = divisors(size)[:-1]
        if inner and not c.one_in(3):
            major = c.of(inner)
            axes += [(f"{name}1", major), (f"{name}2", size // major)]
        else:
            axes.append((f"{name}1", size))
        parts[name] = [part for part, _ in axes if part[:-1] == name]
    return Mesh(tuple(axes), mesh.device_ids), parts


def on_split_axes(
    sharding: TensorSharding, mesh: Mesh, finer: Mesh, parts: dict[str, list[str]]
) -> TensorSharding | None:
    """Write the same sharding over the split axes; None if a sub-axis cannot be written so."""

    def rewrite(refs: tuple[AxisRef, ...]) -> tuple[AxisRef, ...] | None:
        written: list[AxisRef] = []
        for ref in refs:
            pre_size = 1
            for part in parts[ref.name]:
                size = finer.axis_size(part)
                # What of `ref` lies between pre_size and pre_size * size.
                whole = axis.axis_range(ref.name, pre_size, pre_size * size)
                seen = axis.AxisRef(ref.name, ref.start, ref.size_in(mesh))
                if not axis.can_coexist(whole, seen):
                    return None
                common = axis.overlap(whole, seen)
                if common is not None and common.size_in(mesh) == size:
                    written.append(AxisRef(part))
                elif common is not None:
                    written.append(AxisRef(part, common.start // pre_size, common.size_in(mesh)))
                pre_size *= size
        return tuple(written)

    lists = [rewrite(refs) for refs in (*(d.axes for d in sharding.dims), sharding.unreduced)]
    if any(refs is None for refs in lists):
        return None
    *dims, unreduced = [refs for refs in lists if refs is not None]
    return TensorSharding("finer", tuple(map(DimSharding, dims)), (), unreduced)


@given(anything)
def test_equivalent_on_split_axes(c: Choices) -> None:
    mesh, rank = make_mesh(c, device_orders=True), c.integer(1, 3)
    sharding = make_sharding(c, mesh, rank, unreduced=True)
    finer, parts = split_axes(c, mesh)
    same = on_split_axes(sharding, mesh, finer, parts)
    if same is not None:
        assert slices.is_equivalent(sharding, mesh, same, finer)
        assert to_ours(sharding, mesh).is_equivalent(to_ours(same, finer))


def other_axis_order(c: Choices, mesh: Mesh) -> Mesh:
    """Reorder the axes; half of the time every device keeps its coordinates."""
    order = c.permutation(range(len(mesh.axes)))
    axes = tuple(mesh.axes[index] for index in order)
    if c.one_in(2):
        return Mesh(axes, mesh.device_ids)
    by_place = {tuple(at.items()): device for device, at in mesh.placements()}
    devices = []
    for at in itertools.product(*(range(size) for _, size in axes)):
        named = {name: place for (name, _), place in zip(axes, at, strict=True)}
        devices.append(by_place[tuple((name, named[name]) for name, _ in mesh.axes)])
    return Mesh(axes, () if devices == sorted(devices) else tuple(devices))


@given(anything)
def test_equivalence(c: Choices) -> None:
    first_mesh = make_mesh(c, device_orders=True)
    second_mesh = c.of((first_mesh, other_axis_order(c, first_mesh), make_mesh(c)))
    shape = make_shape(c)
    first = make_sharding(c, first_mesh, len(shape), unreduced=True)
    if c.one_in(2) and second_mesh.axes:
        second = make_sharding(c, second_mesh, len(shape), unreduced=True)
    else:
        # The same text, which need not mean the same on the other mesh, nor be valid there.
        second, second_mesh = first, other_axis_order(c, first_mesh)
        sort = axis.mesh_order(second_mesh)
        second = TensorSharding(
            "mesh",
            first.dims,
            tuple(sorted(first.replicated, key=sort)),
            tuple(sorted(first.unreduced, key=sort)),
        )
    mine, other = to_ours(first, first_mesh), to_ours(second, second_mesh)
    expected = slices.is_equivalent(first, first_mesh, second, second_mesh)
    assert mine.is_equivalent(other) == expected
    expected = slices.is_equivalent(first, first_mesh, second, second_mesh, shape)
    assert mine.is_equivalent(other, shape) == expected


@given(anything)
def test_equivalence_with_maximal_meshes(c: Choices) -> None:
    mesh, shape = Mesh((("x", 1), ("y", c.integer(1, 2)))), make_shape(c)
    sharding = make_sharding(c, mesh, len(shape))
    alone, maximal = TensorSharding("maximal"), Mesh((), (c.integer(0, 1),))
    expected = slices.is_equivalent(sharding, mesh, alone, maximal, shape)
    assert to_ours(sharding, mesh).is_equivalent(to_ours(alone, maximal), shape) == expected
    expected = slices.is_equivalent(sharding, mesh, alone, maximal)
    assert to_ours(sharding, mesh).is_equivalent(to_ours(alone, maximal)) == expected


@given(anything)
def test_blocks_are_on_the_devices_that_have_their_slices(c: Choices) -> None:
    mesh, rank = make_mesh(c, device_orders=True), c.integer(0, 3)
    sharding = make_sharding(c, mesh, rank, unreduced=True)
    if mesh.is_maximal:
        return
    mine = to_ours(sharding, mesh)
    assert mine.mesh is not None
    placement = Placement(mine, mine.mesh)
    # With a block an element, a slice starts at the number of its block.
    held: dict[tuple[int, ...], list[int]] = {}
    for device, part in mine.device_slices(placement.counts).items():
        held.setdefault(tuple(dim.start for dim in part), []).append(device)
    blocks = itertools.product(*map(range, placement.counts))
    found = {block: list(placement.devices(block)) for block in blocks}
    assert {block: devices for block, devices in found.items() if devices} == held
    if placement.copies is not None:
        assert {len(devices) for devices in held.values()} == {placement.copies}
