"""Records of a compiled module's collectives, and of the parts of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from shardcore.explain.device_groups import Groups
from shardcore.explain.hlo_text import Instruction, num_bytes

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
"""The kind of collective, by HLO opcode."""


@dataclass(frozen=True)
class Origin:
    """One piece of metadata about the origin of a collective."""

    op_name: str
    location: str | None
    source: str
    """Which metadata it is: ``own``: that of the collective itself; ``listed``: the collective's,
    if it lists the op names of all its parts; ``shared``: the collective's, if it is that of one of
    its parts, it is unknown of which; ``beside``: that of a neighbouring instruction."""

    @property
    def is_own(self) -> bool:
        """Whether it is the metadata of the collective itself, and about this part only."""
        return self.source == "own"


@dataclass(frozen=True)
class Part:
    """One array that a collective sends or gathers."""

    operand: str
    """The name of the instruction that computes it."""
    dims: tuple[int, ...]
    """The dims of the operand on one device."""
    dtype: str
    elements: int
    """The number of elements on one device; for a gather after gathering."""
    origins: tuple[Origin, ...]
    """The metadata, most trustworthy first."""
    root: str = ""
    """The name of the instruction that computes the array, before copies and conversions."""
    sources: int = 0
    """The program arguments that it is computed from, as a bit set."""
    targets: int = 0
    """The program results that are computed from it, as a bit set."""

    @property
    def bytes(self) -> int:
        """The bytes of :attr:`elements`."""
        return num_bytes(self.dtype, self.elements)


@dataclass
class Compiled:
    """A collective of a compiled module."""

    name: str
    """The name of its instruction, ``%all-gather.3``."""
    kind: str
    computation: str
    line: int
    """The line in the module's text."""
    groups: Groups
    runs: int | None
    """The number of executions in one run of the program; ``None`` if a loop's trip count is
    unknown."""
    is_async: bool
    is_concatenated: bool
    parts: list[Part] = field(default_factory=list)
    names: tuple[str, ...] = ()
    """The names under which profiles list it: starts, dones and fusions."""


def by_part(origins: Sequence[Origin]) -> list[Origin]:
    """Return ``origins`` with what is about this part of a combined collective before what is about
    all of its parts."""
    # If XLA lists the ops of several parts, neighbouring instructions tell which op is the part's.
    listed = {one.op_name for one in origins if one.source == "listed"}

    def rank(one: Origin) -> int:
        is_near = one.source == "beside" and one.op_name in listed
        return 0 if is_near else 2 if one.source == "shared" else 1

    return sorted(origins, key=rank)


def expanded(op_name: str) -> tuple[str, ...]:
    """Return the names that XLA merged into ``op_name``: ``a/b/c`` and ``a/d`` for ``a/(b/c:d)`` or
    ``a/b/c;a/d``."""
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
    """Return the kind of collective that ``row`` runs or starts; ``None`` for other
    instructions."""
    return KINDS.get(row.opcode.removesuffix("-start"))
