"""What devices hold: local shapes, padding, the slice of every device, equivalence."""

from __future__ import annotations

from collections.abc import Sequence

from .axis import AxisRef
from .mesh import Mesh
from .sharding import TensorSharding

# For every dim, the half-open range a device holds.
Slice = tuple[tuple[int, int], ...]


def num_shards(sharding: TensorSharding, mesh: Mesh, rank: int) -> tuple[int, ...]:
    """Return the number of shards of every dim. A maximal mesh takes tensors of any rank."""
    if mesh.is_maximal:
        return (1,) * rank
    assert len(sharding.dims) == rank
    return tuple(dim.sharded_size(mesh) for dim in sharding.dims)


def local_shape(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> tuple[int, ...]:
    """Divide every dim by its number of shards, rounding up."""
    shards = num_shards(sharding, mesh, len(shape))
    return tuple(-(-size // count) for size, count in zip(shape, shards, strict=True))


def coordinate(ref: AxisRef, at: dict[str, int], mesh: Mesh) -> int:
    """Return the coordinate along an axis or sub-axis of the device with coordinates `at`.

    The coordinate along the full axis consists of (major, this sub-axis, minor).
    """
    minor_size = mesh.axis_size(ref.name) // ref.end_in(mesh)
    return at[ref.name] // minor_size % ref.size_in(mesh)


def shard_index(refs: Sequence[AxisRef], at: dict[str, int], mesh: Mesh) -> int:
    """Combine the coordinates along `refs` to one number, major to minor."""
    index = 0
    for ref in refs:
        index = index * ref.size_in(mesh) + coordinate(ref, at, mesh)
    return index


def device_shards(sharding: TensorSharding, mesh: Mesh, rank: int) -> dict[int, tuple[int, ...]]:
    """Map every device id to the shard it holds of every dim."""
    if mesh.is_maximal:
        return {mesh.device_ids[0]: (0,) * rank}
    return {
        device: tuple(shard_index(dim.axes, at, mesh) for dim in sharding.dims)
        for device, at in mesh.placements()
    }


def device_slices(sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]) -> dict[int, Slice]:
    """Map every device id to the part of the tensor it holds, without padding.

    A device whose shard is all padding holds an empty range at the end of the dim.
    """
    local = local_shape(sharding, mesh, shape)

    def held(shards: Sequence[int]) -> Slice:
        dims = zip(shards, local, shape, strict=True)
        return tuple((min(n * part, size), min((n + 1) * part, size)) for n, part, size in dims)

    shards = device_shards(sharding, mesh, len(shape))
    return {device: held(numbers) for device, numbers in shards.items()}


def device_padding(
    sharding: TensorSharding, mesh: Mesh, shape: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """Map every device id to the padding of its shard, in every dim."""
    local = local_shape(sharding, mesh, shape)
    return {
        device: tuple(part - (end - start) for part, (start, end) in zip(local, held, strict=True))
        for device, held in device_slices(sharding, mesh, shape).items()
    }


def unreduced_groups(sharding: TensorSharding, mesh: Mesh) -> set[frozenset[int]]:
    """Return the groups of devices over which the tensor is unreduced."""
    if mesh.is_maximal:
        return {frozenset(mesh.device_ids)}
    groups: dict[tuple[int, ...], set[int]] = {}
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
    first: TensorSharding,
    first_mesh: Mesh,
    second: TensorSharding,
    second_mesh: Mesh,
    shape: Sequence[int] | None = None,
) -> bool:
    """Tell whether every device holds the same part under both, and sums with the same devices.

    Without `shape` this is for tensors of every shape.
    """
    if unreduced_groups(first, first_mesh) != unreduced_groups(second, second_mesh):
        return False
    if shape is not None:
        return device_slices(first, first_mesh, shape) == device_slices(second, second_mesh, shape)
    rank = max(len(first.dims), len(second.dims))
    for sharding, mesh in ((first, first_mesh), (second, second_mesh)):
        if not mesh.is_maximal and len(sharding.dims) != rank:
            return False
    return num_shards(first, first_mesh, rank) == num_shards(second, second_mesh, rank) and (
        device_shards(first, first_mesh, rank) == device_shards(second, second_mesh, rank)
    )
