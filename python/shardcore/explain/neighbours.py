"""The instructions next to a collective in its module, and their metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from shardcore.explain.calls import Call, tuple_index
from shardcore.explain.compiled import Origin, expanded
from shardcore.explain.hlo_text import Computation, HloModule, Instruction

__all__ = ["PASSED_ON", "Neighbours"]

PASSED_ON = frozenset({"bitcast", "copy", "reshape", "convert", "transpose", "get-tuple-element"})
"""Opcodes that pass an array on, changing at most its type and layout."""
PASSED_ON |= {"copy-start", "copy-done", "optimization-barrier", "opt-barrier", "async-done"}
_LARGE = frozenset({"dot", "convolution", "reduce", "scatter", "gather"})
"""Opcodes that are likely to be the main op of a fusion."""


class Neighbours:
    """Users and operands of an instruction, followed through fusions."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.known: dict[str, dict[str, list[Instruction]]] = {}

    def origins(
        self,
        computation: Computation,
        row: Instruction,
        before: list[Instruction],
        result: Instruction | None,
        num_parts: int,
        call: Call,
    ) -> Iterator[Origin]:
        """The metadata of one of ``num_parts`` parts, most trustworthy first."""
        own = [name for name in expanded(row.op_name) if name]
        location = self.module.location(row)
        source = "own" if num_parts == 1 and len(own) <= 1 else "beside"
        if num_parts > 1:
            source = "listed" if len(own) >= num_parts else "shared"
        # The line belongs to one of several names; it is unknown to which.
        at = location if len(own) <= 1 else None
        for name in own or [""]:
            if name or at:
                yield Origin(name, at, source)
        near = list(before)
        if result is not None:
            if result is not row:
                near.append(result)
            near += self._after(computation, result, call)
        near += [one for one, _ in call.callers if one.opcode == "fusion"]
        near = [one for each in near for one in self._named(each)]
        for one in near:
            at = self.module.location(one)
            # The name of a parameter is an argument's name, not an op's.
            if one.opcode != "parameter" and (at or one.op_name):
                for name in expanded(one.op_name):
                    yield Origin(name, at, "beside")

    def _named(self, row: Instruction) -> Iterator[Instruction]:
        """``row``; or, for a fusion without a name, its instructions with names."""
        inner = self.module.computations.get(row.called[0]) if row.called else None
        if row.opcode != "fusion" or row.op_name or inner is None:
            yield row
            return
        named = [one for one in inner.instructions.values() if one.op_name]
        named.sort(key=lambda one: (one.opcode not in _LARGE, -one.line))
        yield from (one for one in named[:4] if one.opcode != "parameter")

    def before(self, row: Instruction, call: Call) -> Iterator[Instruction]:
        """``row`` and the instructions that pass its array on, back to its producer, through
        fusions."""
        rows = self.module.computations[call.computation].instructions
        callers = list(call.callers)
        while True:
            yield row
            if row.opcode == "parameter" and callers and callers[0][0].opcode == "fusion":
                caller, name = callers.pop(0)
                rows = self.module.computations[name].instructions
                number = row.operands[0]
                operand = caller.operands[int(number)] if number.isdigit() else ""
            elif row.opcode in PASSED_ON and row.operands:
                operand = row.operands[0]
            else:
                return
            if operand not in rows:
                return
            row = rows[operand]

    def root(self, before: list[Instruction], call: Call) -> str:
        """Return a name for the producer of the array: the instruction, or the tuple element, and
        the computation."""
        computation, callers = call.computation, list(call.callers)
        element = ""
        for row in before[:-1]:
            if row.opcode == "get-tuple-element":
                element = f"{computation} {row.name}"
            elif row.opcode == "parameter":
                _, computation = callers.pop(0)
        return element or f"{computation} {before[-1].name}"

    def _after(
        self, computation: Computation, row: Instruction, call: Call
    ) -> Iterator[Instruction]:
        """The users of the array ``row``, through instructions that pass it on, and out of a
        fusion."""
        found = list(self._consumers(computation, row))
        yield from (one for one in found if one.opcode != "tuple")
        ends = [row, *found]
        root = computation.instructions.get(computation.root or "")
        if root is None or not call.callers or call.callers[0][0].opcode != "fusion":
            return
        fusion, name = call.callers[0]
        outer = self.module.computations[name]
        if root.opcode != "tuple":
            if any(one is root for one in ends):
                yield from self._consumers(outer, fusion)
            return
        names = {one.name for one in ends if one is not root}
        for index, operand in enumerate(root.operands):
            if operand in names:
                for user in self.users(outer).get(fusion.name, ()):
                    if tuple_index(user) == index:
                        yield user
                        yield from self._consumers(outer, user)

    def _consumers(self, computation: Computation, row: Instruction) -> list[Instruction]:
        users = self.users(computation)
        left, found, seen = [row], [], {row.name}
        while left and len(seen) < 64:
            for user in users.get(left.pop().name, ()):
                if user.name not in seen:
                    seen.add(user.name)
                    found.append(user)
                    if user.opcode in PASSED_ON:
                        left.append(user)
        return found[:8]

    def users(self, computation: Computation) -> dict[str, list[Instruction]]:
        """Return the users of each instruction of ``computation`` by its name."""
        known = self.known.get(computation.name)
        if known is None:
            known = self.known[computation.name] = defaultdict(list)
            for row in computation.instructions.values():
                for name in row.operands:
                    known[name].append(row)
        return known
