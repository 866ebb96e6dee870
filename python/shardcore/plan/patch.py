"""Writes a plan as a unified diff of the user's files; no file is changed.

The shardings of arguments and results are given where the step is jitted. Where that cannot be, as
with arguments given by keyword, or trees of classes, which no code at that place makes, the step
constrains its arguments and results itself. If the step's definition is not known, they stand apart
at the end of the file.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardcore.calculus.partition_spec import spec_text
from shardcore.plan import code
from shardcore.plan.literal import UnwritableError
from shardcore.plan.mesh_in_file import give_mesh
from shardcore.plan.own_constraints import remove_constraints
from shardcore.plan.stated import GRADIENT
from shardcore.plan.step_changes import NO_SHARDINGS, Step
from shardcore.plan.user_file import File
from shardcore.source_lines import CONSTRAINT, Site, constrained

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan
    from shardcore.signature import Signature

FREE, LINES = "constrained", CONSTRAINT
"""What constrains a value: with its gradient free, or constrained alike."""


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
        left += [f"no line constrains {each}" for each in plan.unreached]
    entry = None
    if file is not None:
        own = known[file]
        step = Step.find(plan, own, signature, known.__getitem__)
        applied = step.apply() if step is not None else None
        if applied is None:
            options = _stand_apart(plan, own, signature)
        else:
            options, more = applied
            left += more
            own.definitions.insert(0, code.mesh_definition(plan))
            mesh = own.own("make_mesh()")
            left += give_mesh(own.tree, own.edits, mesh, code.abstract_mesh(plan))
        if function is not None and signature is not None:
            own.end.append(code.planned(plan, function, options, signature.is_joined))
            entry = f"{function}_planned"
    texts = {path: (each.text, each.changed()) for path, each in known.read.items()}
    return Changed(texts, tuple(left), entry)


def _stand_apart(plan: Plan, own: File, signature: Signature | None) -> dict[str, str]:
    """Define the shardings at the end of ``own``, and return the options of ``lower`` with them."""
    own_names = {name: own.own(name.upper()) for name in NO_SHARDINGS}
    if signature is not None and not signature.keywords and not plan.pipeline and not plan.kept:
        with contextlib.suppress(UnwritableError):
            ins, outs = code.in_constant(plan, signature), code.out_constant(plan, signature)
            own.end += [code.mesh_definition(plan), f"IN_SHARDINGS = {ins}\n"]
            own.end += [f"OUT_SHARDINGS = {outs}\n"]
            return own_names
    own.end.append(code.definitions(plan))
    found = {"in_shardings": "in_shardings(*arguments)"}
    if plan.stated.results:
        found["out_shardings"] = "out_shardings(results)"
    return found


def _constrain(plan: Plan, known: _Files, constrain: str) -> None:
    """Constrain the values of ``plan``, and gradients, where the values are computed."""
    # For each expression the specs, by the function that constrains it.
    lines: dict[Site, dict[str, str]] = {}
    for each in plan.constraints:
        if each.site is not None:
            by = GRADIENT if each.is_gradient else constrain
            lines.setdefault(each.site, {})[by] = spec_text(each.spec)
    for site, specs in lines.items():
        file = known[site.file]
        text = name = site.name if site.name is not None and site.is_alone else "\0"
        for by, spec in specs.items():
            if by in code.CONSTRAINTS and code.CONSTRAINTS[by] not in file.definitions:
                file.definitions.append(code.CONSTRAINTS[by])
            text = constrained(text, spec, file.own(by))
        if name == "\0":
            file.edits.wrap(site.start, site.end, *text.split("\0"))
        else:
            file.edits.insert_line(site.end[0], f"{site.indent}{name} = {text}")


def _from_here(path: str) -> str:
    """``path`` from the working directory, from which ``patch`` takes no other, if it is in it."""
    relative = os.path.relpath(path, os.path.realpath("."))
    return path if relative.startswith(os.pardir) else relative
