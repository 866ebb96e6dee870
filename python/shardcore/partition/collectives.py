"""The collectives of a program of one device."""

from __future__ import annotations

from shardcore._core import Mesh, Module, program_cost
from shardcore.costs.records import CollectiveCost


def collectives(module: Module) -> tuple[CollectiveCost, ...]:
    """The collectives of ``module``, in program order, without times."""
    tables = program_cost(module)
    meshes = tables["meshes"]
    found = []
    for value, kind, mesh, axes, count, num_bytes, place, *rest in tables["collectives"]:
        names: tuple[str, ...] = ()
        devices = 1
        if mesh is not None and axes is not None:
            names = tuple(_text(meshes[mesh], *axis) for axis in axes)
            for axis in axes:
                devices *= axis[2]
        sent = _sent(kind, num_bytes, devices)
        found.append(CollectiveCost(kind, names, count, num_bytes, sent, 0.0, value, place, *rest))
    return tuple(found)


def _text(mesh: Mesh, name: str, pre_size: int, size: int) -> str:
    return name if mesh.shape[name] == size else f"{name}:({pre_size}){size}"


def _sent(kind: str, num_bytes: int, devices: int) -> int:
    """Bytes that a device sends: ``num_bytes`` are those of the gathered array."""
    share = num_bytes * (devices - 1) // max(devices, 1)
    if kind == "all_reduce":
        return 2 * share
    if kind == "collective_permute":
        return num_bytes
    if kind == "all_to_all":
        return share // max(devices, 1)
    return share
