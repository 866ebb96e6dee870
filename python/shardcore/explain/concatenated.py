"""Collectives of several operands that a compiler concatenated, and splits again afterwards."""

from __future__ import annotations

import re
from collections.abc import Hashable
from itertools import accumulate

from shardcore.explain.calls import Call, Calls
from shardcore.explain.hlo_text import Computation, HloModule, Instruction
from shardcore.explain.neighbours import PASSED_ON, Neighbours
from shardcore.explain.reach import flow

__all__ = ["pieces", "targets"]

_SLICE = re.compile(r"[ ,]slice=\{\[(\d+):(\d+)\]\}")


def pieces(module: HloModule, computation: Computation, row: Instruction) -> list[Instruction]:
    """Return the concatenated pieces of ``row``; empty if it is no concatenation."""
    rows = computation.instructions
    row = _behind(computation, row)
    if row.opcode == "concatenate":
        return [rows[name] for name in row.operands if name in rows]
    inner = module.computations.get(row.called[0]) if row.called else None
    if row.opcode != "fusion" or inner is None or inner.root not in inner.instructions:
        return []
    at = _behind(inner, inner.instructions[inner.root or ""])
    if at.opcode != "concatenate":
        return []
    found = []
    for name in at.operands:
        one = _behind(inner, inner.instructions[name])
        outer = row.operands[int(one.operands[0])] if one.opcode == "parameter" else ""
        # Values that the fusion computes itself have metadata of their own.
        found.append(rows.get(outer, inner.instructions[name]))
    return found


def targets(
    calls: Calls, near: Neighbours, call: Call, result: Instruction, sizes: list[int]
) -> list[int]:
    """Return, for each piece of ``result``, the program results that it leads to, as a bit set.

    ``sizes`` are the numbers of elements of the pieces.
    """
    starts = dict(zip(accumulate([0, *sizes]), range(len(sizes)), strict=False))
    computation = calls.module.computations[call.computation]
    found = [0] * len(sizes)
    left = [result]
    while left:
        row = left.pop()
        for user in near.users(computation).get(row.name, ()):
            if user.opcode in PASSED_ON:
                left.append(user)
            elif user.opcode == "slice":
                place = _piece(user, starts)
                if place is not None:
                    found[place] |= call.flow.of(user.name)[1]
            elif user.opcode == "fusion" and user.called:
                inner = calls.module.computations.get(user.called[0])
                if inner is not None:
                    for place, bits in _fused(calls, call, inner, user, starts):
                        found[place] |= bits
    return found


def _fused(
    calls: Calls, call: Call, inner: Computation, user: Instruction, starts: dict[int, int]
) -> list[tuple[int, int]]:
    """The pieces that the fusion ``user`` slices out, with the result that each goes to."""
    given: dict[Hashable, int] = {}
    for one in inner.instructions.values():
        place = _piece(one, starts) if one.opcode == "slice" else None
        if place is not None:
            given[one.name] = 1 << place
    root = inner.instructions.get(inner.root or "")
    if not given or root is None:
        return []
    known = flow(calls.nodes(inner), given, {}, root.name, 0)
    of_elements = call.flow.target_elements.get(user.name, {})
    whole = call.flow.of(user.name)[1]
    rows = [(known.sources.get(root.name, 0), whole)]
    if root.opcode == "tuple" and of_elements:
        rows = [
            (known.sources.get(name, 0), of_elements.get(at, 0))
            for at, name in enumerate(root.operands)
        ]
    places = starts.values()
    return [(place, bits) for cut, bits in rows for place in places if cut >> place & 1]


def _piece(row: Instruction, starts: dict[int, int]) -> int | None:
    found = _SLICE.search(row.rest)
    return starts.get(int(found[1])) if found else None


def _behind(computation: Computation, row: Instruction) -> Instruction:
    """The operand that ``row`` passes on unchanged."""
    rows = computation.instructions
    while row.opcode in PASSED_ON and row.operands and row.operands[0] in rows:
        row = rows[row.operands[0]]
    return row
