"""Compare the times of shardcore and of Shardy inside jaxlib, in one run.

Each program is run by both in turn, several times; medians and their ratio are shown, and the
results are compared. ``make bench`` runs all; ``--help`` lists the choices.

Times are processor times on one core. *propagate* is the user-priority pass on the imported module,
*pipeline* the whole ``sdy-propagation-pipeline``, *text to text* parse, pipeline and print. These
are warm: the rules of the program's signatures are in the cache. *cold* is text to text in a new
process, which also measures the peak memory. The reference runs without MLIR's verifier.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benches import report  # noqa: E402
from benches.engines import IMPORT, Ours, Reference, cold, measure, medians  # noqa: E402
from benches.programs import ROWS, Row  # noqa: E402


def compare(row: Row, size: int, repeats: int, budget: float) -> report.Result:
    """Run both engines in turn: ``repeats`` times, fewer once ``budget`` seconds are over."""
    text = row.make(size)
    # An MLIR context keeps all attributes of its programs, so each program gets its own.
    reference, ours = Reference(), Ours()
    samples: dict[str, list[dict[str, float]]] = {"ours": [], "reference": []}
    end = time.perf_counter() + budget
    imported = ours.parse(text)
    ours.run(imported, IMPORT)
    ops = imported.num_ops
    measure(ours, text)
    for count in range(repeats):
        if count and time.perf_counter() > end:
            break
        seconds, theirs = measure(reference, text)
        samples["reference"].append(seconds)
        seconds, mine = measure(ours, text)
        samples["ours"].append(seconds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.mlir"
        path.write_text(text)
        first = cold(path)
    return {
        "family": row.name,
        "program": row.title(size),
        "size": size,
        "bytes": len(text),
        # A wide op counts by its operands.
        "ops": max(ops, size),
        "same": reference.canonical(mine) == theirs,
        "runs": len(samples["ours"]),
        "ours": medians(samples["ours"]),
        "reference": medians(samples["reference"]),
        "cold": first,
        "samples": samples,
    }


def chosen(patterns: list[str], only_small: bool) -> Iterator[tuple[Row, int, bool]]:
    """Each row and size to run, and whether the table shows it."""
    for row in ROWS:
        if patterns and not any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns):
            continue
        sizes = [*row.smaller, *row.shown]
        if only_small and row.is_slow:
            sizes.pop()
        for size in sizes:
            yield row, size, size in row.shown or size == sizes[-1]


def machine() -> str:
    """The processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores"


def main() -> int:
    """Run the comparisons that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = "\n".join(f"  {row.name}" for row in ROWS)
    parser.add_argument("rows", nargs="*", help=f"names of rows, * stands for anything:\n{names}")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (default: 5)")
    parser.add_argument(
        "--budget",
        type=float,
        default=60,
        help="seconds after which a program is not run\nagain (default: 60)",
    )
    parser.add_argument(
        "--small", action="store_true", help="leave out what takes the reference long"
    )
    parser.add_argument(
        "--out", type=Path, help="folder for the table, all figures as JSON, and a plot"
    )
    parser.add_argument(
        "--publish", action="store_true", help="put table and plot into the docs too"
    )
    options = parser.parse_args()
    results, shown = [], []
    for row, size, is_shown in chosen(options.rows, options.small):
        print(f"running {row.title(size)}", file=sys.stderr, flush=True)
        results.append(compare(row, size, options.repeats, options.budget))
        if is_shown:
            shown.append(results[-1])
    load = f"load {os.getloadavg()[2]:.1f} in the last quarter of an hour"
    facts = f"{machine()}; {time.strftime('%Y-%m-%d')}; {load}"
    table = report.table(shown)
    print(f"{table}\n\nours / the reference: how many times faster ours is. {facts}")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        record = {"machine": facts, "results": results}
        (options.out / "vs_shardy.json").write_text(json.dumps(record, indent=1) + "\n")
        (options.out / "vs_shardy.md").write_text(f"{table}\n\n{facts}\n")
        report.plot(results, options.out / "vs_shardy.svg")
    if options.publish:
        report.plot(results, ROOT / "docs" / "vs_shardy.svg")
        report.replace_table(ROOT / "docs" / "performance.md", f"{table}\n\n{facts}.")
    different = [result["program"] for result in results if not result["same"]]
    for program in different:
        print(f"the results of {program} differ", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
