"""Fuzzes each target for a while, or runs one seed again."""

from __future__ import annotations

import argparse
import itertools
import sys
import time

from tests.fuzz.surfaces import TARGETS, isolated


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--seed", type=int, help="run this one, in this process")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no targets: {', '.join(sorted(unknown))}")
    targets = options.targets or list(TARGETS)
    if options.seed is not None:
        for target in targets:
            TARGETS[target](options.seed)
        return 0
    num_found = 0
    for target in targets:
        until, done = time.monotonic() + options.seconds, 0
        first = time.time_ns() // 1000
        for seed, wrong in isolated.run(target, itertools.count(first)):
            done += 1
            if wrong:
                num_found += 1
                print(f"{target} --seed {seed}: {wrong}", flush=True)
            if time.monotonic() > until:
                break
        print(f"{target}: {done} inputs", flush=True)
    return int(num_found > 0)


if __name__ == "__main__":
    sys.exit(main())
