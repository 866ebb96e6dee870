"""The collectives of a compiled module, part by part.

XLA combines several collectives into one: as operands of one instruction, or concatenated into one
array. Each of them is a part here. Collectives are searched in all computations that the entry
runs: bodies of loops and conditionals, fusions, asynchronous computations. If a compiler spreads
the steps of one collective over several fusions, they count as one.
"""

from __future__ import annotations

import re
from dataclasses import replace

from shardcore.explain import concatenated
from shardcore.explain.calls import Call, Calls, tuple_index
from shardcore.explain.compiled import Compiled, Part, kind_of
from shardcore.explain.device_groups import groups_of, joined, pairs_of
from shardcore.explain.hlo_text import Computation, HloModule, Instruction, element_count
from shardcore.explain.neighbours import Neighbours
from shardcore.explain.reach import Flow

__all__ = ["collectives"]

_CHANNEL = re.compile(r"[ ,]channel_id=(\d+)")
_CHAIN = re.compile(r'chain_id="(\d+)"')


def collectives(module: HloModule) -> list[Compiled]:
    """Return the collectives of ``module``, in the order of its text."""
    search = _Search(module)
    for call in search.calls.all():
        search.add(call)
    return sorted(search.found.values(), key=lambda row: row.line)


class _Search:
    """The state of the search for collectives in a module."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.calls = Calls(module)
        self.near = Neighbours(module)
        self.found: dict[tuple[object, ...], Compiled] = {}

    def add(self, call: Call) -> None:
        """Add the collectives of a computation that runs."""
        computation = self.module.computations[call.computation]
        for row in computation.instructions.values():
            kind = kind_of(row)
            if kind is None:
                continue
            chain, channel = _CHAIN.search(row.rest), _CHANNEL.search(row.rest)
            key: tuple[object, ...] = (computation.name, row.name)
            if chain and channel and call.callers:
                key = ("chain", chain[1], channel[1], row.opcode)
            known = self.found.get(key)
            fusion = next((one for one, _ in call.callers if one.opcode == "fusion"), None)
            if known is None:
                self.found[key] = self._compiled(computation, row, kind, call, fusion)
            elif key[0] == "chain":
                known.names = (*known.names, row.name, *([fusion.name] if fusion else ()))
            else:
                known.runs = _sum(known.runs, call.runs)

    def _compiled(
        self,
        computation: Computation,
        row: Instruction,
        kind: str,
        call: Call,
        fusion: Instruction | None,
    ) -> Compiled:
        if kind == "collective_permute":
            groups = joined(pairs_of(row.rest))
        else:
            groups = groups_of(row.rest, self.module.num_devices)
        if fusion is not None and kind == "all_reduce" and "reduce-scatter" in fusion.rest[:200]:
            # Compilers for TPUs write a reduce-scatter as an all-reduce and a fusion that slices
            # it.
            kind = "reduce_scatter"
        pieces, is_concatenated = self._pieces(computation, row, kind)
        users = self.near.users(computation)
        ends = [one for one in users.get(row.name, ()) if one.opcode.endswith("-done")]
        starts = [one for one, _ in call.callers if one.opcode == "async-start"]
        names = (row.name, *(one.name for one in (*ends, *starts)))
        made = Compiled(
            name=f"%{row.name}",
            kind=kind,
            computation=computation.name,
            line=row.line,
            groups=groups,
            runs=call.runs,
            is_async=row.opcode.endswith("-start") or bool(starts),
            is_concatenated=is_concatenated,
            names=(*names, *([fusion.name] if fusion else ())),
        )
        size = max(map(len, groups), default=1)
        results = self._results(computation, row, ends, len(pieces))
        for piece, result in zip(pieces, results, strict=True):
            elements = sum(element_count(dims) for one in piece for dims in one.dims[:1])
            source = piece[0]
            before = list(self.near.before(source, call))
            origins = self.near.origins(computation, row, before, result, len(pieces), call)
            made.parts.append(
                Part(
                    operand=f"%{source.name}",
                    dims=source.dims[0] if source.dims else (),
                    dtype=re.match(r"\(*(\w*)", source.shape)[1],  # type: ignore[index]
                    elements=elements * (size if kind == "all_gather" else 1),
                    origins=tuple(dict.fromkeys(origins)),
                    root=self.near.root(before, call),
                    sources=call.flow.of(source.name)[0],
                    targets=_targets(call.flow, row.name, ends, result),
                )
            )
        if is_concatenated:
            sizes = [part.elements for part in made.parts]
            result = ends[0] if ends else row
            found = concatenated.targets(self.calls, self.near, call, result, sizes)
            made.parts = [
                replace(part, targets=bits or part.targets)
                for part, bits in zip(made.parts, found, strict=True)
            ]
        return made

    def _pieces(
        self, computation: Computation, row: Instruction, kind: str
    ) -> tuple[list[list[Instruction]], bool]:
        """The operands of each part, and whether they were concatenated into one array."""
        rows = computation.instructions
        operands = [rows[name] for name in row.operands if name in rows]
        if kind == "all_to_all" and "dimensions=" not in row.rest:
            # Each operand goes to one device.
            return [operands], False
        if kind == "ragged_all_to_all":
            return [operands[:1]], False
        if len(operands) != 1:
            return [[one] for one in operands] or [[row]], False
        # Compilers concatenate flattened operands of sums; a user's program may concatenate for a
        # gather.
        if kind == "all_reduce" and [*map(len, operands[0].dims)] == [1]:
            joined_rows = concatenated.pieces(self.module, computation, operands[0])
            if joined_rows:
                return [[one] for one in joined_rows], True
        return [operands], False

    def _results(
        self, computation: Computation, row: Instruction, ends: list[Instruction], count: int
    ) -> list[Instruction | None]:
        """For each part the instruction that is its result, if there is one."""
        users = self.near.users(computation)
        whole = ends[0] if ends else row
        if count == 1:
            return [whole]
        found: list[Instruction | None] = [None] * count
        for user in users.get(whole.name, ()):
            index = tuple_index(user)
            if index is not None and index < count:
                found[index] = user
        return found


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _targets(known: Flow, name: str, ends: list[Instruction], result: Instruction | None) -> int:
    at = result.name if result is not None else ends[0].name if ends else name
    return known.of(at)[1]
