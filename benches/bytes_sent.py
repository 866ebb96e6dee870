"""Compares the bytes that a device sends under the policy `least` and under XLA's partitioner.

Both partition the same text; XLA's bytes are counted right after its partitioning pass. Run it with
`python -m benches.bytes_sent [NAME ...]`; names may be patterns.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys

import shardcore
from rich.console import Console
from rich.table import Table
from shardcore import ShardcoreError

from tests.shardy.programs import registry
from tests.shardy.xla import compiled, sent


def ours(text: str, policy: str) -> float:
    """Bytes that a device sends under ``policy``."""
    module = shardcore.Module.parse(text)
    return module.propagate(legalize_chlo=True).partition(policy).sent_bytes


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["*"])
    parser.add_argument("--policy", default="least")
    parser.add_argument("--only-worse", action="store_true", help="where XLA's sends less")
    options = parser.parse_args()
    table = Table("program", "ours", "XLA's", "ours / XLA's", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    refused: list[str] = []
    counts = {"less": 0, "equal": 0, "more": 0}
    for name in registry.names():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in options.names):
            continue
        text = registry.text(name)
        if not 1 < compiled.partitions(text) <= compiled.DEVICES:
            continue
        try:
            mine = ours(text, options.policy)
        except ShardcoreError as error:
            refused.append(f"{name}: ours refuses: {error.message}")
            continue
        try:
            theirs = sum(sent.sent_bytes(text).values())
        except Exception as error:
            refused.append(f"{name}: XLA refuses: {str(error).splitlines()[0][:90]}")
            continue
        verdict = "equal" if mine == theirs else "less" if mine < theirs else "more"
        counts[verdict] += 1
        if verdict == "more" or not options.only_worse:
            ratio = f"{mine / theirs:.3f}" if theirs else ("-" if not mine else "inf")
            table.add_row(name, f"{mine:,.0f}", f"{theirs:,.0f}", ratio)
        print(f"{name} {mine:.0f} {theirs:.0f}", file=sys.stderr, flush=True)
    console = Console()
    console.print(table)
    console.print(*refused, sep="\n", highlight=False)
    print(", ".join(f"{verdict} bytes: {count}" for verdict, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
