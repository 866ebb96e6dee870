"""Writes a plan as a unified diff of the user's files; no file is changed."""

from __future__ import annotations

import ast
import difflib
import os
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from shardcore import files
from shardcore.plan.code import IMPORTS, definitions, planned
from shardcore.plan.stated import Constraint

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan

_PARTS = 3
"""A step, its arguments and options."""


def patch(plan: Plan, file: str | None = None, function: str | None = None) -> str:
    """Return the diff that applies ``plan``: constraints where the values are computed, and at the
    end of ``file`` the mesh, the rules and the shardings made by the rules; and if ``function`` of
    ``file`` returns a step, arguments and options, also one that returns these with the plan.

    Raises:
        OSError: a file cannot be read.
    """
    by_file: dict[str, list[Constraint]] = defaultdict(list)
    own = None if file is None else os.path.realpath(file)
    for each in plan.constraints:
        if each.site is not None:
            by_file[os.path.realpath(each.site.file)].append(each)
    if own is not None:
        by_file.setdefault(own, [])
    found: list[str] = []
    for path, constraints in by_file.items():
        text = files.read(path).decode("utf-8")
        new = _constrained(text, constraints)
        if path == own:
            new = f"{new.rstrip()}\n\n\n{definitions(plan)}"
            if function is not None and _returns_parts(ast.parse(text), function):
                new += planned(plan, function)
        new = _with_imports(new)
        lines = (text.splitlines(keepends=True), new.splitlines(keepends=True))
        name = _from_here(path)
        found += difflib.unified_diff(*lines, fromfile=name, tofile=name)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in found)


def _from_here(path: str) -> str:
    """``path`` from the working directory, from which ``patch`` takes no other, if it is in it."""
    relative = os.path.relpath(path, os.path.realpath("."))
    return path if relative.startswith(os.pardir) else relative


def _returns_parts(tree: ast.Module, function: str) -> bool:
    """Whether ``function`` returns a step, a tuple of its arguments and maybe options, or what
    another function of the file returns that does."""
    known = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for _ in range(len(known)):
        if function not in known:
            return False
        last = known[function].body[-1]
        value = last.value if isinstance(last, ast.Return) else None
        if isinstance(value, ast.Tuple):
            _, *others = value.elts
            if len(others) == 1:
                return isinstance(others[0], ast.Tuple)
            return len(others) == _PARTS - 1 and _is_dict(others[1])
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
            return False
        function = value.func.id
    return False


def _is_dict(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(node, ast.Dict) or (isinstance(called, ast.Name) and called.id == "dict")


def _constrained(text: str, constraints: Iterable[Constraint]) -> str:
    """``text`` with ``constraints`` inserted from the last to the first, so that positions stay
    valid."""
    lines = text.splitlines(keepends=True)
    placed = [(each.site, each) for each in constraints if each.site is not None]
    for site, each in sorted(placed, key=lambda pair: pair[0].start, reverse=True):
        (first, start), (last, end) = site.start, site.end
        if site.name is not None and site.is_alone:
            lines.insert(last, f"{site.indent}{each.line}\n")
            continue
        before = lines[first - 1].encode()[:start].decode()
        after = lines[last - 1].encode()[end:].decode()
        lines[first - 1 : last] = [f"{before}{each.wrapped}{after}"]
    return "".join(lines)


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
    lines = text.splitlines(keepends=True)
    lines[_first(tree) : _first(tree)] = [f"{line}\n" for line in missing]
    return "".join(lines)


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
