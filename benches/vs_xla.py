"""Time partitioning against XLA's SPMD partitioner, side by side in one run.

Both get the same text, in turn, several times; medians and their ratio are shown. Propagation is
not counted: ours starts from the completed program, and XLA's figure is what it logs of its pass
``spmd-partitioning`` alone, in a process of its own that compiles for devices of the host. *lower*
is the engine on one plan, without passes that improve it; *least* all of
``result.partition("least")``: its plans, their improvement, and what each sends. Run it with
``python -m benches.vs_xla [--runs N]``.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import shardcore
from rich.console import Console
from rich.table import Table
from shardcore._core import partition_program

from benches import families
from benches.programs import gpt

PROGRAMS = {
    "GPT step, 12 layers": lambda: gpt(12),
    "MLP blocks, 10,000 ops": lambda: families.mlp(10_000),
}
SIZES = (10_000, 100_000, 1_000_000)
"""Ops of the programs that are timed without XLA, to see that time grows as they do."""

LOGGED = re.compile(r"HLO pass: spmd-partitioning time: .*?\((\d+) us\)")
COMPILE = """
import sys
from tests.shardy.xla import compiled
text = open(sys.argv[1]).read()
options = {"xla_backend_optimization_level": "0", "xla_cpu_use_fusion_emitters": False}
compiled.executable(text, **options)
"""


def of_xla(text: str) -> float:
    """Seconds that XLA's partitioner takes for ``text``."""
    found = re.search(r"mhlo\.num_partitions = (\d+)", text)
    environment = os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={found[1] if found else 1}",
        "TF_CPP_MIN_LOG_LEVEL": "0",
        "TF_CPP_VMODULE": "hlo_pass_pipeline=1",
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.mlir"
        path.write_text(text)
        command = [sys.executable, "-c", COMPILE, str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(LOGGED.findall(done.stderr)[-1]) / 1e6


def seconds(run: Callable[[], object]) -> float:
    """How long ``run`` takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def with_partitions(text: str) -> str:
    """The program with the number of devices, which XLA has to be told."""
    if "mhlo.num_partitions" in text:
        return text
    [mesh] = shardcore.Module.parse(text).meshes.values()
    attributes = f"mhlo.num_partitions = {mesh.num_devices} : i32, mhlo.num_replicas = 1 : i32"
    return text.replace("module @bench {", f"module @bench attributes {{{attributes}}} {{", 1)


def compare(name: str, text: str, runs: int) -> list[str]:
    """One row: ours and XLA's, in turn."""
    result = shardcore.Module.parse(text).propagate()
    result.partition()
    samples: dict[str, list[float]] = {"lower": [], "least": [], "xla": []}
    for _ in range(runs):
        samples["xla"].append(of_xla(text))
        # Of what is short the best of a few, each time.
        lower = lambda: partition_program(result.module, policy="shardy")  # noqa: E731
        samples["lower"].append(min(seconds(lower) for _ in range(5)))
        samples["least"].append(min(seconds(result.partition) for _ in range(5)))
    medians = {what: statistics.median(times) for what, times in samples.items()}
    lower, least, xla = (medians[what] * 1e3 for what in ("lower", "least", "xla"))
    num_ops = result.module.num_ops
    return [
        name,
        f"{num_ops:,}",
        f"{lower:.1f} ms",
        f"{least:.1f} ms",
        f"{xla:.0f} ms",
        f"{xla / lower:.0f} x",
        f"{xla / least:.1f} x",
    ]


def growth(make: Callable[[int], str], size: int) -> list[str]:
    """Time an op of a program of ``size`` ops."""
    result = shardcore.Module.parse(make(size)).propagate()
    took = min(seconds(lambda: partition_program(result.module, policy="shardy")) for _ in range(3))
    return [make.__name__, f"{size:,}", f"{took * 1e3:,.0f} ms", f"{took / size * 1e9:,.0f} ns"]


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-growth", action="store_true", help="leave out programs without XLA")
    options = parser.parse_args()
    console = Console()
    table = Table("program", "ops", "lower", "least", "XLA's pass", "/ lower", "/ least", box=None)
    for name, make in PROGRAMS.items():
        table.add_row(*compare(name, with_partitions(make()), options.runs))
    console.print(table)
    if not options.no_growth:
        table = Table("family", "ops", "lower", "an op", box=None)
        for make in (families.chain, families.mlp):
            for size in SIZES:
                table.add_row(*growth(make, size))
        console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
