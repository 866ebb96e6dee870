"""Meshes: named axes, major to minor, over devices in some order."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Mesh:
    """`axes` is ((name, size), ...); no `device_ids` means 0, 1, 2, ... in order.

    Without axes the mesh is empty, or, with one device id, maximal: everything
    lives on that one device.
    """

    axes: tuple[tuple[str, int], ...] = ()
    device_ids: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.axes and not self.device_ids

    @property
    def is_maximal(self) -> bool:
        return not self.axes and len(self.device_ids) == 1

    @property
    def num_devices(self) -> int:
        return math.prod(size for _, size in self.axes)

    def axis_size(self, name: str) -> int:
        return dict(self.axes)[name]

    def axis_index(self, name: str) -> int:
        return [axis for axis, _ in self.axes].index(name)

    def placements(self) -> list[tuple[int, dict[str, int]]]:
        """List (device id, its coordinate along every axis), in mesh order."""
        names = [name for name, _ in self.axes]
        devices = self.device_ids or range(self.num_devices)
        grid = itertools.product(*(range(size) for _, size in self.axes))
        return [(d, dict(zip(names, at, strict=True))) for d, at in zip(devices, grid, strict=True)]

    def __str__(self) -> str:
        text = "[" + ", ".join(f'"{name}"={size}' for name, size in self.axes) + "]"
        if self.device_ids:
            text += ", device_ids=[" + ", ".join(map(str, self.device_ids)) + "]"
        return f"<{text}>"
