"""Which block of an array each device of a mesh holds, as data and as a table."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray
from shardcore.errors import CalculusError
from shardcore.expected import expect

MAX_DEVICES = 4096
"""The largest mesh for which a table is made."""


class Block(NamedTuple):
    """The block that one device holds."""

    device: int
    coordinates: dict[str, int]
    """The device's coordinate along each mesh axis."""
    numbers: tuple[int, ...]
    """The block's index along each dim."""
    slices: tuple[slice, ...] | None
    """The elements of the block, without padding; ``None`` if the sizes are unknown."""

    def __str__(self) -> str:
        if self.slices is None:
            return f"({', '.join(map(str, self.numbers))})"
        return ", ".join(f"{part.start}:{part.stop}" for part in self.slices)


def blocks(array: NamedArray, mesh: Mesh) -> list[Block]:
    """Return the block of every device, in mesh order.

    Raises:
        CalculusError: the mesh has too many devices (``invalid-option``).
        VerificationError: the mesh lacks an axis (``unknown-axis``).
    """
    expect(array, NamedArray)
    expect(mesh, Mesh)
    if mesh.num_devices > MAX_DEVICES:
        raise mistake(
            CalculusError,
            "invalid-option",
            f"blocks are listed for up to {MAX_DEVICES} devices; the mesh has {mesh.num_devices}",
            hint="a smaller mesh shows the pattern",
            text=str(mesh),
            filename="<mesh>",
        )
    sharding = array.to_sharding(mesh)
    known = all(dim.size is not None for dim in array.dims)
    slices = sharding.device_slices(array.shape) if known else None
    found = []
    places = itertools.product(*(range(axis.size) for axis in mesh.axes))
    for position, place in enumerate(places):
        coordinates = dict(zip(mesh.axis_names, place, strict=True))
        device = mesh.device_at(coordinates)
        index = tuple(_block_index(dim.axes, mesh, position) for dim in array.dims)
        found.append(Block(device, coordinates, index, slices[device] if slices else None))
    return found


def _block_index(axes: tuple[AxisRef, ...], mesh: Mesh, position: int) -> int:
    index = 0
    for axis in axes:
        size = axis.size_in(mesh)
        index = index * size + position // axis.stride_in(mesh) % size
    return index


def block_table(array: NamedArray, mesh: Mesh) -> str:
    """Return the blocks as grids of text: columns are the last mesh axis, rows the one before;
    there is one grid for each coordinate along the other axes.

    Raises:
        CalculusError, VerificationError: as for :func:`blocks`.
    """
    held = blocks(array, mesh)
    names = mesh.axis_names
    across = names[-1] if names else ""
    down = names[-2] if len(names) > 1 else None
    grids: dict[tuple[tuple[str, int], ...], list[Block]] = {}
    for block in held:
        outer = tuple((name, block.coordinates[name]) for name in names[:-2])
        grids.setdefault(outer, []).append(block)
    lines: list[str] = []
    for outer, members in grids.items():
        if outer:
            lines.append(", ".join(f"{name}={place}" for name, place in outer))
        lines += _grid(members, across, down)
    return "\n".join(lines)


def _grid(members: list[Block], across: str, down: str | None) -> list[str]:
    width = max(len(str(block)) for block in members)
    rows: dict[int, list[str]] = {}
    columns: list[str] = []
    for block in members:
        rows.setdefault(block.coordinates[down] if down else 0, []).append(str(block).ljust(width))
        if len(rows) == 1 and across:
            columns.append(f"{across}={block.coordinates[across]}".ljust(width))
    heads = [f"{down}={row}" if down else "" for row in rows]
    gutter = max(map(len, heads))
    lines = [" | ".join([" " * gutter, *columns]).rstrip()]
    for head, cells in zip(heads, rows.values(), strict=True):
        lines.append(" | ".join([head.ljust(gutter), *cells]).rstrip())
    return lines
