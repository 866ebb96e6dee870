"""Manual computations of a global program, and Shardy's other ops, which do not change values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shardcore._core import AxisRef, Mesh, TensorSharding
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.run import Grid, Run
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array, Value, spread

Slices = dict[int, tuple[slice, ...]]
"""The slice of a tensor on each device of a mesh."""


@op(
    "sdy.sharding_constraint",
    "sdy.reshard",
    "sdy.propagation_barrier",
    "sdy.data_flow_edge",
    "sdy.func_data_flow_edge",
    "sdy.all_gather",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.all_reduce",
    "sdy.collective_permute",
    "sdy.reduce_scatter",
    "sdy.replicated_to_unreduced",
    "sdy.sharded_to_unreduced",
)
def identity(site: Site) -> Kernel:
    """The operand itself: the op only changes its sharding."""
    return arrays(lambda x: x)


@op("sdy.sharding_group")
def no_results(site: Site) -> Kernel:
    """An op without results."""
    return arrays(lambda *_: ())


def _manual_slices(sharding: TensorSharding | None, axes: set[str], shape: Sequence[int]) -> Slices:
    """The slice of a tensor of ``shape`` on each device, sharded along ``axes`` only."""
    assert sharding is not None
    assert sharding.mesh is not None
    mine: list[list[AxisRef]] = [
        [axis for axis in dim.axes if axis.name in axes] for dim in sharding.dims
    ]
    return TensorSharding(sharding.mesh, mine).device_slices(shape)


def _groups_along(mesh: Mesh, axes: set[str]) -> list[list[int]]:
    """The groups of devices that differ along ``axes`` only."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for device in range(mesh.num_devices):
        place = mesh.coordinates(device)
        key = tuple(at for name, at in place.items() if name not in axes)
        groups.setdefault(key, []).append(device)
    return list(groups.values())


@op("sdy.manual_computation")
def manual_computation(site: Site) -> Kernel:
    """A body that each device runs on its shards along the manual axes.

    In a global program all devices of the mesh run the body; devices that differ along other axes
    compute the same.
    """
    attributes = site.attributes
    axes = set(attributes["manual_axes"])
    ins, outs = attributes["in_shardings"], attributes["out_shardings"]
    [body] = site.bodies
    meshes = [sharding.mesh for sharding in (*ins, *outs) if sharding is not None]
    if not meshes:
        # Without operands and results no mesh can be found, which matters if there are manual axes.
        if axes:
            raise site.unsupported("a manual computation without shardings has no mesh")
        return lambda run, *values: run.call(body, *site.split(values))
    mesh = meshes[0]
    inputs = [
        _manual_slices(sharding, axes, kind.shape)
        for sharding, kind in zip(ins, site.operands, strict=True)
    ]
    outputs = [
        _manual_slices(sharding, axes, kind.shape)
        for sharding, kind in zip(outs, site.results, strict=True)
    ]
    groups = _groups_along(mesh, axes)
    count = mesh.num_devices

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        is_global = len(run.devices) == 1
        if not is_global and len(run.devices) != count:
            message = f"{len(run.devices)} devices run a manual computation over {count}"
            is_branch = run.grid.replicas * run.grid.partitions == count
            hint = None if is_branch else f"pass devices={count}"
            raise site.error("unknown-device", message, hint)
        inner = replace(run, manual=run.manual | axes)
        if is_global:
            inner = replace(inner, devices=np.arange(count), grid=Grid(1, count))
        local = [_cut(x, slices, count) for x, slices in zip(operands, inputs, strict=True)]
        found = inner.call(body, local, captured)
        chosen = groups[:1] if is_global else groups
        whole = [
            _joined(x, slices, kind.shape, chosen, count)
            for x, slices, kind in zip(found, outputs, site.results, strict=True)
        ]
        return whole[0] if len(whole) == 1 else whole

    return kernel


def _cut(x: Array, slices: Slices, count: int) -> Array:
    """The shard of each device; one row if all devices hold the whole tensor."""
    if len(x) == 1 and all(part == slices[0] for part in slices.values()):
        return x
    whole = spread(x, count)
    return np.stack([whole[device][slices[device]] for device in range(count)])


def _joined(
    x: Array, slices: Slices, shape: Sequence[int], groups: list[list[int]], count: int
) -> Array:
    """The tensors assembled from the shards of each group."""
    parts = spread(x, count)
    if len(groups) == 1:
        whole = np.empty((1, *shape), x.dtype)
        for device in groups[0]:
            place: tuple[int | slice, ...] = (0, *slices[device])
            whole[place] = parts[device]
        return whole
    whole = np.empty((count, *shape), x.dtype)
    for group in groups:
        tensor = np.empty(shape, x.dtype)
        for device in group:
            tensor[slices[device]] = parts[device]
        whole[group] = tensor
    return whole
