"""Solve an instance of the contest on intra-operator parallelism (IOPDDL), ASPLOS 2025.

`python benches/iopddl.py INSTANCE SECONDS` prints the cost, the memory and the bound of the best
choice found, and the strategy of each node as a JSON list on its last line. INSTANCE is a file of
`google/iopddl`, as it is or compressed by gzip. The seconds count from the start of the program.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path

from shardcore import StrategyProblem


def read(path: Path) -> StrategyProblem:
    """The problem in a file."""
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return StrategyProblem.from_json(data.decode("utf-8", errors="replace"), str(path))


def main() -> None:
    """Entry point."""
    start = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instance", type=Path)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="a line whenever the cost falls")
    options = parser.parse_args()
    problem = read(options.instance)
    best: list[float | None] = [None]

    def progress(cost: float | None, bound: float) -> None:
        if options.verbose and cost != best[0]:
            best[0] = cost
            print(
                f"{time.monotonic() - start:.1f} s: cost {cost:.0f}, bound {bound:.0f}", flush=True
            )

    # What is left for the end: writing the list, and the last round.
    left = options.seconds - (time.monotonic() - start) - 0.1
    solution = problem.solve(
        max(left, 0.0), seed=options.seed, threads=options.threads, progress=progress
    )
    print(f"{solution.status}, cost {solution.cost:.0f}, bound {solution.bound:.0f}")
    print(f"memory {solution.peak} of {problem.limit}")
    print(f"{time.monotonic() - start:.1f} s, {solution.rounds} rounds")
    print(json.dumps(solution.strategies if solution.status == "feasible" else []))


if __name__ == "__main__":
    main()
