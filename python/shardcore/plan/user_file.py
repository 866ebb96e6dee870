"""A user's Python file, with the edits that apply a plan to it."""

from __future__ import annotations

import ast
import itertools
import re
from dataclasses import dataclass, field

from shardcore import files
from shardcore.plan.code import IMPORTS
from shardcore.plan.edits import Edits

_OWN = [
    "make_mesh",
    "by_rules",
    "in_shardings",
    "out_shardings",
    "sharded",
    "constrained",
    "constrained_gradient",
    "RULES",
    "RESULT_RULES",
    "IN_SHARDINGS",
    "OUT_SHARDINGS",
]
"""Names of what is added to a file; where the file has one of them, ``planned_`` is put before."""


@dataclass
class File:
    """A user's file, with the edits that apply a plan."""

    path: str
    text: str
    tree: ast.Module
    edits: Edits
    definitions: list[str] = field(default_factory=list)
    """What is added behind the imports."""
    end: list[str] = field(default_factory=list)
    """What is added at the end."""
    first_use: int | None = None
    """The line of the first use of the definitions."""

    def use(self, line: int) -> None:
        """Have the definitions stand before ``line``."""
        self.first_use = min(line, self.first_use or line)

    @staticmethod
    def read(path: str) -> File:
        """Return the file at ``path``.

        Raises:
            OSError: it cannot be read.
        """
        text = files.read(path).decode("utf-8")
        return File(path, text, ast.parse(text), Edits(text))

    def own(self, text: str) -> str:
        """``text`` with the names that the file has already replaced by free ones."""
        taken = "|".join(name for name in _OWN if name in self._names())
        return re.sub(rf"(?<![.\w])({taken})\b(?!=[^=])", r"planned_\1", text) if taken else text

    def _names(self) -> set[str]:
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.alias):
                found.add(node.asname or node.name)
        return found

    def changed(self) -> str:
        """Return the text with all changes."""
        if self.definitions:
            said = self.own(_apart(self.definitions))
            last = _last_import(self.tree, self.first_use)
            self.edits.insert_line(last, f"\n\n{said}" if last else f"{said}\n")
        new = self.edits.text()
        if self.end:
            new = f"{new.rstrip()}\n\n\n{self.own(_apart(self.end))}"
        return _with_imports(new)


def _apart(parts: list[str]) -> str:
    """``parts`` with the empty lines between them that definitions have; constants have none."""
    lines = [each.strip() for each in parts]
    found = lines[0]
    for before, each in itertools.pairwise(lines):
        is_plain = all(re.match(r"[A-Z_]+ = ", text) for text in (before, each))
        found += f"\n{each}" if is_plain else f"\n\n\n{each}"
    return found + "\n"


def _last_import(tree: ast.Module, before: int | None) -> int:
    """The last line of the imports that come before line ``before``; 0 if there are none."""
    last = _first(tree)
    for node in tree.body:
        if before is not None and node.lineno >= before:
            break
        inner = ast.walk(node) if isinstance(node, (ast.Try, ast.If)) else [node]
        if any(isinstance(each, (ast.Import, ast.ImportFrom)) for each in inner):
            last = node.end_lineno or node.lineno
    return last


def _with_imports(text: str) -> str:
    """``text`` with the imports added that the plan's code needs and ``text`` lacks."""
    tree = ast.parse(text)
    known = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    missing = [line for name, line in IMPORTS.items() if name in used and name not in known]
    edits = Edits(text)
    if missing:
        at = next((node.lineno - 1 for node in tree.body if _is_import(node)), _first(tree))
        edits.insert_line(max(at, _first(tree)), "\n".join(missing))
    return edits.text()


def _is_import(node: ast.stmt) -> bool:
    is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return isinstance(node, (ast.Import, ast.ImportFrom)) and not is_future


def _first(tree: ast.Module) -> int:
    """The number of lines that imports have to follow: the docstring and ``__future__`` imports."""
    last = 0
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not is_text and not is_future:
            break
        last = node.end_lineno or node.lineno
    return last
