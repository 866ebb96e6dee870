"""Bulk comparison; see the package."""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import time
from pathlib import Path

from tests.shardy.generator import compare


def work(start: int, stop: int, out: Path) -> None:
    """Compares seeds, each announced before its turn so that a crash can be told."""
    for seed in range(start, stop):
        print(f"seed {seed}", flush=True)
        for text, pipeline in compare.of_seed(seed):
            finding = compare.check(text, pipeline)
            if finding is None:
                continue
            name = hashlib.sha1((text + pipeline).encode()).hexdigest()[:10]
            path = out / f"{seed}-{name}.mlir"
            path.write_text(f"// PIPELINE: {pipeline}\n{text}")
            first = " | ".join(finding.detail.splitlines()[:12])
            print(f"found {finding.kind} {path} {pipeline[-150:]}: {first}"[:1500], flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare with the reference in bulk.")
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("found"))
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True, parents=True)
    stop = options.start + options.count
    if options.worker:
        work(options.start, stop, options.out)
        return 0
    started, found, died, seed = time.monotonic(), 0, [], options.start
    while seed < stop:
        command = [
            sys.executable, "-m", __package__, "--worker", "--start", str(seed),
            "--count", str(stop - seed), "--out", str(options.out),
        ]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdout
            assert worker.stderr
            for line in worker.stdout:
                if line.startswith("seed "):
                    seed = int(line.split()[1])
                else:
                    found += 1
                    print(line, end="", flush=True)
            said = worker.stderr.read().strip().splitlines()
        if worker.returncode == 0:
            break
        died.append(seed)
        if said and worker.returncode > 0:
            print("\n".join(said[-8:]), flush=True)
        seed += 1
    seconds = time.monotonic() - started
    print(f"{options.count} modules in {seconds:.0f} s: {found} differ; died on {died}")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
