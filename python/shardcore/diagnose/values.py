"""Large replicated values, padded values, and unused mesh axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from shardcore._core import Port, ops_named, ops_of_size, values_on_host
from shardcore.diagnose.annotations import in_manual
from shardcore.diagnose.findings import Finding, first_of
from shardcore.diagnose.places import LARGE_BYTES, warning
from shardcore.units import format_bytes, plural
from shardcore.why.layouts import Layouts

if TYPE_CHECKING:
    from shardcore._core import Mesh, Op, Result, Value
    from shardcore.errors import Diagnostic

WASTED_SHARE = 1 / 8
"""The least share of padding in a value that is reported."""

WASTED_BYTES = 1 << 20
"""The least bytes of padding on a device that are reported."""


def value_findings(result: Result, layouts: Layouts) -> list[Finding]:
    """Return findings about values and about mesh axes."""
    meshes = [mesh for mesh in result.module.meshes.values() if not mesh.is_maximal]
    if not any(mesh.num_devices > 1 for mesh in meshes):
        return []
    replicated = [*_replicated_ports(result, meshes), *_replicated_values(result, meshes)]
    replicated.sort(key=lambda each: -(each[1].bytes_per_device or 0))
    padded = sorted(_padded(result), key=lambda pair: -pair[0])
    return [
        *first_of([_replicated(layouts, *each) for each in replicated]),
        *first_of([Finding(each) for _, each in padded]),
        *map(Finding, _unused(result)),
    ]


_Replicated = tuple[str, "Port | Value", "Mesh", str | None]
"""A replicated value: its name, the value, the mesh and its location."""


def _replicated_ports(result: Result, meshes: list[Mesh]) -> Iterator[_Replicated]:
    """Replicated arguments, and results that are sharded where they are computed."""
    returns = ops_named(result._legalized(), ["func.return"])
    returned = [op.operands for op in returns if op.function == "main"]
    gathered = [
        port
        for values in returned[-1:]
        for value, port in zip(values, result.results(), strict=False)
        if not _is_replicated(value)
    ]
    for port in [*result.arguments(), *gathered]:
        mesh = _mesh_of(port, meshes) if _is_replicated(port) else None
        if _is_port_on_host(port):
            continue
        if mesh is not None and mesh.num_devices > 1:
            yield port.label or port.name, port, mesh, None


def _replicated_values(result: Result, meshes: list[Mesh]) -> Iterator[_Replicated]:
    """Replicated values in device memory that ops compute from operands that are not replicated."""
    module = result._legalized()
    found = list(_replicated_results(ops_of_size(module, LARGE_BYTES)))
    if not found:
        return
    # A replicated value inside a manual computation may be a shard outside.
    inside = in_manual(module)
    manual = {value.qualified_name for op in inside for value in op.results}
    found = [value for value in found if value.qualified_name not in manual]
    # A value that propagation inserts has no name to annotate.
    given = {value.qualified_name for op in result._given().ops() for value in op.results}
    for value, is_on_host in zip(found, values_on_host(found), strict=True):
        mesh, name = _mesh_of(value, meshes), value.qualified_name
        if is_on_host or mesh is None or mesh.num_devices == 1 or name not in given:
            continue
        yield name, value, mesh, value.location


def _replicated_results(ops: Iterable[Op]) -> Iterator[Value]:
    """Large replicated results of ops whose operands are not replicated.

    Values computed from scalars alone are not in memory: compilers recompute them where they are
    used.
    """
    for op in ops:
        whole = [value for value in op.results if _is_replicated(value)]
        if (
            any(value.shape for value in op.operands)
            and whole
            and not any(map(_is_replicated, op.operands))
        ):
            yield from whole


def _is_port_on_host(port: Port) -> bool:
    """Whether ``port`` is in host memory, so that devices hold nothing of it."""
    return "host" in port.attributes.get("mhlo.memory_kind", "")


def _mesh_of(value: Port | Value, meshes: list[Mesh]) -> Mesh | None:
    """The mesh of ``value``, or the only one of the program."""
    if value.sharding is not None:
        return value.sharding.mesh
    return meshes[0] if len(meshes) == 1 else None


def _is_replicated(value: Port | Value) -> bool:
    """Whether ``value`` is large and replicated."""
    if (value.bytes_per_device or 0) < LARGE_BYTES:
        return False
    sharding = value.sharding
    return sharding is None or sharding.is_fully_replicated


def _replicated(
    layouts: Layouts, name: str, value: Port | Value, mesh: Mesh, at: str | None
) -> Finding:
    size = value.bytes_per_device or 0
    devices = plural(mesh.num_devices, "device")
    message = f"{name} is replicated: each of {devices} holds all {format_bytes(size)}"
    hint = f"compare what annotations of {name} lead to: shardcore sweep FILE --set"
    mesh_name = None if value.sharding is None else value.sharding.mesh_name
    unhelped = f"no annotation of {name} that was tried makes the step or the peak smaller"
    if next(layouts.along_an_axis(value.shape or (), mesh_name), None) is None:
        unhelped = f"no axis of the mesh divides a dim of {name}: pad it, or choose another mesh"
    return Finding(
        warning("large-replicated", message, hint, name, at),
        partial(layouts.best, name, value.shape or (), mesh_name),
        size,
        starts=((name, tuple(mesh.axis_names)),),
        unhelped=unhelped,
    )


def _padded(result: Result) -> Iterator[tuple[int, Diagnostic]]:
    # Values of one shape and sharding waste the same share; the first is named.
    first: dict[object, Port | Value] = {}
    for port in result.arguments():
        first.setdefault((port.shape, port.dtype, port.sharding), port)
    ops = ops_of_size(result._legalized(), WASTED_BYTES)
    for made in (each for op in ops for each in op.results):
        first.setdefault((made.shape, made.dtype, made.sharding), made)
    seen: set[object] = set()
    for value in first.values():
        padding, key = _padding(value), (value.shape, value.sharding)
        if padding is None or key in seen:
            continue
        seen.add(key)
        dim, wasted, share = padding
        name, at = _name_and_place(value)
        message = (
            f"{name} wastes {format_bytes(wasted)} on a device, {share:.0%} of it, as padding: "
            f"dim {dim} of size {(value.shape or ())[dim]} does not divide"
        )
        hint = f"choose a size that divides, or shard another dim than dim {dim}"
        yield wasted, warning("padding", message, hint, name, at)


def _name_and_place(value: Port | Value) -> tuple[str, str | None]:
    if isinstance(value, Port):
        return value.label or value.name, None
    return value.qualified_name, value.location


def _padding(value: Port | Value) -> tuple[int, int, float] | None:
    """The dim with most padding, the wasted bytes and their share, if that is significant."""
    size = value.bytes_per_device or 0
    if size < WASTED_BYTES:
        return None
    sharding, shape, local = value.sharding, value.shape, value.local_shape
    if sharding is None or sharding.mesh is None or not shape or not local:
        return None
    if sharding.rank != len(shape):
        # On a single device.
        return None
    shares = [
        1 - dim / (part * sharding.sharded_size(place)) if dim and part else 0.0
        for place, (dim, part) in enumerate(zip(shape, local, strict=True))
    ]
    share = 1 - math.prod(1 - each for each in shares)
    wasted = int(size * share)
    if share < WASTED_SHARE or wasted < WASTED_BYTES:
        return None
    return shares.index(max(shares)), wasted, share


def _unused(result: Result) -> Iterator[Diagnostic]:
    """Warnings about mesh axes that shard no value, if other axes do and there is one mesh."""
    axes = result.summary()["after"]["axes"]
    if len({row["mesh"] for row in axes}) != 1 or not any(row["values"] for row in axes):
        return
    for row in axes:
        if row["size"] > 1 and not row["values"]:
            name, size = row["name"], row["size"]
            message = f'no value is sharded over "{name}": its {size} devices all do the same'
            hint = f'annotate the batch with "{name}", or use a mesh without it'
            yield warning("unused-axis", message, hint, None, None)
