"""Infers a mesh from tilings.

Every tiling splits device numbers into digits. The strides of the digits of all tilings are
boundaries of the axes of the mesh; a mesh exists if each stride divides the next larger one. If a
tiling lists its devices in an order that digits cannot express, the mesh gets that order as its
device ids.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from shardcore._core import Mesh
from shardcore.gspmd.cursor import invalid
from shardcore.gspmd.tiles import Digit, TileAssignment, digits_of_list, split_digits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardcore.gspmd.hlo_sharding import HloSharding

__all__ = ["infer_mesh", "tiling_digits"]

_SHORT_NAMES = ("x", "y", "z")


def tiling_digits(
    sharding: HloSharding, device_ids: Sequence[int] | None
) -> list[list[Digit]] | None:
    """Return the digits of each dim over a mesh with these devices; ``None`` if none exist."""
    tiles = sharding.tiles
    if tiles is None:
        return []
    if tiles.is_iota and device_ids is None:
        return split_digits(tiles.digits(), tiles.dims)
    places = tiles.listed()
    if device_ids is not None:
        place_of = {device: place for place, device in enumerate(device_ids)}
        if any(device not in place_of for device in places):
            return None
        places = [place_of[device] for device in places]
    # The order of the devices that share a tile does not matter.
    by_place = TileAssignment(tiles.dims, devices=tuple(places))
    for dim, kind in enumerate(sharding.subgroups, len(sharding.tile_dims)):
        if kind == "replicated":
            by_place = by_place.with_sorted_groups()
        else:
            by_place = _with_sorted_dim(by_place, dim)
    digits = digits_of_list(by_place.listed())
    return None if digits is None else split_digits(digits, tiles.dims)


def _with_sorted_dim(tiles: TileAssignment, dim: int) -> TileAssignment:
    """Return the tiles with the devices along ``dim`` sorted by the first one of each position."""
    rank = len(tiles.dims)
    last = [at for at in range(rank) if at != dim] + [dim]
    moved = tiles.transposed(last)
    size = tiles.dims[dim]
    devices = moved.listed()
    order = sorted(range(size), key=lambda at: devices[at])
    start = range(0, len(devices), size)
    reordered = tuple(devices[begin + at] for begin in start for at in order)
    back = [last.index(at) for at in range(rank)]
    return TileAssignment(moved.dims, devices=reordered).transposed(back)


def infer_mesh(shardings: Sequence[HloSharding]) -> Mesh:
    """Return a mesh such that all tilings are over its axes and sub-axes.

    Raises:
        VerificationError: there is no such mesh.
    """
    first = shardings[0]
    count = first.num_devices or 0
    device_ids: tuple[int, ...] | None = None
    cuts = {1, count}
    for sharding in shardings:
        if sharding.num_devices != count:
            message = f"it tiles {sharding.num_devices} devices, {first} tiles {count}"
            raise invalid(message, "all are over the same devices", text=str(sharding))
        if device_ids is None and tiling_digits(sharding, None) is None:
            device_ids = _devices(sharding)
    for sharding in shardings:
        dealt = tiling_digits(sharding, device_ids)
        if dealt is None:
            hint = "they order the devices in different ways"
            raise invalid("no mesh says this and the other shardings", hint, text=str(sharding))
        for stride, size in (digit for dim in dealt for digit in dim):
            cuts |= {stride, stride * size}
    ordered = sorted(cuts)
    sizes = [high // low for low, high in pairwise(ordered)][::-1] or [1]
    if any(high % low for low, high in pairwise(ordered)):
        message = "no mesh says this and the other shardings: their parts do not divide"
        raise invalid(message, "parts of one axis divide each other", text=str(shardings[-1]))
    few = len(sizes) <= len(_SHORT_NAMES)
    names = _SHORT_NAMES if few else [f"axis_{at}" for at in range(len(sizes))]
    return Mesh(list(zip(names, sizes, strict=False)), device_ids)


def _devices(sharding: HloSharding) -> tuple[int, ...]:
    """Return the devices in the order of the tiles; they have to be 0, 1, 2, ... in some order."""
    tiles = sharding.tiles
    devices = tuple(tiles.listed()) if tiles else ()
    if sorted(devices) != list(range(len(devices))):
        hint = f"a mesh of {len(devices)} has the devices 0 to {len(devices) - 1}"
        raise invalid("no mesh has these devices", hint, text=str(sharding))
    return devices
