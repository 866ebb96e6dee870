"""Show how the time from text to text grows from N to 10 N, for every family of programs.

Processor seconds, the shortest of several runs. ``--help`` lists the options. A growth far above
ten is superlinear.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benches.engines import Ours, text_to_text
from benches.every import ALL


def main() -> None:
    """Measure the families that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="all, unless said otherwise")
    parser.add_argument("--size", type=int, default=3_000, help="N (default: 3000)")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    ours = Ours()

    def shortest(text: str) -> float:
        runs = range(options.repeats)
        return min(text_to_text(ours, text)[0]["text to text"] for _ in runs)

    print(f"{'family':20} {'N, ms':>10} {'10 N, ms':>10} {'growth':>7}")
    for name in options.families or ALL:
        # Three more levels of calls are eight times as many ops.
        sizes = (10, 13) if name == "calls" else (options.size, 10 * options.size)
        small, large = (shortest(ALL[name](size)) for size in sizes)
        growth = large / small
        print(f"{name:20} {small * 1e3:10.2f} {large * 1e3:10.2f} {growth:7.1f}", flush=True)


if __name__ == "__main__":
    main()
