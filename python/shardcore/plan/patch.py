"""Writes a plan as a unified diff of the user's files; no file is changed.

The shardings of arguments and results are given where the step is jitted. Where that cannot be, as
with arguments given by keyword, or trees of classes, which no code at that place makes, the step
constrains its arguments and results itself. If the step's definition is not known, they stand apart
at the end of the file.
"""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardcore.calculus.partition_spec import spec_text
from shardcore.plan import code
from shardcore.plan.edits import end_of, start_of
from shardcore.plan.literal import UnwritableError
from shardcore.plan.mesh_in_file import give_mesh
from shardcore.plan.own_constraints import remove_constraints
from shardcore.plan.step_in_file import (
    Function,
    calls,
    defined,
    first_statement,
    jits,
    parameters,
    returns,
)
from shardcore.plan.user_file import File
from shardcore.plan.user_trees import path as port_path
from shardcore.source_lines import constrained

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan
    from shardcore.signature import Signature

FREE, LINES = "constrained", "jax.lax.with_sharding_constraint"
"""What constrains a value: with its gradient free, or constrained alike."""
_NO_SHARDINGS = {"in_shardings": "None", "out_shardings": "None"}


@dataclass(frozen=True)
class Changed:
    """The user's files with a plan applied."""

    texts: Mapping[str, tuple[str, str]]
    """The text of each file before and after, by its real path."""
    left: tuple[str, ...]
    """What is left to be done by hand."""
    entry: str | None
    """The function that returns the step with the plan, its arguments and options."""

    def diff(self) -> str:
        """Return the changes as a unified diff."""
        found: list[str] = []
        for path, (old, new) in self.texts.items():
            name = _from_here(path)
            lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
            found += difflib.unified_diff(*lines, fromfile=name, tofile=name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in found)


class _Files:
    """The files that are changed, each read when it is first asked for."""

    def __init__(self) -> None:
        self.read: dict[str, File] = {}

    def __getitem__(self, path: str) -> File:
        path = os.path.realpath(path)
        if path not in self.read:
            self.read[path] = File.read(path)
        return self.read[path]


def changed(
    plan: Plan,
    file: str | None,
    function: str | None,
    signature: Signature | None,
    constrain: str | None = LINES,
) -> Changed:
    """Return the user's files with ``plan`` applied.

    Args:
        plan: the plan.
        file: the file with the function that makes the step, or the step.
        function: the name of the function that makes the step, if there is one.
        signature: the signature of the step, if it is known.
        constrain: the function that constrains values, :data:`LINES` or :data:`FREE`; ``None``
            leaves values free.

    Raises:
        OSError: a file cannot be read.
    """
    known = _Files()
    left: list[str] = []
    if not plan.keeps_constraints:
        remove_constraints(plan, known)
    if constrain is not None:
        _constrain(plan, known, constrain)
    entry = None
    if file is not None:
        own = known[file]
        step = _Step.find(plan, own, signature, known)
        applied = step.apply() if step is not None else None
        if applied is None:
            own.end.append(code.definitions(plan))
            options = {"in_shardings": "in_shardings(*arguments)"}
            if plan.stated.results:
                options["out_shardings"] = "out_shardings(results)"
        else:
            options, more = applied
            left += more
            own.definitions.insert(0, code.mesh_definition(plan))
            mesh = own.own("make_mesh()")
            left += give_mesh(own.tree, own.edits, mesh, code.abstract_mesh(plan))
        if function is not None and signature is not None and signature.is_joined:
            makes_results = "results" in options.get("out_shardings", "")
            own.end.append(code.planned(plan, function, options, makes_results))
            entry = f"{function}_planned"
    texts = {path: (each.text, each.changed()) for path, each in known.read.items()}
    return Changed(texts, tuple(left), entry)


