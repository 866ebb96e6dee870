"""The groups of devices of a collective.

Source: the StableHLO specification, "Process grouping strategies".
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np

from shardcore._core import Mesh
from shardcore.simulate.run import Grid, Run
from shardcore.simulate.site import Site
from shardcore.simulate.values import Array

_SUB_AXIS = re.compile(r'#sdy<axis_ref\s*"(?P<name>.*)":\((?P<before>\d+)\)(?P<size>\d+)>')

__all__ = ["Groups", "channel_of", "groups_along", "pairs_of"]


def channel_of(site: Site) -> int:
    """The number of the op's channel; 0 if it has none."""
    return int(site.attributes.get("channel_handle", {}).get("handle", 0))


def pairs_of(site: Site, grid: Grid) -> list[tuple[int, int]]:
    """The (source, target) devices of a permute."""
    listed = site.dense("source_target_pairs")
    pairs = np.zeros((0, 2), int) if listed is None else listed.reshape(-1, 2)
    found = []
    for pair in pairs:
        sources, targets = _devices_of(pair, site, grid)
        found += list(zip(sources, targets, strict=True))
    return found


def _devices_of(ids: Array, site: Site, grid: Grid) -> list[list[int]]:
    """The devices that each id denotes; with a channel, ids are partition ids."""
    if channel_of(site) > 0:
        return [[r * grid.partitions + int(at) for r in range(grid.replicas)] for at in ids]
    return [[int(at) * grid.partitions + p for p in range(grid.partitions)] for at in ids]


class Groups:
    """The groups of devices of a collective.

    With a channel, ids are partition ids; with ``across_both``, they are global device ids, which
    number replicas and partitions together.
    """

    def __init__(
        self, site: Site, listed: list[list[int]], channel: int, *, across_both: bool
    ) -> None:
        self.site = site
        self.listed = listed
        self.channel = channel
        self.across_both = across_both
        self.is_global = bool(site.attributes.get("use_global_device_ids", False))

    @classmethod
    def of(cls, site: Site, *, across_both: bool) -> Groups:
        """The groups given by the attributes of an op."""
        return cls(site, listed_groups(site), channel_of(site), across_both=across_both)

    def devices(self, grid: Grid) -> list[list[int]]:
        """The device ids of each group."""
        replicas, partitions = grid
        listed = self.listed
        if self.channel > 0 and self.is_global:
            return listed or [list(range(replicas * partitions))]
        if self.channel > 0 and not self.across_both:
            groups = listed or [list(range(partitions))]
            return [
                [r * partitions + p for p in group] for group in groups for r in range(replicas)
            ]
        groups = listed or [list(range(replicas))]
        if self.channel > 0:
            return [
                [r * partitions + p for p in range(partitions) for r in group] for group in groups
            ]
        return [[r * partitions + p for r in group] for group in groups for p in range(partitions)]

    def rows(self, run: Run) -> list[list[int]]:
        """The rows of the devices of each group in ``run``, in the order of the group.

        Raises:
            SimulationError: a device of a group does not exist (``unknown-device``), or took
                another branch (``diverging-collective``).
        """
        row = {int(device): index for index, device in enumerate(run.devices)}
        found = []
        for group in self.devices(run.grid):
            here = [device for device in group if device in row]
            if here and len(here) < len(group):
                self.refuse(run, [device for device in group if device not in row], here)
            if here:
                found.append([row[device] for device in group])
        return found

    def refuse(self, run: Run, missing: list[int], here: list[int]) -> None:
        """Raise the error that the devices ``missing`` do not take part in the collective."""
        count = run.grid.replicas * run.grid.partitions
        site = self.site
        if outside := [device for device in missing if not 0 <= device < count]:
            message = f"{site.name} has device {outside[0]} in a group, but {count} run"
            hint = "pass devices=, the number of devices the program is for"
            raise site.error("unknown-device", message, hint)
        message = (
            f"{site.name} is run by {_names(here)} but not by {_names(missing)}, "
            "which took another branch: on devices it would hang"
        )
        hint = "let all devices of a group take the same branch, or move the collective out of it"
        raise site.error("diverging-collective", message, hint)


def _names(devices: list[int]) -> str:
    text = ", ".join(str(device) for device in devices[:4]) + (", ..." if len(devices) > 4 else "")
    return f"device{'s' if len(devices) > 1 else ''} {text}"


def listed_groups(site: Site) -> list[list[int]]:
    """The groups as ids, without the padding -1 of shorter groups; empty if all ids form one
    group."""
    given = site.attributes.get("replica_groups")
    if isinstance(given, dict):
        return _by_axes(given, site)
    dense = site.dense("replica_groups")
    if dense is None:
        if given:
            raise site.unsupported(f"replica groups are not understood: {given}"[:160])
        return []
    if dense.size == 0:
        return []
    return [[int(device) for device in group if device >= 0] for group in dense]


def _by_axes(given: dict[str, Any], site: Site) -> list[list[int]]:
    """Groups along axes of a mesh."""
    mesh = site.mesh(given["mesh"])
    return groups_along(mesh, [_axis(axis, mesh, site) for axis in given["axes"]])


def groups_along(mesh: Mesh, axes: list[tuple[str, int, int]]) -> list[list[int]]:
    """The groups of devices that differ along ``axes``, each given as name, pre-size and size."""
    sizes = [axis.size for axis in mesh.axes]
    ids = np.array(mesh.device_ids or range(mesh.num_devices))
    # Each axis is split into the parts major to the sub-axis, the sub-axis, and minor to it.
    split: list[int] = []
    moved: dict[tuple[str, int], int] = {}
    for axis, size in zip(mesh.axes, sizes, strict=True):
        cuts = sorted(
            {1, size, *(c for name, pre, n in axes if name == axis.name for c in (pre, pre * n))}
        )
        for pre, post in pairwise(cuts):
            moved[axis.name, pre] = len(split)
            split.append(post // pre)
    order: list[int] = []
    for name, pre, size in axes:
        parts = [(cut, at) for (axis, cut), at in moved.items() if axis == name]
        order += [at for cut, at in sorted(parts) if pre <= cut < pre * size]
    rest = [at for at in range(len(split)) if at not in order]
    length = int(np.prod([split[at] for at in order], dtype=int))
    grouped = ids.reshape(split or [1]).transpose(*rest, *order) if split else ids
    return [[int(device) for device in group] for group in grouped.reshape(-1, length)]


def _axis(axis: Any, mesh: Mesh, site: Site) -> tuple[str, int, int]:
    """Name, pre-size and size of an axis or a sub-axis, of ``stablehlo`` or of ``sdy``."""
    if isinstance(axis, str):
        # For a whole axis, sdy attributes have just the name.
        found = _SUB_AXIS.fullmatch(axis)
        if found:
            return found["name"], int(found["before"]), int(found["size"])
        if any(known.name == axis for known in mesh.axes):
            return axis, 1, mesh.axis_size(axis)
    if isinstance(axis, dict):
        name, info = axis.get("name"), axis.get("sub_axis_info")
        if isinstance(info, dict):
            return str(name), int(info["pre_size"]), int(info["size"])
        if name is not None:
            return str(name), 1, mesh.axis_size(str(name))
    raise site.unsupported(f"replica groups along {axis} are not understood"[:160])
