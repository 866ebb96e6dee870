"""Converts between GSPMD's tilings and shardings over named axes.

A tiling is a sequence of digits (:mod:`shardcore.gspmd.tiles`). A mesh axis is a digit whose stride
is the product of the sizes of the axes after it; a digit that is part of an axis is a sub-axis. A
mesh with device ids is treated as one in default order with renumbered devices.
"""

from __future__ import annotations

import itertools
from math import prod
from typing import TYPE_CHECKING

from shardcore._core import AxisRef, Mesh, TensorSharding
from shardcore.errors import Diagnostic, VerificationError
from shardcore.gspmd.cursor import invalid
from shardcore.gspmd.infer import infer_mesh, tiling_digits
from shardcore.gspmd.tiles import MAX_LISTED, Digit, TileAssignment, of_digits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shardcore.gspmd.hlo_sharding import HloSharding

__all__ = ["manual_axes", "tiling", "to_sharding"]


def to_sharding(sharding: HloSharding, mesh: Mesh | None, rank: int | None) -> TensorSharding:
    """See :meth:`HloSharding.to_sharding`."""
    text = str(sharding)
    if sharding.named is not None:
        found = sharding.named.sharding
        if sharding.named.manual:
            hint = "manual axes belong to a manual computation, not to a tensor"
            raise invalid("manual axes are no layout of a tensor", hint, text=text)
        if sharding.named.word == "replicated":
            found = TensorSharding(mesh or found.mesh or Mesh(), [None] * (rank or 0))
        elif mesh is not None and mesh != found.mesh:
            found = to_sharding(sharding.from_sharding(found), mesh, found.rank)
    elif sharding.kind == "tiled":
        if "manual" in sharding.subgroups:
            hint = "manual axes belong to a manual computation, not to a tensor"
            raise invalid("a tiling with manual devices is no layout of a tensor", hint, text=text)
        found = _tiled(sharding, mesh)
    else:
        found = _whole(sharding, mesh, rank)
    on_one = found.mesh is not None and found.mesh.is_maximal
    if rank not in (None, found.rank) and not on_one:
        raise invalid(
            f"it has {found.rank} dims, the tensor {rank}", "both have to be the same", text=text
        )
    return found


def _whole(sharding: HloSharding, mesh: Mesh | None, rank: int | None) -> TensorSharding:
    text = str(sharding)
    if sharding.kind == "maximal":
        alone = Mesh.maximal(sharding.device or 0)
        if mesh is not None and mesh != alone:
            hint = "leave the mesh out: it becomes the mesh of that device"
            raise invalid("a tensor on one device is not on all of a mesh", hint, text=text)
        return TensorSharding(alone, [])
    if sharding.kind in ("manual", "tuple"):
        if sharding.kind == "tuple":
            raise invalid("a tuple is several shardings", "convert its elements", text=text)
        hint = "manual devices belong to a manual computation, not to a tensor"
        raise invalid("manual devices are no layout of a tensor", hint, text=text)
    over = mesh if mesh is not None else Mesh()
    if sharding.kind == "unknown":
        return TensorSharding.fully_replicated(over, rank or 0, is_closed=False)
    if sharding.kind == "unreduced" and mesh is None:
        raise invalid("it does not say over how many devices", "give the mesh", text=text)
    unreduced = [a.name for a in over.axes if a.size > 1] if sharding.kind == "unreduced" else None
    dims = itertools.repeat(None, rank or 0)
    return TensorSharding(over, dims, unreduced=unreduced)


def _tiled(sharding: HloSharding, mesh: Mesh | None) -> TensorSharding:
    if mesh is None:
        mesh = infer_mesh([sharding])
    dims, groups = _axes(sharding, mesh)
    return TensorSharding(mesh, dims, unreduced=groups.get("unreduced"))


def manual_axes(sharding: HloSharding, mesh: Mesh) -> tuple[list[AxisRef], list[list[AxisRef]]]:
    """Return the manual axes of a tiling over ``mesh``, and the axes of each dim."""
    dims, groups = _axes(sharding, mesh)
    return groups.get("manual", []), dims


def _axes(
    sharding: HloSharding, mesh: Mesh
) -> tuple[list[list[AxisRef]], dict[str, list[AxisRef]]]:
    text = str(sharding)
    if mesh.num_devices != sharding.num_devices:
        message = f"it tiles {sharding.num_devices} devices, the mesh has {mesh.num_devices}"
        raise invalid(message, "both have to be the same", text=text)
    dealt = tiling_digits(sharding, mesh.device_ids)
    found = [
        refs for refs in (_axes_of(digits, mesh) for digits in dealt or []) if refs is not None
    ]
    if dealt is None or len(found) != len(dealt):
        sizes = ", ".join(f'"{axis.name}"={axis.size}' for axis in mesh.axes)
        message = f"no order of the axes {sizes} and of their parts says this"
        raise invalid(message, "leave the mesh out to have one found", text=text)
    rank = len(sharding.tile_dims)
    order = {axis.name: at for at, axis in enumerate(mesh.axes)}
    groups: dict[str, list[AxisRef]] = {}
    for kind, refs in zip(sharding.subgroups, found[rank:], strict=True):
        refs.sort(key=lambda ref: (order[ref.name], ref.pre_size or 1))
        groups[kind] = mesh.merge_axes(refs)
    return found[:rank], groups


