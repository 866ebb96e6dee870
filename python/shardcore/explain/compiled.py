"""The records of what a compiled module has: collectives, and the parts that each is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from shardcore.explain.device_groups import Groups
from shardcore.explain.hlo_text import Instruction

__all__ = ["KINDS", "Compiled", "Origin", "Part", "expanded", "kind_of"]

KINDS = {
    "all-gather": "all_gather",
    "all-reduce": "all_reduce",
    "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
    "ragged-all-to-all": "ragged_all_to_all",
    "collective-permute": "collective_permute",
    "collective-broadcast": "collective_broadcast",
}
"""The kind of a collective by its opcode."""

_WIDTH = re.compile(r"[a-z]+?(\d+)")


@dataclass(frozen=True)
class Origin:
    """What metadata says of where a collective comes from."""

    op_name: str
    location: str | None
    source: str
    """``own``, the metadata of the collective itself; ``listed``, that of one whose names of ops
    are those of all its parts; ``beside``, that of instructions beside it."""

    @property
    def is_own(self) -> bool:
        """Whether it is the metadata of the collective itself, and of no other part."""
        return self.source == "own"


@dataclass(frozen=True)
class Part:
    """One array that a collective sends, or gathers."""

    operand: str
    """The name of the instruction that made it."""
    dims: tuple[int, ...]
    """The sizes of the operand on a device."""
    dtype: str
    elements: int
    """The number of elements of the array on a device, of a gather once it is gathered."""
    origins: tuple[Origin, ...]
    """What metadata says, the most trustworthy first."""
    root: str = ""
    """The name of what made the array that is sent, before copies and conversions."""
    sources: int = 0
    """The arguments of the program that it is computed from, a bit for each."""
    targets: int = 0
    """The results of the program that are computed from the collective, likewise."""

    @property
    def bytes(self) -> int:
        """Bytes of :attr:`elements`."""
        found = _WIDTH.match(self.dtype)
        bits = int(found[1]) if found else 8
        bits *= 2 if self.dtype.startswith("c") else 1
        return self.elements * bits // 8


@dataclass
class Compiled:
    """A collective of a compiled module."""

    name: str
    """The name of its instruction, ``%all-gather.3``."""
    kind: str
    computation: str
    line: int
    """The line in the text of the module."""
    groups: Groups
    runs: int | None
    """The number of its runs in one run of the program; ``None`` where that of a loop is not
    known."""
    is_async: bool
    is_concatenated: bool
    parts: list[Part] = field(default_factory=list)
    names: tuple[str, ...] = ()
    """The instructions that it is made of, as profiles call them: starts, dones and fusions."""


def expanded(op_name: str) -> tuple[str, ...]:
    """Return the names that XLA joined to ``op_name``: ``a/b/c`` and ``a/d`` of ``a/(b/c:d)``, or
    of ``a/b/c;a/d``."""
    if ";" in op_name:
        return tuple(name for part in op_name.split(";") for name in expanded(part))
    start = 0 if op_name.startswith("(") else op_name.find("/(") + 1
    if not op_name or (start == 0 and not op_name.startswith("(")):
        return (op_name,)
    parts, depth, last, end = [], 0, start + 1, len(op_name)
    for at in range(start, len(op_name)):
        char = op_name[at]
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if not depth:
                end = at
                break
        elif char == ":" and depth == 1:
            parts.append(op_name[last:at])
            last = at + 1
    parts.append(op_name[last:end])
    if len(parts) == 1:
        return (op_name,)
    return tuple(
        name for part in parts for name in expanded(op_name[:start] + part + op_name[end + 1 :])
    )


def kind_of(row: Instruction) -> str | None:
    """Return the kind of collective that ``row`` runs or starts; ``None`` if it is none."""
    return KINDS.get(row.opcode.removesuffix("-start"))
