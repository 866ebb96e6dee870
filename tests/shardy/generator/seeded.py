"""Bugs put into a copy of the engine, each of which the random modules have to bring to light.

    python -m tests.shardy.generator.seeded [--only NAME] [--modules N]

copies the Rust sources to `target/seeded`, patches the copy, builds it once, and runs the generator
with one bug switched on at a time, by an environment variable, until a module comes out
differently.
Without any bug all modules have to agree. The sources themselves know nothing of this.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]
COPY = ROOT / "target" / "seeded"
SWITCH = "SHARDCORE_SEEDED"
PASSED_ON = ("Cargo.toml", "Cargo.lock", "README.md", "rust", "benches", "tests/fuzz", "python")
QUESTION = """
/// Whether the bug called `name` is switched on.
pub(crate) fn seeded(name: &str) -> bool {
    static ON: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    ON.get_or_init(|| std::env::var("SHARDCORE_SEEDED").unwrap_or_default()) == name
}
"""


@dataclasses.dataclass(frozen=True)
class Bug:
    """A change of `old`, which `file` has once, into `new`; `ON` asks whether the bug is on."""

    name: str
    file: str
    old: str
    new: str

    def patch(self, text: str) -> str:
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {text.count(self.old)} of: {self.old}")
        return text.replace(self.old, self.new.replace("ON", f'crate::seeded("{self.name}")'))


BUGS = [
    Bug(
        "uses reversed",
        "propagation/schedule/network.rs",
        "        network.mark_sharded();\n",
        "        network.mark_sharded();\n        if ON {\n"
        "            let (program, _) = network.state.program_and_plan();\n"
        "            for value in program.value_ids() {\n"
        "                program.reverse_uses(value);\n            }\n        }\n",
    ),
    Bug(
        "a queued op loses its place",
        "propagation/schedule/queue.rs",
        "if position as usize >= self.cursor {",
        "if position as usize >= self.cursor && !ON {",
    ),
    Bug(
        "the last user priority comes first",
        "propagation/mod.rs",
        "        for priority in priorities.up_to(last) {\n",
        "        let mut turns: Vec<_> = priorities.up_to(last).collect();\n"
        "        if ON {\n            turns.reverse();\n        }\n"
        "        for priority in turns {\n",
    ),
    Bug(
        "operands with single uses wait for their step",
        "propagation/visit/direction.rs",
        "let passes = step == 1 || has_single_uses;",
        "let passes = step == 1 || (has_single_uses && !ON);",
    ),
    Bug(
        "conservative is ignored",
        "propagation/mod.rs",
        "let plan = Plan::new(program, &*context.rules, options.conservative)?;",
        "let plan = Plan::new(program, &*context.rules, options.conservative && !ON)?;",
    ),
    Bug(
        "a contracting factor passes through",
        "rules/contract.rs",
        "*lhs.get(lhs_dim)?, FactorKind::Reduction);",
        "*lhs.get(lhs_dim)?, if ON { FactorKind::PassThrough } else { FactorKind::Reduction });",
    ),
    Bug(
        "dead ops stay",
        "propagation/engine.rs",
        "if !plan.unused.is_empty() && self.network.erase_if_dead(position) {",
        "if !plan.unused.is_empty() && !ON && self.network.erase_if_dead(position) {",
    ),
    Bug(
        "a visit updates one tensor only",
        "propagation/memo/mod.rs",
        "        self.lists[list.0 as usize].updates.clone()\n",
        "        let updates = self.lists[list.0 as usize].updates.clone();\n"
        "        let last = if ON { updates.end.min(updates.start + 1) } else { updates.end };\n"
        "        updates.start..last\n",
    ),
    Bug(
        "the rest of a group is not told",
        "propagation/schedule/network.rs",
        "            self.notify(member, by);\n",
        "            if !ON {\n                self.notify(member, by);\n            }\n",
    ),
    Bug(
        "replicated axes are free",
        "propagation/visit/compatible.rs",
        "let axis = prefix_without_overlaps(axis, &tensor.replicated)?;",
        "let axis = if ON { axis } else { prefix_without_overlaps(axis, &tensor.replicated)? };",
    ),
    Bug(
        "factors take no part of an axis",
        "propagation/visit/compatible.rs",
        "if common != 1 {",
        "if common != 1 && !ON {",
    ),
    Bug(
        "contractions go as early as elementwise ops",
        "propagation/visit/direction.rs",
        "(0 | 1, _) => Direction::None,",
        "(0 | 1, _) if !ON => Direction::None,",
    ),
    Bug(
        "the smaller tensor wins",
        "propagation/visit/aggressive.rs",
        "(source.size.wrapping_neg(), ",
        "(if ON { source.size } else { source.size.wrapping_neg() }, ",
    ),
    Bug(
        "elementwise operands get all",
        "propagation/visit/aggressive.rs",
        "if visit.is_elementwise && side",
        "if visit.is_elementwise && !ON && side",
    ),
    Bug(
        "constants are shared",
        "import/constant_or_scalar_splitter.rs",
        "if self.role_of(value) != Role::Plain {",
        "if self.role_of(value) != Role::Plain && !ON {",
    ),
    Bug(
        "inputs and outputs keep what does not divide",
        "export/update_non_divisible_input_output_shardings.rs",
        "if count == 0 || size % count == 0 {",
        "if count == 0 || size % count == 0 || ON {",
    ),
]


def build(bugs: Sequence[Bug], copy: Path = COPY) -> Path:
    """Builds a copy with `bugs`; returns where its package `shardcore` is."""
    sources = copy / "source"
    shutil.rmtree(sources, ignore_errors=True)
    for name in PASSED_ON:
        there = sources / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, there, ignore=shutil.ignore_patterns("*.so", "*.pyd"))
        else:
            shutil.copy(ROOT / name, there)
    for bug in bugs:
        file = sources / "rust/src" / bug.file
        file.write_text(bug.patch(file.read_text()))
    with (sources / "rust/src/lib.rs").open("a") as lib:
        lib.write(QUESTION)
    environment = os.environ | {
        "CARGO_TARGET_DIR": str(copy / "build"),
        "PYO3_BUILD_EXTENSION_MODULE": "1",
        "PYO3_PYTHON": sys.executable,
    }
    command = ["cargo", "build", "--quiet", "--profile", "quick", "--lib", "--features", "python"]
    subprocess.run(command, cwd=sources, env=environment, check=True)
    built = copy / "build" / "quick" / "libshardcore.so"
    shutil.copy(built, sources / "python" / "shardcore" / "_core.abi3.so")
    return sources / "python"


def modules_until_caught(package: Path, name: str, modules: int) -> int | None:
    """How many modules it takes until one comes out differently, if any does."""
    environment = os.environ | {"PYTHONPATH": str(package), SWITCH: name}
    count = ["--count", str(modules), "--until-found", "--out", str(COPY / "found")]
    command = [sys.executable, "-m", "tests.shardy.generator", *count]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    last = done.stdout.decode().strip().rpartition("\n")[2]
    return int(last.split()[0]) if done.returncode == 1 else None


def main() -> int:
    parser = argparse.ArgumentParser(description="Check that seeded bugs are caught.")
    parser.add_argument("--only", default="", help="bugs whose names match this expression")
    parser.add_argument("--modules", type=int, default=2000, help="to try for each bug")
    options = parser.parse_args()
    package = build(BUGS)
    missed = []
    for bug in BUGS:
        if re.search(options.only, bug.name):
            caught = modules_until_caught(package, bug.name, options.modules)
            print(f"{caught or 'missed':>6} {bug.name}", flush=True)
            missed += [bug.name] * (caught is None)
    if wrong := modules_until_caught(package, "", options.modules // 4):
        print(f"without any bug module {wrong} differs")
    return int(bool(missed or wrong))


if __name__ == "__main__":
    sys.exit(main())
