"""Removes the constraints of values that a user's files have: a plan was found without them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Protocol

from shardcore.plan.edits import Edits, end_of, start_of
from shardcore.source_lines import parts

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan
    from shardcore.plan.user_file import File

_WRITTEN = "sharding_constraint"
"""The last name in the location of a constraint that the user wrote."""
_WHOLE = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)
"""Expressions that need no parentheses."""


class Files(Protocol):
    """Files by path."""

    def __getitem__(self, path: str) -> File:
        """Return the file at ``path``."""


def remove_constraints(plan: Plan, known: Files) -> None:
    """Remove the constraints that the program of ``plan`` came with from the files with them."""
    module = getattr(plan.program, "module", plan.program)
    places = {
        op.location
        for op in module.ops()
        if op.name == "sdy.sharding_constraint" and op.name_stack.rpartition("/")[2] == _WRITTEN
    }
    for place in sorted(filter(None, places)):
        found = parts(place)
        if found is None:
            continue
        path, *at = found
        try:
            file = known[path]
        except (OSError, SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Call) and [*start_of(node)] == at and _constrains(node):
                _remove(file.tree, node, file.edits)


def _constrains(call: ast.Call) -> bool:
    return ast.unparse(call.func).endswith("constraint") and bool(call.args)


def _remove(tree: ast.Module, call: ast.Call, edits: Edits) -> None:
    """Leave of ``call`` the value that it constrains; nothing of ``x = constraint(x, spec)``."""
    value = call.args[0]
    for block in _blocks(tree):
        for statement in block:
            if not isinstance(statement, ast.Assign) or statement.value is not call:
                continue
            is_itself = [ast.unparse(each) for each in statement.targets] == [ast.unparse(value)]
            if is_itself and len(block) > 1 and edits.are_lines(statement):
                edits.remove_lines(statement.lineno, statement.end_lineno or statement.lineno)
                return
    before, after = ("", "") if isinstance(value, _WHOLE) else ("(", ")")
    edits.replace(start_of(call), start_of(value), before)
    edits.replace(end_of(value), end_of(call), after)


def _blocks(tree: ast.Module) -> list[list[ast.stmt]]:
    """The lists of statements in ``tree``."""
    fields = (
        getattr(node, name, None)
        for node in ast.walk(tree)
        for name in ("body", "orelse", "finalbody")
    )
    return [each for each in fields if isinstance(each, list)]
