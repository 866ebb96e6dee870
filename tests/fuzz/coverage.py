"""Line coverage of the parser by the corpus alone: `make coverage`.

    python tests/fuzz/coverage.py [--least PERCENT]

Builds the fuzz targets with rustc's coverage instrumentation, runs the corpus once, without any
mutation, and prints the share of lines reached in each file of `rust/src/mlir` (but for its
printer) and `rust/src/attribute`. Needs `rustup component add llvm-tools`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "target" / "coverage"
PARSER = ("rust/src/mlir/", "rust/src/attribute/")
NO_PARSER = ("rust/src/mlir/print/", "rust/src/mlir/tests/", "tests.rs")
CORPUS_TESTS = ("corpus_is_valid", "refused_texts_are_refused")


def tool(name: str) -> str:
    """A tool of LLVM as it comes with rustc, whose format of profiles has to match."""
    root = subprocess.run(
        ["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True
    )
    found = sorted(Path(root.stdout.strip()).glob(f"lib/rustlib/*/bin/{name}"))
    if not found:
        sys.exit(f"{name} is missing: rustup component add llvm-tools")
    return str(found[0])


def build() -> str:
    """Builds the fuzz targets with counters; the path of the binary."""
    flags = {"RUSTFLAGS": "-C instrument-coverage", "CARGO_TARGET_DIR": str(TARGET)}
    profile = {"LLVM_PROFILE_FILE": str(TARGET / "build-%p.profraw")}
    command = ["cargo", "test", "--quiet", "--test", "fuzz", "--no-run", "--message-format=json"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | flags | profile,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    binaries = [message["executable"] for message in messages if message.get("executable")]
    return str(binaries[-1])


def measure(binary: str) -> dict[str, tuple[int, int]]:
    """Lines reached and lines there are, by file of the parser."""
    raw, merged = TARGET / "corpus.profraw", TARGET / "corpus.profdata"
    subprocess.run(
        [binary, "--quiet", "--test-threads=1", *CORPUS_TESTS],
        env=os.environ | {"LLVM_PROFILE_FILE": str(raw)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    subprocess.run([tool("llvm-profdata"), "merge", "-o", merged, raw], check=True)
    export = [tool("llvm-cov"), "export", "--summary-only", f"--instr-profile={merged}", binary]
    report = json.loads(subprocess.run(export, capture_output=True, check=True).stdout)
    files = {}
    for row in report["data"][0]["files"]:
        name = row["filename"].removeprefix(f"{ROOT}/")
        if name.startswith(PARSER) and not any(part in name for part in NO_PARSER):
            lines = row["summary"]["lines"]
            files[name] = (lines["covered"], lines["count"])
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description="Line coverage of the parser by the corpus.")
    parser.add_argument("--least", type=float, default=85.0, help="fail below so many percent")
    least = parser.parse_args().least
    files = measure(build())
    for name, (covered, count) in sorted(files.items()):
        print(f"{covered:6} of {count:5} {100 * covered / max(count, 1):6.1f} %  {name}")
    covered, count = (sum(row[i] for row in files.values()) for i in (0, 1))
    percent = 100 * covered / count
    print(f"{covered:6} of {count:5} {percent:6.1f} %  in all")
    return 0 if percent >= least else 1


if __name__ == "__main__":
    sys.exit(main())
