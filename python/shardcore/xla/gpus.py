"""Descriptions of GPUs, which XLA's compiler for GPUs asks for where there is no GPU.

A description is a ``GpuTargetConfigProto`` as text: sizes, rates and limits of a chip, as XLA
writes them on the chip; ``xla/backends/gpu/target_config/specs`` of openxla/xla has those of other
GPUs. That of H100 is here whole; others differ from it in what is listed.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GPUS", "Gpu"]

_DESCRIPTION = """
gpu_device_info {{
  name: "{gpu.name}" device_vendor: "NVIDIA Corporation"
  core_count: {gpu.core_count} fpus_per_core: {gpu.fpus_per_core} clock_rate_ghz: {gpu.clock_ghz}
  memory_bandwidth: {gpu.bytes_per_second} device_memory_size: {gpu.memory_bytes}
  l2_cache_size: {gpu.cache_bytes}
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_core: {gpu.shared_bytes}
  shared_memory_per_block_optin: {optin}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  thread_dim_limit_x: 1024 thread_dim_limit_y: 1024 thread_dim_limit_z: 64
  cuda_compute_capability {{ {gpu.capability} }}
  driver_version: "13.0.0" runtime_version: "13.0.0" compile_time_toolkit_version: "13.0.0"
  dnn_version: "9.19.0" device_address_bits: 64
}}
platform_name: "CUDA"
device_description_str: "{gpu.name}"
"""

_RESERVED_BYTES = 1024
"""The shared memory of a block that CUDA keeps for itself."""


@dataclass(frozen=True)
class Gpu:
    """What XLA's compiler asks of a GPU; sizes are in bytes, a core is a multiprocessor."""

    name: str
    core_count: int = 132
    fpus_per_core: int = 128
    clock_ghz: float = 1.98
    bytes_per_second: int = 3352320000000
    memory_bytes: int = 85017493504
    cache_bytes: int = 52428800
    shared_bytes: int = 233472
    """The shared memory of a core."""
    capability: str = "major: 9 feature_extension: ACCELERATED_FEATURES"
    """The fields of its compute capability."""

    @property
    def description(self) -> str:
        """The text for XLA."""
        return _DESCRIPTION.format(gpu=self, optin=self.shared_bytes - _RESERVED_BYTES)


GPUS = {
    "a100": Gpu(
        "NVIDIA A100-SXM4-80GB",
        core_count=108,
        fpus_per_core=64,
        clock_ghz=1.41,
        bytes_per_second=2039040000000,
        memory_bytes=85100068864,
        cache_bytes=40 << 20,
        shared_bytes=164 << 10,
        capability="major: 8",
    ),
    "h100": Gpu("NVIDIA H100 80GB HBM3"),
    "h200": Gpu(
        "NVIDIA H200 141GB HBM3e",
        bytes_per_second=4800000000000,
        memory_bytes=151397597184,
    ),
    "b200": Gpu(
        "NVIDIA B200",
        core_count=148,
        clock_ghz=1.965,
        bytes_per_second=7672320000000,
        memory_bytes=191514411008,
        cache_bytes=132644864,
        capability="major: 10 feature_extension: ACCELERATED_FEATURES",
    ),
}
"""The GPUs that are described, by the names of :func:`shardcore.calculus.hardware_names`."""