@dataclass(frozen=True)
class _Step:
    """The definition of a step in a user's file."""

    plan: Plan
    signature: Signature
    file: File
    node: Function

    @staticmethod
    def find(plan: Plan, own: File, signature: Signature | None, known: _Files) -> _Step | None:
        """Return the definition of the step; ``None`` if it is not found, or if the plan changes
        more than shardings."""
        if signature is None or signature.file is None or plan.pipeline or plan.kept:
            return None
        try:
            file = known[signature.file]
        except (OSError, SyntaxError, UnicodeDecodeError):
            return None
        node = defined(file.tree, signature.line)
        # A function of another file that is not jitted there gets its shardings in this one.
        if node is None or (file is not own and not signature.is_jitted):
            return None
        return _Step(plan, signature, file, node)

    def apply(self) -> tuple[dict[str, str], list[str]] | None:
        """Give the step the shardings of the plan; return the options of ``lower`` that it needs
        besides, and what is left to do, or ``None`` if the shardings can be given nowhere."""
        places = jits(self.file.tree, self.node)
        if not places and not self.signature.is_jitted:
            return None
        self.file.use(min((self.node, *(each.node for each in places)), key=_line).lineno)
        called = calls(self.file.tree, self.node, places)
        by_keyword = bool(self.signature.keywords) or any(each.keywords for each in called)
        try:
            if places and not by_keyword:
                given = self._constants()
                for each in places:
                    each.give(self.file.edits, given)
                left = self._place(called, given["in_shardings"])
                return _NO_SHARDINGS if self.signature.is_jitted else given, left
        except UnwritableError:
            pass
        if not self._constrain_inside():
            return None
        for each in places:
            each.give(self.file.edits, _NO_SHARDINGS)
        return _NO_SHARDINGS, self._place_by_rules(called)

    def _place(self, called: list[ast.Call], shardings: str) -> list[str]:
        """Have calls place their arguments, as JAX takes no array that is placed otherwise."""
        count = len(self.signature.positional)
        found = [call for call in called if len(call.args) == count and not _is_starred(call)]
        for call in found:
            self.file.edits.wrap_arguments(call, "*jax.device_put((", f"), {shardings})")
        if found and len(found) == len(called):
            return []
        return [f"place the arguments of the step: jax.device_put(arguments, {shardings})"]

    def _place_by_rules(self, called: list[ast.Call]) -> list[str]:
        """Have calls place their arguments by the rules."""
        assert isinstance(self.node, ast.FunctionDef)
        edits, own = self.file.edits, self.file.own
        names = [each for each in parameters(self.node) if each != "self"]
        found = [call for call in called if not _is_starred(call)]
        for call in found:
            for name, argument in (
                *zip(names, call.args, strict=False),
                *((each.arg, each.value) for each in call.keywords),
            ):
                if name in self._roots():
                    before = f'{own("sharded")}({own("RULES")}, "{name}", '
                    edits.wrap(start_of(argument), end_of(argument), before, ")")
        if found and len(found) == len(called):
            return []
        said = f'{own("sharded")}({own("RULES")}, "{names[0]}", {names[0]})'
        return [f"place the arguments of the step: {said}"]

    def _roots(self) -> list[str]:
        """The names of the arguments that the program takes something of."""
        ports = self.plan.result.arguments()
        return list(dict.fromkeys(port_path(port).split("/")[0] for port in ports))

    def _constants(self) -> dict[str, str]:
        """Define the shardings as constants, and return their names by option."""
        values = code.constants(self.plan, self.signature)
        found = dict(_NO_SHARDINGS)
        for name, value in values.items():
            if value != "None":
                self.file.definitions.append(f"{name.upper()} = {value}\n")
                found[name] = self.file.own(name.upper())
        return found

    def _constrain_inside(self) -> bool:
        """Constrain arguments and results within the step; return whether that can be done."""
        node, file = self.node, self.file
        roots = self._roots()
        if not isinstance(node, ast.FunctionDef) or not {*roots} <= {*parameters(node)}:
            return False
        first = first_statement(node)
        if first is None:
            return False
        file.definitions.append(code.body_definitions(self.plan))
        name = file.own("sharded")
        indent = file.edits.between((first, 0), (first, node.body[-1].col_offset))
        rules = file.own("RULES")
        lines = [f'{indent}{root} = {name}({rules}, "{root}", {root})' for root in roots]
        file.edits.insert_line(first - 1, "\n".join(lines))
        if self.plan.stated.results:
            rules = file.own("RESULT_RULES")
            for start, end, is_open in returns(node, file.edits):
                before, after = ("(", ")") if is_open else ("", "")
                file.edits.wrap(start, end, f'{name}({rules}, "", {before}', f"{after})")
        return True


def _is_starred(call: ast.Call) -> bool:
    """Whether a call takes arguments that are not written one by one."""
    by_name = any(each.arg is None for each in call.keywords)
    return (
        by_name
        or not (call.args or call.keywords)
        or any(isinstance(each, ast.Starred) for each in call.args)
    )


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def _constrain(plan: Plan, known: _Files, constrain: str) -> None:
    """Constrain the values of ``plan`` where they are computed."""
    seen = set()
    for each in plan.constraints:
        site = each.site
        if site is None or (site.file, site.start, site.end) in seen:
            continue
        seen.add((site.file, site.start, site.end))
        file = known[site.file]
        if constrain == FREE and not file.has_free:
            file.definitions.append(code.FREE)
            file.has_free = True
        by = file.own(constrain) if constrain == FREE else constrain
        if site.name is not None and site.is_alone:
            said = constrained(site.name, spec_text(each.spec), by)
            file.edits.insert_line(site.end[0], f"{site.indent}{site.name} = {said}")
        else:
            before, after = constrained("\0", spec_text(each.spec), by).split("\0")
            file.edits.wrap(site.start, site.end, before, after)


def _from_here(path: str) -> str:
    """``path`` from the working directory, from which ``patch`` takes no other, if it is in it."""
    relative = os.path.relpath(path, os.path.realpath("."))
    return path if relative.startswith(os.pardir) else relative
