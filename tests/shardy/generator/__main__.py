"""Bulk comparison; see the package."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections import Counter
from pathlib import Path

from tests.shardy.generator import coverage, workers


def show_hits(seeds: range) -> None:
    """Prints how many modules have each feature, rule, kind of conflict and way of trimming."""
    hits: Counter[str] = Counter()
    for outcome in workers.run(seeds, coverage.of_seed):
        for one in outcome.findings:
            hits += one
    print(*(f"{count:6} {name}" for name, count in sorted(hits.items())), sep="\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare with the reference in bulk.")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--until-found", action="store_true", help="stop at the first difference")
    parser.add_argument("--out", type=Path, default=Path("found"), help="where to write findings")
    parser.add_argument("--hits", action="store_true", help="count what the modules hit instead")
    options = parser.parse_args()
    seeds = range(options.start, options.start + options.count)
    if options.hits:
        show_hits(seeds)
        return 0
    options.out.mkdir(exist_ok=True, parents=True)
    started, found, died, done = time.monotonic(), 0, [], 0
    for outcome in workers.run(seeds):
        done += 1
        if outcome.died:
            died.append(outcome.seed)
            print(f"seed {outcome.seed}: died in {outcome.died}", flush=True)
        for finding in outcome.findings:
            found += 1
            name = hashlib.sha1((finding.text + finding.pipeline).encode()).hexdigest()[:10]
            path = options.out / f"{outcome.seed}-{name}.mlir"
            path.write_text(f"// PIPELINE: {finding.pipeline}\n{finding.text}")
            first = " | ".join(finding.detail.splitlines()[:12])
            shown = f"{finding.kind} {path} {finding.pipeline[-150:]}: {first}"
            print(shown[:1500], flush=True)
        if found and options.until_found:
            break
    seconds = time.monotonic() - started
    print(f"{done} modules in {seconds:.0f} s: {found} differ; died on {died}")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
