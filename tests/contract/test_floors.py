"""The floors: a module uses strictly lower ones only, as lib.rs and CONTRIBUTING.md say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "rust" / "src"
ROW = re.compile(r"^(?://! )?\| (\d+) \| ([^|]+) \|", re.MULTILINE)
REEXPORTED = {"Mesh": "mesh", "Program": "ir"} | dict.fromkeys(
    ("Code", "Diagnostic", "Error", "Result"), "error"
)


def floors(page: Path) -> dict[str, int]:
    """The floor of each module."""
    return {
        module.removesuffix(".rs"): int(floor)
        for floor, modules in ROW.findall(page.read_text(encoding="utf-8"))
        for module in re.findall(r"`(\w+(?:\.rs)?)/?`", modules)
    }


def uses() -> Iterator[tuple[str, str, str]]:
    """Every use of another module: by whom, of what, in which file."""
    for path in sorted(SOURCE.rglob("*.rs")):
        file = path.relative_to(SOURCE).as_posix()
        module = file.split("/")[0].removesuffix(".rs")
        if module == "lib" or "tests" in file:
            continue
        text = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests {")[0]
        code = "\n".join(line for line in text.split("\n") if not line.strip().startswith("//"))
        for names in re.findall(r"\bcrate::(\{[^}]*\}|\w+)", code):
            for name in re.findall(r"\b[a-zA-Z]\w*(?!::\w)", names):
                used = REEXPORTED.get(name, name)
                if used != module:
                    yield module, used, file


def test_modules_use_lower_floors_only() -> None:
    floor = floors(SOURCE / "lib.rs")
    wrong = {
        f"{file}: {module} uses {used}"
        for module, used, file in uses()
        if floor[module] <= floor[used]
    }
    assert not wrong


def test_every_module_has_a_floor() -> None:
    modules = {path.stem if path.suffix else path.name for path in SOURCE.iterdir()} - {"lib"}
    assert set(floors(SOURCE / "lib.rs")) == modules


def test_contributing_says_the_same() -> None:
    assert floors(ROOT / "CONTRIBUTING.md") == floors(SOURCE / "lib.rs")


def test_files_are_short() -> None:
    long = {
        path.relative_to(ROOT).as_posix()
        for path in [*SOURCE.rglob("*.rs"), *(ROOT / "python").rglob("*.py")]
        if len(path.read_text(encoding="utf-8").splitlines()) > 400
    }
    assert not long


def test_the_calculus_knows_nothing_of_other_notations_and_tables() -> None:
    """It stands on the value classes, and on files that stand on nothing but errors."""
    allowed = {"_core", "bounded", "calculus", "errors", "expected", "units", "cached_property"}
    allowed |= {"compilers"}
    for path in sorted((ROOT / "python/shardcore/calculus").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        used = set(re.findall(r"^\s*(?:from|import) shardcore\.(\w+)", text, re.MULTILINE))
        assert used <= allowed, path.name


def test_no_process_waits_for_a_property_of_another() -> None:
    """That of ``functools`` has a lock in Python 3.10 and 3.11, which a fork may copy locked."""
    pattern = re.compile(r"from functools import .*\bcached_property\b|functools\.cached_property")
    for path in sorted((ROOT / "python/shardcore").rglob("*.py")):
        assert not pattern.search(path.read_text(encoding="utf-8")), path.name
