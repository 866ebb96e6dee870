"""How many kernels a compiled HLO module has, and what its collectives send.

An instruction counts as often as it runs: in a loop once for each trip where their number is known,
in a branch as if all branches ran equally often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shardcore.explain.calls import trips
from shardcore.explain.compiled import kind_of
from shardcore.explain.device_groups import groups_of
from shardcore.explain.hlo_text import (
    Computation,
    HloModule,
    Instruction,
    element_count,
    num_bytes,
)

__all__ = ["Sent", "num_kernels", "sent_by_kind"]

_ENTERED = frozenset({"while", "conditional", "call"})
_FREE = frozenset(
    {
        "parameter",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "constant",
        "after-all",
        "partition-id",
        "replica-id",
        "opt-barrier",
    }
)
_MEMORY_COPIES = frozenset({"copy-start", "slice-start"})
"""Copies between the memories of a chip, which no kernel makes."""
_NO_KERNELS = re.compile(r'custom_call_target="(ConcatBitcast|AllocateBuffer)"')
"""Calls that only name what such copies write."""
_CHAIN = re.compile(r'chain_id="\d+"')
_GATHERED = frozenset({"all_gather", "all_to_all"})
"""The kinds whose operands are parts of what :attr:`Sent.bytes` counts."""


@dataclass(frozen=True)
class Sent:
    """The collectives of one kind."""

    runs: float = 0.0
    """How often they run; those that a compiler combined run as one."""
    bytes: float = 0.0
    """The bytes of the gathered arrays, as :attr:`shardcore.costs.CollectiveCost.bytes` has them,
    over all runs."""

    def plus(self, other: Sent) -> Sent:
        """Return the sum."""
        return Sent(self.runs + other.runs, self.bytes + other.bytes)


def num_kernels(module: HloModule) -> int:
    """Return how many instructions start something, those in loops and branches once; copies
    between the memories of a chip are none.
    """
    return sum(
        row.opcode not in _ENTERED
        and row.opcode not in _FREE
        and row.opcode not in _MEMORY_COPIES
        and not row.opcode.endswith(("-done", "-update"))
        and not _NO_KERNELS.search(row.rest)
        for computation, _ in _entered(module)
        for row in computation.instructions.values()
    )


def sent_by_kind(module: HloModule) -> dict[str, Sent]:
    """Return what collectives send, by the kinds of :attr:`shardcore.costs.CollectiveCost.kind`."""
    found: dict[str, Sent] = {}
    for kind, computation, row, runs in _collectives(module):
        rows = (computation.instructions.get(name) for name in row.inputs)
        arrays = [array for operand in rows if operand is not None for array in operand.arrays]
        size = sum(num_bytes(dtype, element_count(dims)) for dtype, dims in arrays)
        if kind in _GATHERED:
            groups = groups_of(row.rest, module.num_devices)
            size *= max(map(len, groups), default=1)
        found[kind] = found.get(kind, Sent()).plus(Sent(runs, runs * size))
    return dict(sorted(found.items()))


def _collectives(module: HloModule) -> Iterator[tuple[str, Computation, Instruction, float]]:
    """Each collective: its kind, where it is, and how often it runs.

    On TPUs a fusion runs collectives too, and a chain of fusions takes an asynchronous one along,
    which is counted once.
    """
    chains: set[str] = set()
    for computation, runs in _entered(module):
        for row in computation.instructions.values():
            kind = kind_of(row)
            if kind is not None:
                yield kind, computation, row, runs
            if row.opcode != "fusion":
                continue
            for name in row.called:
                fused = module.computations[name]
                for inner in fused.instructions.values():
                    kind, chain = kind_of(inner), _CHAIN.search(inner.rest)
                    if kind is None or (chain and chain[0] in chains):
                        continue
                    chains |= {chain[0]} if chain else set()
                    if kind == "all_reduce" and "all-reduce-scatter" in name + row.name + row.rest:
                        # A sum of which each device takes a slice.
                        kind = "reduce_scatter"
                    yield kind, fused, inner, runs


def _entered(module: HloModule) -> Iterator[tuple[Computation, float]]:
    """The entry, and what its loops, branches and calls run, with how often they run."""
    left = [(module.entry, 1.0)]
    while left:
        name, runs = left.pop()
        computation = module.computations[name]
        yield computation, runs
        for row in computation.instructions.values():
            if row.opcode not in _ENTERED:
                continue
            called = [each for each in row.called if each in module.computations]
            if row.opcode == "while":
                times = runs * (trips(module, row) or 1)
            else:
                times = runs / len(called) if row.opcode == "conditional" else runs
            left += [(each, times) for each in called]
