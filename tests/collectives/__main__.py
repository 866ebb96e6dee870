"""Prints measured collectives beside ours.

python -m tests.collectives [--all]
python -m tests.collectives --write     writes the table of runs into ``docs/cost_evidence.md``
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.collectives.runs import Point, misses, points

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cost_evidence.md"
HEAD = "| run | sizes | median | 90 % | |\n| --- | --- | --- | --- | --- |\n"
TABLE = re.compile(f"(?<={re.escape(HEAD)})(?:\\|.*\n)+")


def table(found: list[Point]) -> str:
    """How far each run is off, as a table of Markdown."""
    rows = []
    for name, own in _groups(found):
        median, far, _ = misses(own)
        held_out = " held out " if name != "**held out**" and own[0].held_out else " "
        rows.append(f"| {name} | {len(own)} | {median:.1%} | {far:.1%} |{held_out}|\n")
    return "".join(rows)


def _groups(found: list[Point]) -> Iterator[tuple[str, list[Point]]]:
    for name in dict.fromkeys(point.run for point in found):
        yield name, [point for point in found if point.run == name]
    for name, held_out in (("**fitted**", False), ("**held out**", True)):
        yield name, [point for point in found if point.held_out == held_out]


def main(arguments: list[str]) -> None:
    """Print how far runs are off, and with ``--all`` each measured size."""
    found = points()
    if "--write" in arguments:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(TABLE.sub(lambda _: table(found), text), encoding="utf-8")
        return
    if "--all" in arguments:
        print(f"{'run':28} {'bytes':>12} {'measured':>12} {'ours':>12} {'bus GB/s':>9}   error")
        for point in found:
            ours = point.transfer().achieved
            print(
                f"{point.run:28} {point.bytes:12} {point.seconds * 1e6:9.1f} us "
                f"{ours * 1e6:9.1f} us {point.sent / ours * 1e-9:9.1f} {point.error:+7.1%}"
            )
    print(f"{'':28} sizes  median     90%    bias")
    for name, own in _groups(found):
        median, far, bias = misses(own)
        held_out = " held out" if own[0].held_out else ""
        print(f"{name.strip('*'):28} {len(own):5} {median:7.1%} {far:7.1%} {bias:+7.1%}{held_out}")


if __name__ == "__main__":
    main(sys.argv[1:])
