"""``shardcore.jax.compile``: partitions a function with shardcore, to run on JAX's devices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType

from shardcore._core import Mesh, Result
from shardcore.jax.boundary import Leaf, boundary_mesh, leaves
from shardcore.jax.compiled import Compiled
from shardcore.jax.local_program import LocalProgram
from shardcore.jax.lowered import Lowered
from shardcore.jax.mesh import chosen_devices, is_same_mesh
from shardcore.jax.mistakes import mistake
from shardcore.jax.refusals import ask
from shardcore.jax.result import JaxMesh, JaxResult
from shardcore.jax.trees import Trees, is_hidden
from shardcore.partition import Partitioned


def compile(
    program: Lowered | JaxResult | Result,
    devices: Sequence[Any] | None = None,
    policy: str = "least",
) -> Compiled:
    """Partition a program, and compile the per-device program for JAX's devices.

    Args:
        program: what :func:`lower` returns, whose shardings are propagated first; or the result of
            ``propagate`` on it; or a :class:`shardcore.Result`, whose arguments and results are
            tuples.
        devices: the devices to run on: ``devices[k]`` is the device with id ``k`` in the program's
            meshes. By default the devices of the function's mesh; if it has none, the first of
            ``jax.devices()``.
        policy: how to choose where an op can be computed in more than one way; see
            :meth:`shardcore.Result.partition`.

    Raises:
        LoweringError: there are too few devices, or a device is listed twice (``devices``); JAX
            arrays cannot have the sharding of an argument or a result, such as one that does not
            divide a dim evenly (``unsayable-sharding``); XLA refuses the program (``lowering``).
        PartitionError: an op cannot be split over devices, such as a callback into the host
            (``unpartitionable``).
        ValueError: ``policy`` is unknown.
    """
    if isinstance(program, Lowered):
        program = program.propagate()
    if isinstance(program, Result):
        program = JaxResult(program, Trees.flat(program.module), None)
    if not isinstance(program, JaxResult):
        raise mistake(
            "not-a-function",
            f"a {type(program).__name__} is no program to compile",
            "give what shardcore.jax.lower returns",
        )
    partitioned = program.result.partition(policy)
    _refuse_hidden(partitioned)
    trees = program._trees
    ports = [*partitioned.arguments, *partitioned.results]
    own = boundary_mesh(ports) or next(iter(program.module.meshes.values()), None)
    mesh = _mesh(own, program, devices, partitioned.num_devices)
    inputs = leaves(partitioned.arguments, trees.kept_avals, own, mesh)
    outputs = leaves(partitioned.results, trees.out_avals, own, mesh)
    ids = own.device_ids if own is not None and own.device_ids else range(mesh.size)
    local = LocalProgram(str(partitioned.module), tuple(leaf.shard for leaf in outputs), tuple(ids))
    jitted, executable = _executable(local, mesh, inputs, outputs)
    # JAX loses the packing of 4-bit arrays on several devices, and its executables then refuse
    # # them. Jitted functions share the executable, but do not check.
    run = jitted if any(_is_packed(leaf) for leaf in inputs) else executable
    return Compiled(partitioned, executable, trees, mesh, inputs, outputs, run)


def _refuse_hidden(partitioned: Partitioned) -> None:
    """Raise if the program has hidden arguments: ones that are no arguments of the function."""
    for port in (*partitioned.arguments, *partitioned.results):
        if is_hidden(port):
            raise mistake(
                "lowering",
                f"{port.name} is nothing that the function takes or returns: {port.type}",
                "lower the function without ordered effects, dynamic shapes and constants that "
                "JAX keeps outside of programs",
            )


def _mesh(
    own: Mesh | None, program: JaxResult, devices: Sequence[Any] | None, num_devices: int
) -> jax.sharding.Mesh:
    """The mesh with devices that the program runs on: the user's, if the program is over it."""
    given: JaxMesh | None = program._trees.mesh if program._mesh is None else program._mesh
    if given is not None and (own is None or is_same_mesh(own, given)):
        names, shape, types = given.axis_names, given.axis_sizes, given.axis_types
    elif own is not None and own.axes:
        given = None
        names, shape = own.axis_names, tuple(own.shape.values())
        types = (AxisType.Auto,) * len(names)
    else:
        given = None
        names, shape, types = ("devices",), (num_devices,), (AxisType.Auto,)
    if isinstance(given, jax.sharding.Mesh) and devices is None:
        return given
    chosen = chosen_devices(devices, int(np.prod(shape, dtype=np.int64)))
    order = list(own.device_ids) if own is not None and own.device_ids else range(len(chosen))
    array = np.empty(len(chosen), dtype=object)
    array[:] = [chosen[index] for index in order]
    return jax.sharding.Mesh(array.reshape(shape), names, axis_types=types)


def _executable(
    local: LocalProgram, mesh: jax.sharding.Mesh, inputs: Sequence[Leaf], outputs: Sequence[Leaf]
) -> tuple[Callable[..., Any], jax.stages.Compiled]:
    """``local`` on the devices of ``mesh``, from global arrays to global arrays."""
    on_shards = jax.shard_map(
        local,
        mesh=mesh,
        in_specs=tuple(leaf.sharding.spec for leaf in inputs),
        out_specs=[leaf.sharding.spec for leaf in outputs],
        check_vma=False,
    )
    impls = [_key_impl(leaf) if leaf.is_key else None for leaf in outputs]

    def run(*arrays: Any) -> list[Any]:
        data = [
            jax.random.key_data(array) if leaf.is_key else array
            for array, leaf in zip(arrays, inputs, strict=True)
        ]
        return [
            array if impl is None else jax.random.wrap_key_data(array, impl=impl)
            for array, impl in zip(on_shards(*data), impls, strict=True)
        ]

    jitted = jax.jit(
        run,
        in_shardings=tuple(leaf.sharding for leaf in inputs),
        donate_argnums=tuple(index for index, leaf in enumerate(inputs) if leaf.is_donated),
    )
    platform = mesh.devices.flat[0].platform
    with warnings.catch_warnings():
        # JAX warned about donated buffers that it cannot use when it lowered the function.
        warnings.filterwarnings("ignore", "Some donated buffers")
        lowered = ask(
            jitted.lower, *(leaf.describe() for leaf in inputs), of=run, platform=platform
        )
        return jitted, ask(lowered.compile, platform=platform)


def _is_packed(leaf: Leaf) -> bool:
    """Whether an element takes less than a byte."""
    if leaf.is_key or leaf.dtype == bool:
        return False
    info = jnp.iinfo if jnp.issubdtype(leaf.dtype, jnp.integer) else jnp.finfo
    return bool(info(leaf.dtype).bits < 8)


def _key_impl(leaf: Leaf) -> Any:
    """The PRNG implementation of the keys in ``leaf``; JAX gives it for arrays, not for dtypes."""
    found: list[Any] = []

    def ask(keys: Any) -> Any:
        found.append(jax.random.key_impl(keys))
        return jax.random.key_data(keys)

    jax.eval_shape(ask, leaf.describe())
    return found[0]
