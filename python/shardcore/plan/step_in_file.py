"""Where a user's file defines a step and jits it, and the edits that give it shardings there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardcore.plan.edits import Edits, Position, end_of, start_of

Function = ast.FunctionDef | ast.Lambda
_JIT = frozenset(("jax.jit", "jit", "jax.experimental.pjit.pjit", "pjit.pjit", "pjit"))
_PARTIAL = frozenset(("functools.partial", "partial"))


@dataclass(frozen=True)
class Jit:
    """A place where the step is jitted: ``jax.jit(step, ...)``, or a decorator."""

    node: ast.expr
    """The call that has the options; ``jax.jit`` itself where a decorator has none."""

    def give(self, edits: Edits, options: Mapping[str, str]) -> None:
        """Give these keywords to ``jax.jit``; those that are there already are replaced."""
        added = [f"{name}={value}" for name, value in options.items() if value != "None"]
        if not isinstance(self.node, ast.Call):
            if added:
                said = ", ".join((ast.unparse(self.node), *added))
                edits.replace_node(self.node, f"partial({said})")
            return
        given = {each.arg: each for each in self.node.keywords}
        added = [each for each in added if each.partition("=")[0] not in given]
        for name in [each for each in options if each in given]:
            said = ", ".join((f"{name}={options[name]}", *added))
            edits.replace(start_of(given[name]), end_of(given[name]), said)
            added = []
        if added and self.node.keywords:
            edits.insert(start_of(self.node.keywords[0]), f"{', '.join(added)}, ")
        elif added:
            edits.append_arguments(self.node, added)


def defined(tree: ast.Module, line: int) -> Function | None:
    """Return the function whose definition, or first decorator, is in ``line``; ``None`` if there
    is none, or several."""
    found: list[Function] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorated = (each.lineno for each in node.decorator_list)
            if min(node.lineno, *decorated, node.lineno) == line:
                found.append(node)
        elif isinstance(node, ast.Lambda) and node.lineno == line:
            found.append(node)
    return found[0] if len(found) == 1 else None


def jits(tree: ast.Module, step: Function) -> list[Jit]:
    """Return every call that jits ``step``, in the order of the file."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    found = [Jit(node) for node in calls if _is_jit_of(node, step)]
    return sorted(found, key=lambda each: each.node.lineno)


def decorators(step: Function) -> list[Jit]:
    """Return the decorators of ``step`` that jit it."""
    own = step.decorator_list if isinstance(step, ast.FunctionDef) else []
    return [
        Jit(each)
        for each in own
        if ast.unparse(each) in _JIT or (isinstance(each, ast.Call) and _is_jit_of(each, None))
    ]


def _is_jit_of(call: ast.Call, step: Function | None) -> bool:
    """Whether ``call`` jits ``step``; with ``None`` whether it makes a decorator that jits."""
    name = ast.unparse(call.func)
    if step is None:
        is_partial = name in _PARTIAL and len(call.args) == 1 and ast.unparse(call.args[0]) in _JIT
        return is_partial or (name in _JIT and not call.args)
    if name not in _JIT:
        return False
    given = [*call.args[:1], *(each.value for each in call.keywords if each.arg in ("fun", "f"))]
    return bool(given) and _is_of(given[0], step)


def _is_of(node: ast.expr, step: Function) -> bool:
    """Whether an expression is ``step``, by itself, as a method, or with some arguments given."""
    if isinstance(step, ast.Lambda):
        return node is step
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _PARTIAL and node.args:
        return _is_of(node.args[0], step)
    if isinstance(node, ast.Attribute):
        return node.attr == step.name
    return isinstance(node, ast.Name) and node.id == step.name


def calls(tree: ast.Module, step: Function, places: Sequence[Jit]) -> list[ast.Call]:
    """Return the calls of what is jitted at ``places``, in the order of the file."""
    made = {id(each.node) for each in places}
    names = {step.name} if isinstance(step, ast.FunctionDef) and step.decorator_list else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and id(node.value) in made:
            names.update(filter(None, map(_last_name, node.targets)))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (id(node.func) in made or _last_name(node.func) in names)
    ]


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def parameters(step: ast.FunctionDef) -> list[str]:
    """Return the names of the parameters of ``step``, those given by position first."""
    own = step.args
    every = [*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg]
    return [each.arg for each in every if each is not None]


def returns(step: ast.FunctionDef, edits: Edits) -> Iterator[tuple[Position, Position, bool]]:
    """Yield where the values that ``step`` returns begin and end, and whether each is a tuple
    without parentheses; without those of functions in it."""
    pending: list[ast.AST] = list(step.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            start, end = start_of(node.value), end_of(node.value)
            is_tuple = isinstance(node.value, ast.Tuple)
            yield start, end, is_tuple and not _is_in_parentheses(edits.between(start, end))
        pending += ast.iter_child_nodes(node)


def _is_in_parentheses(text: str) -> bool:
    if not text.startswith("("):
        return False
    try:
        ast.parse(f"({text[1:-1]})", mode="eval")
    except SyntaxError:
        return False
    return True


def first_statement(step: ast.FunctionDef) -> int | None:
    """Return the line of the first statement of ``step`` behind its docstring; ``None`` if there is
    none that has a line of its own."""
    body = step.body[1:] if ast.get_docstring(step, clean=False) is not None else step.body
    if not body:
        return None
    lines = [body[0].lineno, *(each.lineno for each in getattr(body[0], "decorator_list", ()))]
    return min(lines) if min(lines) > step.lineno else None
