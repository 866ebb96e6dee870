"""Python is a tree: records, calls of the engine, views, commands.

Imports go round in no circle of more than two files, nor of packages but those listed. Counted are
imports at the top of a file and inside its functions. Imports under ``TYPE_CHECKING`` are not
counted: they are for annotations, and run nothing. A record that users print or draw imports its
view inside the method that does so; the view names the record in annotations alone.

``from shardcore.costs import Cost`` is an import of the file that defines ``Cost``. What the engine
calls in Python (``own_function`` in ``rust/src/python``) is not counted either: code that needs
what stands above it calls a method of an object of the engine, as ``module.session()``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.contract.test_circles import File, circles

SOURCE = Path(__file__).resolve().parents[2] / "python"
VIEWS, COMMANDS = ("shardcore", "report"), ("shardcore", "cli")

# The circles of more than two files that are left, each as its files and the reason. There is none.
ALLOWED: dict[frozenset[str], str] = {}


# The same for packages, without the views that records import where they show themselves.
ALLOWED_PACKAGES = {
    frozenset({"shardcore.costs", "shardcore.partition"}): (
        "costs are of the program of one device, which lists its collectives with their costs"
    ),
}


class Import(NamedTuple):
    """What a file imports, ``name`` from ``module``; of a whole module no name."""

    module: File
    name: str
    as_name: str
    is_late: bool
    """Whether that happens inside a function."""


def read_files() -> dict[File, ast.Module]:
    """The code of every file, by the path of its module."""
    files = {}
    for path in sorted((SOURCE / "shardcore").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        files[parts] = ast.parse(path.read_text(encoding="utf-8"))
    return files


def imports(node: ast.AST, is_late: bool = False) -> Iterator[Import]:
    """What is imported in ``node`` when it runs."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        for other in node.orelse:
            yield from imports(other, is_late)
    elif isinstance(node, ast.Import):
        for each in node.names:
            yield Import(tuple(each.name.split(".")), "", each.asname or each.name, is_late)
    elif isinstance(node, ast.ImportFrom):
        assert node.module is not None
        assert node.level == 0, "imports are absolute"
        module = tuple(node.module.split("."))
        for each in node.names:
            yield Import(module, each.name, each.asname or each.name, is_late)
    else:
        is_late = is_late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from imports(child, is_late)


@cache
def imports_of_files() -> dict[File, list[Import]]:
    """What every file imports."""
    return {file: list(imports(tree)) for file, tree in read_files().items()}


def defining_file(module: File, name: str) -> File | None:
    """The file that defines ``name`` of ``module``, through what is exported anew; None if that is
    in another package, or in the engine."""
    files = imports_of_files()
    if module not in files or (module, name) == (("shardcore",), "_core"):
        return None
    if (*module, name) in files:
        return (*module, name)
    for each in files[module]:
        if each.as_name == name and each.name and not each.is_late:
            return defining_file(each.module, each.name)
    return module


def edges() -> Iterator[tuple[File, File, bool]]:
    """Each import of a file by another one, and whether it happens inside a function."""
    for file, found in imports_of_files().items():
        for each in found:
            target = defining_file(each.module, each.name)
            if target not in (None, file):
                yield file, target, each.is_late


def dotted(file: File) -> str:
    return ".".join(file)


def test_imports_are_found_where_they_run() -> None:
    text = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import a
else:
    import b.c
class D:
    from e import f as g
    def h(self):
        from i import j
"""
    _, *found = imports(ast.parse(text))
    assert found == [
        Import(("b", "c"), "", "b.c", is_late=False),
        Import(("e",), "f", "g", is_late=False),
        Import(("i",), "j", "j", is_late=True),
    ]
    assert defining_file(("shardcore",), "Cost") == ("shardcore", "costs", "program")
    assert defining_file(("shardcore",), "_core") is None
    assert defining_file(("shardcore", "report"), "table") == ("shardcore", "report", "table")


def test_no_circle_of_more_than_two_files() -> None:
    graph: dict[File, set[File]] = {file: set() for file in imports_of_files()}
    for file, target, _ in edges():
        graph[file].add(target)
    found = {frozenset(map(dotted, each)) for each in circles(graph) if len(each) > 2}
    assert sorted(map(sorted, found - ALLOWED.keys())) == []
    assert ALLOWED.keys() <= found, "these are no circles any more"


def test_no_circle_of_packages() -> None:
    graph: dict[File, set[File]] = {file[:2]: set() for file in imports_of_files()}
    for file, target, _ in edges():
        if VIEWS not in (file[:2], target[:2]) and file[:2] != target[:2]:
            graph[file[:2]].add(target[:2])
    found = {frozenset(map(dotted, each)) for each in circles(graph) if len(each) > 1}
    assert sorted(map(sorted, found ^ ALLOWED_PACKAGES.keys())) == []


def test_views_are_imported_by_methods_that_show() -> None:
    rooms = (VIEWS, COMMANDS)
    early = {
        f"{dotted(file)} imports {dotted(target)}"
        for file, target, is_late in edges()
        if target[:2] == VIEWS and file[:2] not in rooms and not is_late
    }
    assert early == set()


def test_nothing_stands_on_commands() -> None:
    users = {dotted(file) for file, target, _ in edges() if target[:2] == COMMANDS != file[:2]}
    assert users == {"shardcore.__main__"}
