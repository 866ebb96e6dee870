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
    try:
        return _site_at(file, os.stat(file).st_mtime_ns, (line, column), op, end)
    except (OSError, ValueError):
        return None


@functools.lru_cache(maxsize=4096)
def _site_at(
    file: str, changed: int, place: tuple[int, int], op: str, end: tuple[int, int] | None
) -> Site | None:
    """As :func:`site`; ``changed`` is the file's modification time."""
    text, begun = _parsed(file, changed)
    found = begun.get(place, [])
    if end is None:
        wanted = [each for each in found if isinstance(each[0], _kind(op))] or found
    else:
        wanted = [each for each in found if (each[0].end_lineno, each[0].end_col_offset) == end]
    if not wanted:
        return None
    return _site(file, text, *wanted[-1])


def _kind(op: str) -> type[ast.expr] | tuple[type[ast.expr], ...]:
    """The kinds of Python expressions that an op may be written as."""
    name = op.rpartition(".")[2]
    if name in _INDEXED:
        return ast.Subscript, ast.Call
    return (ast.BinOp, ast.Call) if name in _OPERATORS else ast.Call


def _site(file: str, text: str, node: ast.expr, statement: ast.stmt) -> Site:
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


_Begun = dict[tuple[int, int], list[tuple[ast.expr, ast.stmt]]]
"""The expressions that begin at each line and column of a file, the shortest first, with the
statements that they are in."""


@functools.lru_cache(maxsize=8)
def _parsed(file: str, changed: int) -> tuple[str, _Begun]:
    """The text of a file and its expressions; ``changed`` is the file's modification time."""
    try:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
        return text, _begun(ast.parse(text))
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError):
        return "", {}


def _begun(tree: ast.Module) -> _Begun:
    found: _Begun = {}
    # A list, because expressions may be nested deeper than Python's recursion limit.
    left: list[tuple[ast.AST, ast.stmt | None]] = [(tree, None)]
    while left:
        node, within = left.pop()
        statement = node if isinstance(node, ast.stmt) else within
        is_value = isinstance(node, ast.expr) and not isinstance(
            getattr(node, "ctx", None), ast.Store
        )
        if is_value and statement is not None:
            assert isinstance(node, ast.expr)
            found.setdefault((node.lineno, node.col_offset), []).append((node, statement))
        left += [(child, statement) for child in ast.iter_child_nodes(node)]
    for alike in found.values():
        alike.sort(key=lambda each: (each[0].end_lineno or 0, each[0].end_col_offset or 0))
    return found
