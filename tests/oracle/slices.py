"""Who holds what: local shapes, padding, the slice of every device, equivalence."""

from __future__ import annotations

from collections.abc import Sequence

from .axis import AxisRef
from .mesh import Mesh
from .sharding import TensorSharding

# For every dim, the half-open range a device holds.
Slice = tuple[tuple[int, int], ...]


def local_shape(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> tuple[int, ...]:
    """Divide every dim by its number of shards, rounding up."""
    dims = zip(sharding.dims, shape, strict=True)
    return tuple(-(-size // dim.sharded_size(mesh)) for dim, size in dims)


def padding(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> tuple[int, ...]:
    """Return by how much every dim must grow so that its shards are equal."""
    local = local_shape(sharding, mesh, shape)
    dims = zip(sharding.dims, local, shape, strict=True)
    return tuple(dim.sharded_size(mesh) * part - size for dim, part, size in dims)


def coordinate(ref: AxisRef, at: dict[str, int], mesh: Mesh) -> int:
    """Return the coordinate along an axis or sub-axis of the device `at` these ones.

    The coordinate along the full axis is read as (major, this sub-axis, minor).
    """
    minor_size = mesh.axis_size(ref.name) // ref.end_in(mesh)
    return at[ref.name] // minor_size % ref.size_in(mesh)


def shard_index(refs: Sequence[AxisRef], at: dict[str, int], mesh: Mesh) -> int:
    """Read the coordinates along `refs` as the digits of one number, major first."""
    index = 0
    for ref in refs:
        index = index * ref.size_in(mesh) + coordinate(ref, at, mesh)
    return index


def device_slices(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> dict[int, Slice]:
    """Map every device id to the part of the tensor it holds, without padding.

    A device whose shard is padding only holds an empty range at the end of the dim.
    """
    if mesh.is_maximal:
        return {mesh.device_ids[0]: tuple((0, size) for size in shape)}
    local = local_shape(sharding, mesh, shape)
    slices: dict[int, Slice] = {}
    for device, at in mesh.placements():
        ranges = []
        for dim, part, size in zip(sharding.dims, local, shape, strict=True):
            start = min(shard_index(dim.axes, at, mesh) * part, size)
            ranges.append((start, min(start + part, size)))
        slices[device] = tuple(ranges)
    return slices


def device_shards(sharding: TensorSharding, mesh: Mesh) -> dict[int, tuple[tuple[int, int], ...]]:
    """Map every device id to (which shard, of how many) for every dim, whatever the shape."""
    return {
        device: tuple(
            (shard_index(dim.axes, at, mesh), dim.sharded_size(mesh)) for dim in sharding.dims
        )
        for device, at in mesh.placements()
    }


def unreduced_groups(sharding: TensorSharding, mesh: Mesh) -> set[frozenset[int]]:
    """Return the groups of devices whose tensors must be added up."""
    groups: dict[tuple[object, ...], set[int]] = {}
    for device, at in mesh.placements():
        # Devices are in one group when they differ along unreduced axes only.
        place = []
        for name, size in mesh.axes:
            digits = at[name]
            for ref in sharding.unreduced:
                if ref.name == name:
                    minor_size = size // ref.end_in(mesh)
                    digits -= coordinate(ref, at, mesh) * minor_size
            place.append(digits)
        groups.setdefault(tuple(place), set()).add(device)
    return {frozenset(group) for group in groups.values()}


def is_equivalent(
    first: TensorSharding, first_mesh: Mesh, second: TensorSharding, second_mesh: Mesh
) -> bool:
    """Tell whether on every device both hold the same part, whatever the shape."""
    if first_mesh.is_maximal or second_mesh.is_maximal:
        return first_mesh == second_mesh
    return device_shards(first, first_mesh) == device_shards(
        second, second_mesh
    ) and unreduced_groups(first, first_mesh) == unreduced_groups(second, second_mesh)
