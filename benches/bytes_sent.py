"""Compares the bytes that a device sends under the policy `least` and under XLA's partitioner.

Both partition the same program, with results placed alike: XLA, which would choose where results
without a sharding lie, gets the text with those that propagation gives them. XLA's bytes are
counted right after its partitioning pass. Run it with `python -m benches.bytes_sent [NAME ...]`;
names may be patterns.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys

import shardcore
from rich.console import Console
from rich.table import Table
from shardcore import ShardcoreError

from tests.shardy.programs import registry
from tests.shardy.xla import compiled, sent


def ours(result: shardcore.Result, policy: str) -> float:
    """Bytes that a device sends under ``policy``."""
    return result.partition(policy).sent_bytes


def placed(text: str, result: shardcore.Result) -> str:
    """The program whose results are placed as those of ``result``, the same program completed."""
    mesh = re.search(r"sdy\.mesh @([\w.$\-]+) =", text)
    head = re.search(r"func\.func public @main\(.*\) -> (.*) \{$", text, re.MULTILINE)
    if mesh is None or head is None:
        return text
    written = split(head[1][1:-1] if head[1].startswith("(") else head[1])
    for index, (port, one) in enumerate(zip(result.results(), written, strict=True)):
        if "sdy.sharding" in one or port.shape is None:
            continue
        whole = f"<@{mesh[1]}, [{', '.join('{}' for _ in port.shape)}]>"
        sharding = f"sdy.sharding = #sdy.sharding{port.sharding or whole}"
        has_attributes = one.endswith("}")
        written[index] = f"{one[:-1]}, {sharding}}}" if has_attributes else f"{one} {{{sharding}}}"
    return f"{text[: head.start(1)]}({', '.join(written)}){text[head.end(1) :]}"


def split(text: str) -> list[str]:
    """The parts of a list between commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "([{<") - (char in ")]}>")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text[start:].strip() else parts


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
    near = 0
    for name in registry.names():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in options.names):
            continue
        text = registry.text(name)
        if not 1 < compiled.partitions(text) <= compiled.DEVICES:
            continue
        try:
            result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
            mine = ours(result, options.policy)
        except ShardcoreError as error:
            refused.append(f"{name}: ours refuses: {error.message}")
            continue
        try:
            theirs = sum(sent.sent_bytes(placed(text, result)).values())
        except Exception as error:
            refused.append(f"{name}: XLA refuses: {str(error).splitlines()[0][:90]}")
            continue
        verdict = "equal" if mine == theirs else "less" if mine < theirs else "more"
        counts[verdict] += 1
        near += abs(mine - theirs) <= 0.05 * theirs
        if verdict == "more" or not options.only_worse:
            ratio = f"{mine / theirs:.3f}" if theirs else ("-" if not mine else "inf")
            table.add_row(name, f"{mine:,.0f}", f"{theirs:,.0f}", ratio)
        print(f"{name} {mine:.0f} {theirs:.0f}", file=sys.stderr, flush=True)
    console = Console()
    console.print(table)
    console.print(*refused, sep="\n", highlight=False)
    print(", ".join(f"{verdict} bytes: {count}" for verdict, count in counts.items()), end="")
    print(f"; within 5 %: {near}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
