"""Bugs put into what sessions reuse, each of which random edits have to find.

    python -m tests.session.seeded [--only NAME] [--modules N]

builds a copy of the engine with all of them, and edits random modules, with one bug switched on at
a time by an environment variable, until a result or a cost is another than that of a new run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.shardy.generator.seeded import ROOT, SWITCH, Bug, build

COPY = ROOT / "target" / "seeded-session"

BUGS = [
    Bug(
        "a dependency of a result is not recorded",
        "propagation/replay/readers.rs",
        "take_while(|&&(held, _)| held == value)",
        "take_while(|&&(held, _)| held == value && !ON)",
    ),
    Bug(
        "a change of the trace is not compared",
        "propagation/replay/follow.rs",
        "            changed.set(slot, new);",
        "            if !ON {\n                changed.set(slot, new);\n            }",
    ),
    Bug(
        "an annotation that is gone stays",
        "python/session_runs.rs",
        "if !annotated.annotations.contains_key(&target) {",
        "if !ON && !annotated.annotations.contains_key(&target) {",
    ),
    Bug(
        "bytes are a stale memo of the run before",
        "session/prepared.rs",
        "let imported = self.imported.clone();\n        let recorded_bytes = OnceLock::new();",
        "let imported = self.imported.clone();\n        let recorded_bytes = if ON {\n"
        "            self.recorded_bytes.clone()\n"
        "        } else {\n            OnceLock::new()\n        };",
    ),
    Bug(
        "a mark of the trace is lost",
        "propagation/replay/follow.rs",
        "                    if self.differences.is_read_by(position) {\n",
        "                    if !ON && self.differences.is_read_by(position) {\n",
    ),
    Bug(
        "a mark of the queue is lost",
        "propagation/replay/follow.rs",
        "(marks != 0).then(",
        "(marks != 0 && !ON).then(",
    ),
    Bug(
        "of two visits that are due the first is left out",
        "propagation/replay/follow.rs",
        "Some(recorded.min(own))",
        "Some(if ON { recorded.max(own) } else { recorded.min(own) })",
    ),
    Bug(
        "a run made of a replay lacks visits without effect",
        "propagation/replay/follow.rs",
        "if self.engine.marks(position) & 1 << now.run != 0 {",
        "if !ON && self.engine.marks(position) & 1 << now.run != 0 {",
    ),
    Bug(
        "new shardings have ids of others",
        "propagation/replay/replayer.rs",
        "*id = ShardingId::from_index(num_shardings + at);",
        "*id = ShardingId::from_index(num_shardings + if ON { 0 } else { at });",
    ),
]

EDIT = """
import sys
from tests.session import test_covered, test_exact, test_sparse
for start in range(0, int(sys.argv[1]), 10):
    seeds = range(start, start + 10)
    test_exact.check_chunk(seeds)
    test_covered.check(seeds)
    test_sparse.check(seeds)
"""


def is_found(package: Path, bug: str, modules: int) -> bool:
    """Whether random edits of so many modules of each kind find ``bug``."""
    environment = os.environ | {"PYTHONPATH": f"{package}:{ROOT}", SWITCH: bug}
    command = [sys.executable, "-c", EDIT, str(modules)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Check that seeded bugs are found.")
    parser.add_argument("--only", default="", help="bugs whose names match this expression")
    parser.add_argument("--modules", type=int, default=600, help="random modules of each kind")
    options = parser.parse_args()
    package = build(BUGS, COPY)
    missed = []
    for bug in BUGS:
        if re.search(options.only, bug.name):
            found = is_found(package, bug.name, options.modules)
            print(f"{'found' if found else 'missed':>6} {bug.name}", flush=True)
            missed += [bug.name] * (not found)
    is_wrong = is_found(package, "", options.modules // 10)
    if is_wrong:
        print("without any bug a result is wrong")
    return int(bool(missed) or is_wrong)


if __name__ == "__main__":
    sys.exit(main())
