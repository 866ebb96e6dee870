"""Compiles the text of a program by XLA's own compilers for GPUs and TPUs, which need no chip.

It needs what `pip install shardcore[gpu-oracle]` installs, for TPUs `jax[tpu]`. Nothing runs:
figures are those that the compiler decided. Kernels are not timed to choose among them, as that
needs the chip.
"""

from __future__ import annotations

import os
import re
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

TARGET = "h100:8"
"""Eight H100 in one node."""
TPUS = "v5e:2x4"
"""Eight TPU v5e."""

_PARTITIONS = re.compile(r"mhlo\.num_partitions = (\d+)")

# What XLA asks of the description of a chip: sizes, rates and limits of an H100 SXM.
_H100 = """
gpu_device_info {
  name: "NVIDIA H100 80GB HBM3" device_vendor: "NVIDIA Corporation"
  core_count: 132 fpus_per_core: 128 clock_rate_ghz: 1.98
  memory_bandwidth: 3352320000000 device_memory_size: 85017493504 l2_cache_size: 52428800
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_core: 233472
  shared_memory_per_block_optin: 232448
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  cuda_compute_capability { major: 9 feature_extension: ACCELERATED_FEATURES }
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
  dnn_version: "9.19.0" device_address_bits: 64
}
platform_name: "CUDA"
device_description_str: "NVIDIA H100 80GB HBM3"
"""


@cache
def devices(target: str = TARGET) -> list[Any]:
    """The devices of a target; the process must not have made another backend for them."""
    if target == TPUS:
        return _tpus()
    cuda = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13"
    flags = f"--xla_gpu_cuda_data_dir={cuda} --xla_gpu_autotune_level=0"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}"
    os.environ["PATH"] = f"{cuda / 'bin'}{os.pathsep}{os.environ['PATH']}"
    import jax
    from jax.experimental import topologies

    jax.config.update("jax_platforms", "cpu")
    count = target.split(":")[1]
    described = topologies.get_topology_desc(
        platform="cuda", topology=f"1x1x{count}", target_config=_H100
    )
    return list(described.devices)


def _tpus() -> list[Any]:
    os.environ |= {"TPU_WORKER_HOSTNAMES": "localhost", "TPU_ACCELERATOR_TYPE": "v5litepod-8"}
    import jax
    from jax.experimental import topologies

    jax.config.update("jax_platforms", "cpu")
    return list(topologies.get_topology_desc(platform="tpu", topology_name=TPUS).devices)


def executable(text: str, target: str = TARGET, **options_of_xla: Any) -> Any:
    """The program compiled for :data:`TARGET` or :data:`TPUS`."""
    chips = devices(target)
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    found = _PARTITIONS.search(text)
    count = int(found[1]) if found else 1
    ids = np.array([chip.id for chip in chips[:count]]).reshape(1, count)
    options = compiler.get_compile_options(
        num_replicas=1, num_partitions=count, device_assignment=np.arange(count).reshape(1, count)
    )
    options.env_option_overrides = list(options_of_xla.items())
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    options.executable_build_options.device_assignment = xla_client.DeviceAssignment.create(ids)
    with mlir.make_ir_context():
        return chips[0].client.compile(
            ir.Module.parse(text), xla_client.DeviceList(tuple(chips[:count])), options
        )
