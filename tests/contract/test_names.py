"""The names that users rely on: what is public, documented, and loaded."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import shardcore
from shardcore import _core, rules

ROOT = Path(__file__).resolve().parents[2]
STUB = ast.parse((ROOT / "python/shardcore/_core.pyi").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def stub_classes() -> dict[str, ast.ClassDef]:
    return {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


def public(names: object) -> set[str]:
    return {name for name in names if not name.startswith("_")}  # type: ignore[attr-defined]


def test_all_lists_every_public_name_in_order() -> None:
    submodules = {name for name, _ in inspect.getmembers(shardcore, inspect.ismodule)}
    found = public(vars(shardcore)) - submodules - {"annotations"}
    # Constants come first, as the linter sorts them.
    names = sorted(shardcore.__all__, key=lambda name: (not name.isupper(), name))
    assert shardcore.__all__ == names
    assert found | {"__version__"} == set(shardcore.__all__)


def test_the_stub_has_exactly_what_the_extension_has() -> None:
    [exported] = [
        ast.literal_eval(node.value)
        for node in STUB.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert set(exported) == public(vars(_core)) | {"__version__"}
    assert set(stub_classes()) == {
        name for name, _ in inspect.getmembers(_core, inspect.isclass) if name != "__loader__"
    }


@pytest.mark.parametrize("name", stub_classes())
def test_the_stub_has_every_member(name: str) -> None:
    body = stub_classes()[name].body
    stated = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    assert public(stated) == public(vars(getattr(_core, name)))


@pytest.mark.parametrize("name", stub_classes())
def test_every_public_member_is_documented(name: str) -> None:
    node = stub_classes()[name]
    assert ast.get_docstring(node)
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
            assert ast.get_docstring(member), member.name


def test_every_class_of_the_core_is_exported() -> None:
    assert set(stub_classes()) <= set(shardcore.__all__)


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_every_documented_name_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path in re.findall(r"shardcore(?:\.\w+)+(?!\.?\w*/)", text):
        found: object = shardcore
        for part in path.split(".")[1:]:
            if not hasattr(found, part) and inspect.ismodule(found):
                # Some packages are loaded by whoever asks for them.
                importlib.import_module(f"{found.__name__}.{part}")
            assert hasattr(found, part), path
            found = getattr(found, part)
    for owner, member in re.findall(r"\b(module|Module|PassManager|Result)\.(\w+)\(", text):
        assert hasattr(
            getattr(shardcore, owner.capitalize(), getattr(shardcore, owner, None)), member
        )


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_links_and_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target
    for path in re.findall(r"`((?:rust|python|tests|docs|examples)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


def test_documented_deviations_have_their_tests() -> None:
    table = (ROOT / "docs/deviations.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", table)
    assert named
    for path, test in named:
        assert f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), test


def test_the_rules_module_exports_what_it_documents() -> None:
    assert rules.__all__ == sorted(rules.__all__)
    for name in rules.__all__:
        assert inspect.getdoc(getattr(rules, name)), name


def test_import_loads_nothing_but_the_standard_library() -> None:
    script = "import sys, shardcore, shardcore.cli; print(*{m.split('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"rich", "numpy", "jax", "jaxlib", "hypothesis"}, done.stderr


def test_the_version_is_that_of_the_package() -> None:
    cargo = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{shardcore.__version__}"\n' in cargo


def test_types_are_marked_as_such() -> None:
    assert (Path(shardcore.__file__).parent / "py.typed").exists()


def test_first_lines_of_docs_stand_alone() -> None:
    """A line that refers to the one above it says nothing where an editor shows it alone."""
    first_lines = re.compile(r'^\s*(?:///|//!|"""|r"""|#:) ?(?:The same\b|Likewise\b|Ditto\b)')
    previous = re.compile(r"^\s*//[/!]")
    wrong = []
    for path in [*(ROOT / "rust/src").rglob("*.rs"), *(ROOT / "python").rglob("*.py*")]:
        if path.suffix not in (".rs", ".py", ".pyi"):
            continue
        before = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if first_lines.match(line) and not previous.match(before):
                wrong.append(f"{path.relative_to(ROOT)}: {line.strip()}")
            before = line
    assert not wrong
