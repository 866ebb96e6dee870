"""JAX programs that run a collective under ``shard_map``, check it, and time it.

The programs need as many devices as the mesh has. On a CPU, set
``XLA_FLAGS=--xla_force_host_platform_device_count=8`` before JAX is imported.
"""

from __future__ import annotations

import math

from shardcore._core import Mesh
from shardcore.calculus.axes import axis_text, group_size
from shardcore.calculus.collectives import Collective, book_name
from shardcore.calculus.dtypes import jax_dtype
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray
from shardcore.calculus.partition_spec import to_spec
from shardcore.errors import CalculusError
from shardcore.expected import expect

_TEMPLATE = """\
# {title}
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P

shard_map = getattr(jax, "shard_map", None)
if shard_map is None:
    from jax.experimental.shard_map import shard_map

devices = np.array(jax.devices()[:{num_devices}]).reshape({mesh_shape})
mesh = jax.sharding.Mesh(devices, {axis_names})
axes = {axes}
n = {group}  # devices that take part


def {op}(block):
{body}


fn = jax.jit({mapped})
x = jnp.arange({count}, dtype=jnp.float32).reshape({shape}).astype(jnp.{dtype})
x = jax.device_put(x, NamedSharding(mesh, {in_spec}))
y = fn(x).block_until_ready()
assert y.shape == {shape}, y.shape
assert y.sharding.shard_shape(y.shape) == {result_local}, y.sharding
{check}

start = time.perf_counter()
for _ in range(10):
    y = fn(x)
y.block_until_ready()
seconds = (time.perf_counter() - start) / 10
print("{op}", x.dtype, x.sharding.spec, "->", y.sharding.spec, seconds, "s")
"""


def snippet(collective: Collective, mesh: Mesh) -> str:
    """Return a program that runs ``collective`` on ``mesh``, checks its result, and times it.

    For a ReduceScatter or AllReduce, all devices have the same terms, so the sum is the input times
    the number of devices.

    Raises:
        CalculusError: sizes or the element type are unknown (``missing-size``), or the devices do
            not divide a dim evenly, or an axis to gather is not the minor-most of its dim
            (``invalid-collective``).
    """
    expect(collective, Collective)
    expect(mesh, Mesh)
    array, result = collective.array, collective.result
    used = (*array.axes, *collective.axes, *result.axes)
    parts = [axis_text(axis) for axis in used if not axis.is_full]
    if parts:
        raise mistake(
            CalculusError,
            "invalid-collective",
            f"JAX has no parts of axes, such as {parts[0]}",
            hint="split the axis of the mesh in two",
            text=parts[0],
        )
    if array.dtype is None:
        array.bytes_per_device(mesh)
    for each in (array, result):
        _check_even(each, mesh)
    _check_order(collective)
    sums = collective.op in ("reduce_scatter", "all_reduce")
    in_spec = to_spec(_summed(array))
    out_spec = to_spec(_summed(result))
    return _TEMPLATE.format(
        title=f"{collective} on {dict(mesh.shape)}",
        num_devices=mesh.num_devices,
        mesh_shape=_tuple([axis.size for axis in mesh.axes]),
        axis_names=_tuple(list(mesh.axis_names)),
        axes=_tuple([axis.name for axis in collective.axes]),
        group=group_size(mesh, collective.axes),
        op=collective.op,
        body="\n".join("    " + line for line in _body(collective, mesh)),
        mapped=f"shard_map({collective.op}, mesh=mesh, in_specs={in_spec}, out_specs={out_spec}, "
        "check_vma=False)",
        in_spec=in_spec,
        count=math.prod(array.shape),
        shape=_tuple(list(array.shape)),
        dtype=jax_dtype(array.dtype or ""),
        result_local=_tuple(list(result.local_shape(mesh))),
        check=_check(collective, sums),
    )


def _check(collective: Collective, sums: bool) -> str:
    """The assertion between the global arrays before and after."""
    if collective.op == "permute":
        return "assert sorted(map(float, x.ravel())) == sorted(map(float, y.ravel()))"
    factor = " * n" if sums else ""
    return f"np.testing.assert_allclose(np.float32(y), np.float32(x){factor}, rtol=0.02)"


def _body(collective: Collective, mesh: Mesh) -> list[str]:
    dims = range(len(collective.array.dims))
    axes = set(collective.axes)
    op = collective.op
    if op == "all_gather":
        lines = []
        for dim in dims:
            own = [axis.name for axis in collective.array.dims[dim].axes if axis in axes]
            if own:
                lines.append(
                    f"block = jax.lax.all_gather(block, {_tuple(own)}, axis={dim}, tiled=True)"
                )
        return [*lines, "return block"]
    if op == "all_reduce":
        return ["return jax.lax.psum(block, axes)"]
    if op == "reduce_scatter":
        return [
            "return jax.lax.psum_scatter("
            f"block, axes, scatter_dimension={collective.dim}, tiled=True)"
        ]
    if op == "all_to_all":
        source = [dim for dim in dims if set(collective.array.dims[dim].axes) & axes]
        return [
            f"return jax.lax.all_to_all(block, axes, split_axis={collective.dim}, "
            f"concat_axis={source[0]}, tiled=True)"
        ]
    if op == "permute":
        return [
            f"pairs = [(device, (device + {collective.shift}) % n) for device in range(n)]",
            "return jax.lax.ppermute(block, axes, pairs)",
        ]
    size = collective.result.local_shape(mesh)[collective.dim or 0]
    return [
        f"start = jax.lax.axis_index(axes) * {size}",
        f"return jax.lax.dynamic_slice_in_dim(block, start, {size}, axis={collective.dim})",
    ]


def _summed(array: NamedArray) -> NamedArray:
    return NamedArray(array.dims, array.name, array.dtype)


def _check_even(array: NamedArray, mesh: Mesh) -> None:
    local = array.local_shape(mesh)
    pieces = array.with_axes([dim.axes for dim in array.dims]).to_sharding(mesh)
    for index, size in enumerate(array.shape):
        if local[index] * pieces.sharded_size(index) != size:
            raise mistake(
                CalculusError,
                "invalid-collective",
                f"the devices do not divide {array.dims[index]} evenly, and JAX does not pad",
                hint="take a size that they divide",
                text=str(array),
            )


def _check_order(collective: Collective) -> None:
    axes = set(collective.axes)
    if collective.op in ("all_gather", "all_to_all"):
        for dim in collective.array.dims:
            kept = [axis for axis in dim.axes if axis not in axes]
            if tuple(kept) != dim.axes[: len(kept)]:
                raise mistake(
                    CalculusError,
                    "invalid-collective",
                    f"{book_name(collective.op)} of a major axis of {dim} leaves blocks out of "
                    "order, which no PartitionSpec can say",
                    hint="gather the minor axes too",
                    text=str(collective.array),
                )
    if collective.op == "all_to_all":
        sources = [dim for dim in collective.array.dims if set(dim.axes) & axes]
        if len(sources) > 1:
            raise mistake(
                CalculusError,
                "invalid-collective",
                "jax.lax.all_to_all moves axes of one dim only",
                hint="move those of one dim, then those of the other",
                text=str(collective.array),
            )


def _tuple(values: list[int] | list[str]) -> str:
    return repr(tuple(values))
