"""Shows the memory that partitioning takes on top of the completed program, for each policy.

Bytes an op of MLP blocks: what is kept, and what is taken at the peak, in a process of its own.
The allocator gives memory back at once; unless told to, it keeps what was freed for a while. Run it
with `python -m benches.memory [--ops N] [POLICY ...]` on Linux.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import shardcore
from shardcore.partition import partitioned
from shardcore.partition.policies import POLICIES

from benches import families

STATUS = Path("/proc/self/status")


def resident(name: str) -> int:
    """Bytes of this process: those that it has now, ``VmRSS``, or had at most, ``VmHWM``."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def measured(policy: str, ops: int) -> tuple[float, float]:
    """Bytes an op that this process keeps, and has at the peak, for ``ops`` ops."""
    shardcore.Module.parse(families.mlp(60)).propagate().partition(policy)
    result = shardcore.Module.parse(families.mlp(ops)).propagate()
    count = result.module.num_ops
    # From here on the peak is that of what follows.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    local = result.partition(policy)
    kept, peak = (resident(name) - before for name in ("VmRSS", "VmHWM"))
    assert local.policy == policy
    return kept / count, peak / count


def apart(policy: str, ops: int) -> tuple[float, float]:
    """:func:`measured` in a process of its own."""
    command = [sys.executable, "-m", "benches.memory", "--ops", str(ops), "--one", policy]
    at_once = {**os.environ, "MIMALLOC_PURGE_DELAY": "0"}
    root = Path(__file__).parents[1]
    done = subprocess.run(command, env=at_once, cwd=root, capture_output=True, check=True)
    kept, peak = map(float, done.stdout.split())
    return kept, peak


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policies", nargs="*", choices=[[], *POLICIES], default=[])
    parser.add_argument("--ops", type=int, default=1_000_000)
    parser.add_argument("--one", choices=POLICIES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        # Fewer ops are treated as those of a large program.
        partitioned.MOST_OPS_KEPT = partitioned.MOST_OPS_COPIED = 0
        print(*measured(options.one, options.ops))
        return
    print("| policy | bytes an op kept | at the peak |")
    print("| --- | --- | --- |")
    for policy in options.policies or POLICIES:
        kept, peak = apart(policy, options.ops)
        print(f"| {policy} | {kept:.0f} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