def _axes_of(digits: list[Digit], mesh: Mesh) -> list[AxisRef] | None:
    """Return the axes and sub-axes that equal ``digits``; ``None`` if there are none."""
    refs: list[AxisRef] = []
    for stride, size in digits:
        parts: list[AxisRef] = []
        at, left = stride, size
        while left > 1:
            part = _part(mesh, at, left)
            if part is None:
                return None
            parts.append(part)
            taken = part.size_in(mesh)
            at, left = at * taken, left // taken
        refs += reversed(parts)
    return mesh.merge_axes(refs)


def _part(mesh: Mesh, stride: int, size: int) -> AxisRef | None:
    """Return the minor-most part of a digit that lies within one axis."""
    below = 1
    for axis in reversed(mesh.axes):
        if below <= stride < below * axis.size:
            minor, rest = divmod(stride, below)
            if rest or axis.size % minor:
                return None
            taken = min(size, axis.size // minor)
            if size % taken or (axis.size // minor) % taken:
                return None
            if taken == axis.size:
                return AxisRef(axis.name)
            return AxisRef(axis.name, axis.size // minor // taken, taken)
        below *= axis.size
    return None


def tiling(
    sharding: TensorSharding, manual: tuple[str, ...]
) -> tuple[TileAssignment, Iterable[str]] | None:
    """Return the tiles of ``sharding`` and their subgroups; ``None`` if each device of its mesh
    holds the whole tensor. See :meth:`HloSharding.from_sharding`.
    """
    mesh = sharding.mesh
    if mesh is None:
        message = f"the mesh @{sharding.mesh_name} of this sharding is not known"
        hint = "give it one: sharding.with_mesh(mesh)"
        raise VerificationError(Diagnostic("unknown-mesh", message, hint))
    if sharding.reduction_op != "sum":
        message = f"GSPMD's notation has no {sharding.reduction_op} over unreduced axes"
        raise invalid(message, "reduce the value first", text=str(sharding))
    for name in manual:
        mesh.axis_size(name)
        refs = [ref for dim in sharding.dims for ref in dim.axes]
        if any(ref.name == name for ref in (*refs, *sharding.unreduced)):
            raise invalid(f'the manual axis "{name}" is used by the sharding', "drop one of both")
    if mesh.is_maximal and mesh.device_ids:
        return None
    dims = [[_digit(ref, mesh) for ref in dim.axes] for dim in sharding.dims]
    unreduced = [_digit(ref, mesh) for ref in sharding.unreduced]
    by_hand = [_digit(AxisRef(name), mesh) for name in manual]
    used = [*unreduced, *by_hand, *(digit for dim in dims for digit in dim)]
    groups = {"manual": by_hand, "unreduced": unreduced, "replicated": _unused(used, mesh)}
    groups = {kind: digits for kind, digits in groups.items() if _size(digits) > 1}
    if all(_size(dim) == 1 for dim in dims) and not groups.keys() - {"replicated"}:
        return None
    digits = [digit for part in (*dims, *groups.values()) for digit in part if digit.size > 1]
    sizes = (*map(_size, dims), *map(_size, groups.values()))
    tiles = of_digits(sizes, digits)
    device_ids = mesh.device_ids
    if device_ids is not None:
        if mesh.num_devices > MAX_LISTED:
            raise invalid(
                f"the mesh has {mesh.num_devices} devices, too many to list",
                "leave out its device ids",
            )
        devices = tuple(device_ids[place] for place in tiles.listed())
        tiles = TileAssignment(sizes, devices=devices)
    return tiles, groups


def _size(digits: Iterable[Digit]) -> int:
    return prod(digit.size for digit in digits)


def _digit(ref: AxisRef, mesh: Mesh) -> Digit:
    return Digit(ref.stride_in(mesh), ref.size_in(mesh))


def _unused(used: list[Digit], mesh: Mesh) -> list[Digit]:
    """Return the digits, major to minor, of the part of the mesh that ``used`` leaves."""
    unused: list[Digit] = []
    end = mesh.num_devices
    for stride, size in sorted((digit for digit in used if digit.size > 1), reverse=True):
        if end > stride * size:
            unused.append(Digit(stride * size, end // (stride * size)))
        end = stride
    return [*unused, Digit(1, end)] if end > 1 else unused
