"""A step's definition in a user's files, changed so that it has the shardings of a plan."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardcore.plan import code
from shardcore.plan.edits import end_of, start_of
from shardcore.plan.literal import UnwritableError
from shardcore.plan.step_in_file import (
    Function,
    Jit,
    calls,
    decorators,
    defined,
    first_statement,
    jits,
    parameters,
    returns,
)
from shardcore.plan.user_file import File
from shardcore.plan.user_trees import path as port_path

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan
    from shardcore.signature import Signature

NO_SHARDINGS = {"in_shardings": "None", "out_shardings": "None"}
"""The options of a step that has its shardings."""


@dataclass(frozen=True)
class Step:
    """A step that gets the shardings of a plan."""

    plan: Plan
    signature: Signature
    file: File
    """The file with the definition."""
    node: Function
    jit_file: File
    """The file where it is jitted."""
    places: list[Jit]
    """Where in that file it is jitted."""

    @staticmethod
    def find(
        plan: Plan, own: File, signature: Signature | None, read: Callable[[str], File]
    ) -> Step | None:
        """Return the definition of the step; ``None`` if it is not found, if the plan changes more
        than shardings, or if the step is not jitted.

        Args:
            plan: the plan.
            own: the file with the function that makes the step.
            signature: the signature of the step, if it is known.
            read: returns a file by its path.
        """
        if signature is None or signature.file is None or plan.pipeline or plan.kept:
            return None
        try:
            file = read(signature.file)
        except (OSError, SyntaxError, UnicodeDecodeError):
            return None
        node = defined(file.tree, signature.line)
        if node is None:
            return None
        for each in (own, file):
            places = jits(each.tree, node) + (decorators(node) if each is file else [])
            if places and (each is own or signature.is_jitted):
                return Step(plan, signature, file, node, each, places)
        return Step(plan, signature, file, node, file, []) if signature.is_jitted else None

    def apply(self) -> tuple[dict[str, str], list[str]] | None:
        """Give the step the shardings of the plan; return the options of ``lower`` that it needs
        besides, and what is left to do, or ``None`` if the shardings can be given nowhere."""
        called = calls(self.jit_file.tree, self.node, self.places)
        by_keyword = bool(self.signature.keywords) or any(each.keywords for each in called)
        ins = "None" if by_keyword else self._written(code.in_constant)
        # JAX donates no argument without a sharding to a result that has one.
        outs = "None" if ins == "None" else self._written(code.out_constant)
        lacks = (
            ins == "None" and bool(self.plan.stated.arguments),
            outs == "None" and bool(self.plan.stated.results),
        )
        if any(lacks) and not self._constrain_inside(*lacks):
            return None
        given = {"in_shardings": ins, "out_shardings": outs}
        for name, value in given.items():
            if value != "None":
                self.jit_file.definitions.append(f"{name.upper()} = {value}\n")
                given[name] = self.jit_file.own(name.upper())
        for each in self.places:
            self.jit_file.use(each.node.lineno)
            each.give(self.jit_file.edits, given)
        left = self._place_by_rules(called) if lacks[0] else self._place(called, given)
        return NO_SHARDINGS if self.signature.is_jitted else given, left

    def _written(self, constant: Callable[[Plan, Signature], str]) -> str:
        """The code of shardings; ``None`` if they cannot be given where the step is jitted."""
        try:
            return constant(self.plan, self.signature) if self.places else "None"
        except UnwritableError:
            return "None"

    def _place(self, called: list[ast.Call], given: Mapping[str, str]) -> list[str]:
        """Have calls place their arguments, as JAX takes no array that is placed otherwise."""
        shardings = given["in_shardings"]
        if shardings == "None":
            return []
        count = len(self.signature.positional)
        found = [call for call in called if len(call.args) == count and not _is_starred(call)]
        for call in found:
            self.jit_file.edits.wrap_arguments(call, "*jax.device_put((", f"), {shardings})")
        if found and len(found) == len(called):
            return []
        return [f"place the arguments of the step: jax.device_put(arguments, {shardings})"]

    def _place_by_rules(self, called: list[ast.Call]) -> list[str]:
        """Have calls place their arguments by the rules, where the file has these."""
        assert isinstance(self.node, ast.FunctionDef)
        edits, own = self.file.edits, self.file.own
        names = [each for each in parameters(self.node) if each != "self"]
        found = [call for call in called if not _is_starred(call) and self.jit_file is self.file]
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

    def _constrain_inside(self, arguments: bool, results: bool) -> bool:
        """Constrain arguments, or results, within the step; return whether that can be done."""
        node, file, roots = self.node, self.file, self._roots()
        if not isinstance(node, ast.FunctionDef) or not {*roots} <= {*parameters(node)}:
            return False
        first = first_statement(node)
        if first is None:
            return False
        file.use(node.lineno)
        file.definitions.append(code.body_definitions(self.plan, arguments, results))
        name = file.own("sharded")
        if arguments:
            indent = file.edits.between((first, 0), (first, node.body[-1].col_offset))
            rules = file.own("RULES")
            lines = [f'{indent}{root} = {name}({rules}, "{root}", {root})' for root in roots]
            file.edits.insert_line(first - 1, "\n".join(lines))
        if results:
            rules = file.own("RESULT_RULES")
            for start, end, is_open in returns(node, file.edits):
                before, after = ("(", ")") if is_open else ("", "")
                file.edits.wrap(start, end, f'{name}({rules}, "", {before}', f"{after})")
        return True


def _is_starred(call: ast.Call) -> bool:
    """Whether a call takes arguments that are not written one by one."""
    by_name = any(each.arg is None for each in call.keywords)
    is_starred = any(isinstance(each, ast.Starred) for each in call.args)
    return by_name or is_starred or not (call.args or call.keywords)
