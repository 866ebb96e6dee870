"""Compiles a program by one of XLA's compilers, for chips that need not be there.

A separate program, because a program that a compiler does not expect may end the process, and
because a compiler reads its flags once for each process; :mod:`shardcore.xla.compile` starts it.
Imports nothing of shardcore. Standard input has a line of JSON, ``platform``, ``topology``,
``description``, ``num_devices`` and ``options``, and then the program. Into the folder that is its
argument it writes ``report.json``, the figures or the ``error``, ``module.txt``, the compiled HLO,
and for TPUs ``executable``, in which :mod:`shardcore.xla.buffers` finds the buffer assignment.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

NOT_INSTALLED = 3
"""The exit code that says that a package is not installed."""

PACKAGES = {
    "tpu": {"jax": "jax", "libtpu": "libtpu"},
    "cuda": {
        "jax": "jax",
        "jax_plugins.xla_cuda13": "jax-cuda13-plugin",
        "nvidia.cu13": "nvidia-cuda-nvcc",
    },
    "cpu": {"jax": "jax"},
}
"""For each platform the modules that its compiler needs, and the packages that have them."""
COMPILERS = {"tpu": "libtpu", "cuda": "jax-cuda13-plugin", "cpu": "jaxlib"}
"""The package that has the compiler of each platform."""


def main() -> int:
    """Compile the program on standard input, and return the exit code."""
    asked = json.loads(sys.stdin.readline())
    text, folder, platform = sys.stdin.read(), Path(sys.argv[1]), asked["platform"]
    missing = [name for module, name in PACKAGES[platform].items() if not _is_installed(module)]
    if missing:
        print(", ".join(missing))
        return NOT_INSTALLED
    try:
        report = _compiled(text, folder, **asked)
    except Exception as error:
        report = {"error": str(error) or type(error).__name__}
    names = dict.fromkeys((COMPILERS[platform], "jaxlib"))
    report["versions"] = {name: version(name) for name in names}
    Path(folder, "report.json").write_text(json.dumps(report), encoding="utf-8")
    return 0


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, PackageNotFoundError):
        return False


def _compiled(
    text: str,
    folder: Path,
    *,
    platform: str,
    topology: str,
    description: str | None,
    num_devices: int,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Compile ``text``, write the outcome into ``folder``, and return the figures."""
    if platform == "cuda":
        _find_cuda()
    import jax

    configure: Any = jax.config.update
    configure("jax_platforms", "cpu")
    if platform == "cpu":
        configure("jax_num_cpu_devices", num_devices)
        devices = jax.devices("cpu")
    else:
        from jax.experimental import topologies

        if description is None:
            described = topologies.get_topology_desc(topology, platform)
        else:
            described = topologies.get_topology_desc(
                "", platform, topology=topology, target_config=description
            )
        devices = described.devices
    compiled = _executable(text, devices[:num_devices], options, is_here=platform == "cpu")
    Path(folder, "module.txt").write_text(compiled.hlo_modules()[0].to_string(), encoding="utf-8")
    if platform == "tpu":
        Path(folder, "executable").write_bytes(compiled.serialize())
    stats, counts = compiled.get_compiled_memory_stats(), _analysis(compiled, platform)
    parts = ("argument", "output", "alias", "temp")
    sizes = [f"{place}{part}_size_in_bytes" for place in ("", "host_") for part in parts]
    return {
        "memory": {size: getattr(stats, size) for size in sizes},
        "flops": counts.get("flops", 0.0),
        "bytes_accessed": counts.get("bytes accessed", 0.0),
    }


def _analysis(compiled: Any, platform: str) -> dict[str, float]:
    """What XLA's cost analysis counts of the module, each loop once."""
    if platform != "cuda":
        return dict(compiled.cost_analysis())
    # The plugin for GPUs does not pass it on.
    import jax
    from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

    module = _hlo.hlo_module_from_text(compiled.hlo_modules()[0].to_string())
    return dict(_jax.hlo_module_cost_analysis(jax.devices("cpu")[0].client, module))


def _find_cuda() -> None:
    """Point XLA at the tools of the packages ``nvidia-*``, and forbid what needs a GPU: timing
    kernels to choose among them."""
    found = importlib.util.find_spec("nvidia.cu13")
    assert found is not None
    assert found.submodule_search_locations is not None
    [home, *_] = found.submodule_search_locations
    os.environ["XLA_FLAGS"] = f"--xla_gpu_cuda_data_dir={home} --xla_gpu_autotune_level=0"
    os.environ["PATH"] = os.pathsep.join((os.path.join(home, "bin"), os.environ.get("PATH", "")))


def _executable(text: str, devices: list[Any], options: dict[str, Any], *, is_here: bool) -> Any:
    """The program ``text``, which XLA partitions over ``devices``, compiled."""
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jaxlib import xla_client
    from jaxlib.mlir import ir

    count = len(devices)
    given = compiler.get_compile_options(
        num_replicas=1, num_partitions=count, device_assignment=np.arange(count).reshape(1, count)
    )
    given.env_option_overrides = list(options.items())
    build: Any = given.executable_build_options
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = True
    ids = np.array([device.id for device in devices]).reshape(1, count)
    build.device_assignment = xla_client.DeviceAssignment.create(ids)
    client = devices[0].client
    with mlir.make_ir_context():
        compile_for = client.compile_and_load if is_here else client.compile
        return compile_for(ir.Module.parse(text), xla_client.DeviceList(tuple(devices)), given)


if __name__ == "__main__":
    sys.exit(main())
