"""The computations with collectives that a module runs: how often, and the data flow into them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from shardcore.explain.compiled import kind_of
from shardcore.explain.hlo_text import Computation, HloModule, Instruction
from shardcore.explain.reach import Flow, Node, flow

__all__ = ["Call", "Calls", "trips", "tuple_index"]

_ENTERED = frozenset({"fusion", "call", "while", "conditional", "async-start", "custom-call"})
_TRIPS = re.compile(r"known_trip_count\W+n\W+(\d+)")
_INDEX = re.compile(r"[ ,]index=(\d+)")


@dataclass(frozen=True)
class Call:
    """A computation that runs, with its callers."""

    computation: str
    runs: int | None
    flow: Flow
    callers: tuple[tuple[Instruction, str], ...]
    """The calling instructions, innermost first, each with its computation."""


class Calls:
    """The computations that the entry of a module runs."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.holders = self._holders()

    def all(self) -> Iterator[Call]:
        """Yield the computations that contain or call collectives, once for each caller."""
        entry = self.module.computations[self.module.entry]
        given: dict[Hashable, int] = {
            row.name: 1 << int(row.operands[0])
            for row in entry.instructions.values()
            if row.opcode == "parameter" and row.operands[0].isdigit()
        }
        root = entry.instructions.get(entry.root or "")
        count = len(root.operands) if root is not None and root.opcode == "tuple" else 1
        wanted: int | list[int] = [1 << at for at in range(count)]
        if root is None or root.opcode != "tuple":
            wanted = 1
        left = [Call(entry.name, 1, flow(self.nodes(entry), given, {}, entry.root, wanted), ())]
        while left:
            call = left.pop()
            yield call
            left += reversed(list(self._calls(call)))

    def _holders(self) -> set[str]:
        """The computations that contain a collective, or call one that does."""
        callers: dict[str, set[str]] = defaultdict(set)
        left = []
        for each in self.module.computations.values():
            for row in each.instructions.values():
                if row.opcode in _ENTERED:
                    for name in row.called:
                        callers[name].add(each.name)
                elif kind_of(row) is not None:
                    left.append(each.name)
        holders: set[str] = set()
        while left:
            name = left.pop()
            if name not in holders:
                holders.add(name)
                left += callers[name]
        return holders

    def _calls(self, call: Call) -> Iterator[Call]:
        for row in self.module.computations[call.computation].instructions.values():
            if row.opcode not in _ENTERED:
                continue
            for branch, name in enumerate(row.called):
                if name in self.holders and name in self.module.computations:
                    inner = self.module.computations[name]
                    runs = call.runs
                    if row.opcode == "while":
                        times = trips(self.module, row)
                        runs = None if runs is None or times is None else runs * times
                    callers = ((row, call.computation), *call.callers)
                    yield Call(name, runs, self._inside(inner, row, branch, call.flow), callers)

    def nodes(self, computation: Computation) -> list[Node]:
        """Return the instructions of ``computation`` as nodes of a graph."""
        return [
            Node(
                row.name,
                row.inputs,
                tuple_index(row),
                row.opcode == "tuple",
                self._depends(row) if row.opcode == "fusion" and row.shape[:1] == "(" else (),
            )
            for row in computation.instructions.values()
        ]

    def _depends(self, fusion: Instruction) -> tuple[int, ...]:
        """For each result of a fusion, the operands that it is computed from."""
        inner = self.module.computations.get(fusion.called[0]) if fusion.called else None
        root = None if inner is None else inner.instructions.get(inner.root or "")
        if inner is None or root is None or root.opcode != "tuple":
            return ()
        given: dict[Hashable, int] = {
            row.name: 1 << int(row.operands[0])
            for row in inner.instructions.values()
            if row.opcode == "parameter" and row.operands[0].isdigit()
        }
        found = flow(self.nodes(inner), given, {}, root.name, 0)
        return tuple(found.sources.get(name, 0) for name in root.operands)

    def _inside(self, inner: Computation, caller: Instruction, branch: int, around: Flow) -> Flow:
        """The data flow of a computation that ``caller`` runs."""
        rows = inner.instructions.values()
        is_loop = caller.opcode in ("while", "conditional")
        given: dict[object, int] = {}
        elements: dict[object, list[int]] = {}
        for row in rows:
            if row.opcode == "parameter":
                at = int(row.operands[0]) if row.operands[0].isdigit() else 0
                if caller.opcode == "conditional":
                    at = branch + 1
                name = caller.operands[at] if at < len(caller.operands) else None
                given[row.name] = around.sources.get(name, 0)
                if name in around.source_elements:
                    elements[row.name] = around.source_elements[name]
        targets = around.targets.get(caller.name, 0)
        parts = around.target_elements.get(caller.name, {})
        root = inner.instructions.get(inner.root or "")
        wanted: int | list[int] = targets
        if is_loop and parts and root is not None and root.opcode == "tuple":
            wanted = [parts.get(at, 0) for at in range(len(root.operands))]
        return flow(self.nodes(inner), given, elements, inner.root, wanted)


def trips(module: HloModule, loop: Instruction) -> int | None:
    """Return how often the body of ``loop`` runs each time; ``None`` if the text does not say."""
    found = _TRIPS.search(loop.rest)
    if found:
        return int(found[1])
    named = re.search(r"condition=%?([\w.\-]+)", loop.rest)
    condition = module.computations.get(named[1]) if named else None
    if condition is None:
        return None
    # A counting loop compares with a constant; the text shows it if it is a scalar.
    bounds = {
        int(row.operands[0])
        for row in condition.instructions.values()
        if row.opcode == "constant" and row.operands and row.operands[0].isdigit()
    }
    return bounds.pop() if len(bounds) == 1 else None


def tuple_index(row: Instruction) -> int | None:
    """Return the index of the tuple element that ``row`` reads; ``None`` if it reads none."""
    found = _INDEX.search(row.rest) if row.opcode == "get-tuple-element" else None
    return int(found[1]) if found else None
