"""Running programs of one device on a runtime that is not ours: XLA for hosts, as replicas.

As replicas no partitioner runs: every device executes the program as it is written. Which
partition a device is it then asks as ``replica_id``, and channels are dropped, since a channel
means partitions. To be imported first in a process: it takes eight devices of the host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import numpy as np
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.sharding import Mesh, NamedSharding, PartitionSpec

_DROPPED = (
    r"channel_handle = #stablehlo\.channel_handle<handle = \d+, type = \d+>",
    r"use_global_device_ids",
)


def as_replicas(text: str) -> str:
    """The program with replicas in the place of partitions."""
    text = text.replace("stablehlo.partition_id", "stablehlo.replica_id")
    for item in _DROPPED:
        text = re.sub(item + r",\s*|,?\s*" + item, "", text)
    return text


# Programs run once, on little data: nearly all of the time is LLVM's and that of MLIR's fusion
# emitters. What XLA's passes make of a program stays the same.
_QUICK = {"xla_backend_optimization_level": "0", "xla_cpu_use_fusion_emitters": False}


@lru_cache(maxsize=1)
def _context() -> ir.Context:
    return jax_mlir.make_ir_context()


def compile_replicas(text: str, count: int) -> Any:
    """The executable of a program of one device for ``count`` devices."""
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    for part in (options, build):
        part.num_replicas, part.num_partitions = count, 1
    build.use_spmd_partitioning = False
    ids = np.arange(count).reshape(count, 1)
    assignment = xla_client.DeviceAssignment.create(ids)
    options.device_assignment = build.device_assignment = assignment
    options.env_option_overrides = list(_QUICK.items())
    devices = jax.devices()[:count]
    with _context() as context:
        module = ir.Module.parse(as_replicas(text), context)
        i32 = ir.IntegerType.get_signless(32)
        attributes = module.operation.attributes
        attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(i32, 1)
        attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(i32, count)
        return devices[0].client.compile_and_load(
            module, xla_client.DeviceList(tuple(devices)), options
        )


def run(text: str, inputs: Sequence[Sequence[np.ndarray]], count: int) -> list[list[np.ndarray]]:
    """What each of ``count`` devices gives; ``inputs[d]`` are the arguments of device ``d``."""
    return run_executable(compile_replicas(text, count), inputs, count)


def run_executable(
    executable: Any, inputs: Sequence[Sequence[np.ndarray]], count: int
) -> list[list[np.ndarray]]:
    """What each device gives, of a program that is compiled already."""
    devices = jax.devices()[:count]
    arguments = []
    for index in range(len(inputs[0])):
        parts = [np.asarray(inputs[device][index]) for device in range(count)]
        rows = [part[None] if part.ndim == 0 else part for part in parts]
        shape = (count * rows[0].shape[0], *rows[0].shape[1:])
        sharding = NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec("d"))
        # The runtime looks at what a device has; scalars are declared as rows of one.
        arrays = [jax.device_put(part, device) for part, device in zip(rows, devices, strict=True)]
        arguments.append(jax.make_array_from_single_device_arrays(shape, sharding, arrays))
    outputs = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [[np.asarray(output[device]) for output in outputs] for device in range(count)]
