"""What the documentation names exists: passes, their options, flags, functions, attributes."""

from __future__ import annotations

import contextlib
import importlib
import io
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import shardcore
from shardcore import SHARDY_VERSIONS, PassManager, PipelineError
from shardcore.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "python").rglob("*.py")),
    *sorted((ROOT / "python").rglob("*.pyi")),
]
COMMANDS = ["propagate", "opt", "cost", "partition", "array", "collective", "matmul"]
COMMANDS += ["diff", "mcp", "check", "show", "sweep", "why", "report", "plan", "steps", "graph"]
COMMANDS += ["bench", "explain", "explain-time", "maxtext", "measure", "pipeline"]
COMMANDS += ["remat"]
CODE = re.compile(r"``([^`\n]+)``|`([^`\n]+)`")
NO_PASSES = {
    # Labels of canonicalization patterns.
    *("sdy-reshard", "sdy-collective"),
}


def names(page: Path) -> Iterator[tuple[str, str]]:
    """What stands as code in `page`, with the sentence that it stands in."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for sentence in re.split(r"(?<=[.:;|])\s|\n\n", text):
        for found in CODE.finditer(sentence):
            yield found[1] or found[2], sentence


def passes_in(text: str) -> list[str]:
    """The passes and pipelines that `text` names."""
    return [name for name in re.findall(r"\bsdy-[a-z0-9-]*[a-z0-9]", text) if has_pass(name)]


@cache
def has_pass(name: str) -> bool:
    return any(name in PassManager.pass_names(shardy=version) for version in SHARDY_VERSIONS)


@cache
def options() -> frozenset[str]:
    """The options of all passes and pipelines."""
    source = (ROOT / "rust/src/pipeline/option_specs.rs").read_text(encoding="utf-8")
    return frozenset(re.findall(r'\("([a-z0-9-]+)"', source)) | {"up-to-priority"}


@cache
def has_option(name: str, option: str) -> bool:
    """Whether the pass or pipeline called `name` has `option`."""
    for text in (f"{name}{{{option}}}", f"func.func({name}{{{option}}})"):
        try:
            PassManager.parse(f"builtin.module({text})", shardy=SHARDY_VERSIONS[-1])
        except PipelineError as error:
            if "has no option" not in str(error) and "runs on" not in str(error):
                return True
        else:
            return True
    return False


@cache
def flags() -> frozenset[str]:
    """The flags of all commands."""
    printed = io.StringIO()
    for command in COMMANDS:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([command, "--help"])
    text = printed.getvalue()
    # Flags of benchmarks, and of pytest with the plugin.
    sources = [
        *(ROOT / "benches").glob("*.py"),
        *(ROOT / "tests").glob("*.py"),
        ROOT / "python/shardcore/testing.py",
        ROOT / "tests/shardy/generator/__main__.py",
    ]
    for path in sources:
        text += " ".join(re.findall(r'"(--[a-z-]+)"', path.read_text(encoding="utf-8")))
        text += " "
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*", text)) | {"--version"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_passes_and_options(page: Path) -> None:
    unknown = set()
    for code, sentence in names(page):
        for name in re.findall(r"\bsdy-[a-z0-9-]*[a-z0-9]", code):
            if f"{name}-" not in code and not has_pass(name) and name not in NO_PASSES:
                unknown.add(name)
        option = code.partition("=")[0]
        if option not in options():
            continue
        near = passes_in(sentence)
        if near and not any(has_option(name, option) for name in near):
            unknown.add(f"{option} of {near}")
    assert not unknown


def test_an_option_that_a_pipeline_lacks_is_noticed() -> None:
    assert "enable-insert-explicit-collectives" in options()
    assert not has_option("sdy-propagation-pipeline", "enable-insert-explicit-collectives")
    assert has_option("sdy-export-pipeline", "enable-insert-explicit-collectives")
    assert has_option("sdy-basic-propagate", "conservative-propagation")
    assert not has_option("sdy-basic-propagate", "enable-full-version")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_flags(page: Path) -> None:
    known = flags() | {f"--{name}" for name in PassManager.pass_names()}
    unknown = set()
    for code, _ in names(page):
        words = code.split()
        # Flags of other programs stand behind their names.
        if words[0].startswith("--") or words[0] == "shardcore":
            unknown |= {word.partition("=")[0] for word in words if word.startswith("--")} - known
    assert not unknown


CLASSES = {name for name in shardcore.__all__ if name[0].isupper()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_functions_and_attributes(page: Path) -> None:
    unknown = set()
    for code, _ in names(page):
        found = re.match(r"~?((?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*)", code)
        if found and not exists(found[1]):
            unknown.add(found[1])
    assert not unknown


def exists(dotted: str) -> bool:
    """Whether what `dotted` names is there, if it is of this package."""
    first, *rest = dotted.split(".")
    if rest[-1] in ("py", "md", "rs", "toml", "mlir", "txt", "json", "html", "pyi", "sh", "svg"):
        return True
    if first == "shardcore":
        return resolves(importlib.import_module("shardcore"), "shardcore", rest)
    if first in CLASSES:
        return resolves(getattr(shardcore, first), first, rest)
    return True


def resolves(owner: Any, name: str, rest: list[str]) -> bool:
    for part in rest:
        name = f"{name}.{part}"
        if hasattr(owner, part):
            owner = getattr(owner, part)
        elif part in getattr(owner, "__annotations__", {}):
            return True
        else:
            try:
                owner = importlib.import_module(name)
            except ImportError:
                return False
    return True
