"""Where in a user's file a value is computed: the expression, and the code to write there.

A location says where an expression begins. Several expressions may begin there: ``h``, ``h @ w``
and ``(h @ w).reshape(...)``. The kind of op decides which one computes the value; of several the
longest is taken, because that is the one assigned to a name.
"""

from __future__ import annotations

import ast
import functools
import os
from dataclasses import dataclass

CONSTRAINT = "jax.lax.with_sharding_constraint"
"""What constrains a value, and its gradient alike."""
_INDEXED = ("gather", "dynamic_slice", "dynamic_gather", "slice")
"""Ops that are written as ``x[index]``."""
_OPERATORS = ("add", "subtract", "multiply", "divide", "dot_general", "power", "remainder")
"""Ops that may be written as Python operators."""


@dataclass(frozen=True)
class Site:
    """An expression in a user's file."""

    file: str
    line: int
    """Counted from 1."""
    name: str | None
    """The variable that the expression is assigned to, if it is the whole right-hand side."""
    text: str
    """The expression's text."""
    start: tuple[int, int]
    """Where the expression begins: its line, and its column in bytes from 0."""
    end: tuple[int, int]
    """Where the expression ends: its line and column."""
    indent: str
    """The white space before the enclosing statement."""
    is_alone: bool
    """Whether the lines of the enclosing statement contain nothing else."""


def constraint_line(site: Site | None, spec: str, by: str = CONSTRAINT) -> str:
    """Return the line of code that constrains the value of ``site`` to ``spec`` by a function: a
    line after the assignment to a variable, or a replacement of the expression; written for ``x``
    if the expression is not known."""
    if site is None:
        return f"x = {constrained('x', spec, by)}"
    if site.name is None:
        return constrained(site.text, spec, by)
    return f"{site.name} = {constrained(site.name, spec, by)}"


def constrained(text: str, spec: str, by: str = CONSTRAINT) -> str:
    """Return the code of the expression ``text``, constrained to ``spec`` by a function."""
    return f"{by}({text}, {spec})"


def parts(location: str) -> tuple[str, int, int] | None:
    """Return file, line and column of ``location``, ``file:line:column``; ``None`` for another
    text."""
    file, _, rest = location.rpartition(":")
    file, _, line = file.rpartition(":")
    if not file or not line.isascii() or not line.isdigit() or not rest.isdigit():
        return None
    return file, int(line), int(rest)


def site(location: str, op: str, end: tuple[int, int] | None = None) -> Site | None:
    """Return the expression that begins at ``location`` and ends with the op called ``op``, or at
    the line and column ``end`` where these are known; ``None`` where the file cannot be read, or
    nothing begins there."""
    known = parts(location)
    if known is None:
        return None
    file, line, column = known
    text, tree = _read(file)
    if tree is None:
        return None
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.expr)
        and (node.lineno, node.col_offset) == (line, column)
        and not isinstance(getattr(node, "ctx", None), ast.Store)
    ]
    found.sort(key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    if end is None:
        wanted = [node for node in found if isinstance(node, _kind(op))] or found
    else:
        wanted = [node for node in found if (node.end_lineno, node.end_col_offset) == end]
    if not wanted:
        return None
    return _site(file, text, tree, wanted[-1])


def _kind(op: str) -> type[ast.expr] | tuple[type[ast.expr], ...]:
    """The kinds of Python expressions that an op may be written as."""
    name = op.rpartition(".")[2]
    if name in _INDEXED:
        return ast.Subscript, ast.Call
    return (ast.BinOp, ast.Call) if name in _OPERATORS else ast.Call


def _site(file: str, text: str, tree: ast.AST, node: ast.expr) -> Site:
    statements = (each for each in ast.walk(tree) if isinstance(each, ast.stmt))
    inside = [each for each in statements if _holds(each, node)]
    statement = max(inside, key=lambda each: (each.lineno, each.col_offset))
    name = None
    if isinstance(statement, ast.Assign) and statement.value is node:
        [*others, target] = statement.targets
        name = target.id if isinstance(target, ast.Name) and not others else None
    lines = text.splitlines()
    before = lines[statement.lineno - 1].encode()[: statement.col_offset].decode(errors="replace")
    last = lines[(statement.end_lineno or statement.lineno) - 1].encode()
    after = last[statement.end_col_offset or 0 :].decode(errors="replace").partition("#")[0]
    return Site(
        file,
        node.lineno,
        name,
        ast.get_source_segment(text, node) or "",
        (node.lineno, node.col_offset),
        (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset),
        before if not before.strip() else "",
        not before.strip() and not after.strip(),
    )


def _holds(statement: ast.stmt, node: ast.expr) -> bool:
    return any(each is node for each in ast.walk(statement))


@functools.lru_cache(maxsize=8)
def _parsed(file: str, changed: int) -> tuple[str, ast.Module | None]:
    """The text of a file and its syntax tree; ``changed`` is the file's modification time."""
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        return text, ast.parse(text)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return "", None


def _read(file: str) -> tuple[str, ast.Module | None]:
    try:
        return _parsed(file, os.stat(file).st_mtime_ns)
    except (OSError, ValueError):
        return "", None
