"""What the text of a compiled HLO module says of its kernels and collectives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{\s*$")
_OPCODE = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = .*? ([a-z][\w\-]*)\(")
_CALLED = re.compile(r"(?:body|condition|to_apply|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")

_ENTERED = {"while", "conditional", "call"}
_FREE = {
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


_COLLECTIVE = re.compile(
    r"(all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)(?:-start)?"
)
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) [a-z][\w\-]*\(([^)]*)\)")
_TRIPS = re.compile(r"known_trip_count\W+n\W+(\d+)")
_SHAPE = re.compile(r"[a-z]+(\d+)?\w*\[([\d,]*)\]")
_GROUPS = re.compile(
    r"replica_groups=(?:\[\d+,(\d+)\]|\{\{([\d,]+)\}|mesh\[([^\]]*)\].*?\{('[^}]*)\})"
)
_AXIS = re.compile(r"'(\w+)'=(\d+)")
_USED_AXIS = re.compile(r"'(\w+)'(?::\(\d+\)(\d+))?")


def _entered(hlo: str) -> Iterator[tuple[str, str, float]]:
    """The opcode and the line of each instruction of the entry and of what loops and branches run,
    and how often it runs: in loops once for each trip where their number is known, in branches as
    often as others.
    """
    bodies: dict[str, list[tuple[str, str]]] = {}
    entry, current = "", ""
    for line in re.sub(r"/\*.*?\*/", "", hlo).splitlines():
        header = _COMPUTATION.match(line)
        if header and not line.startswith(" "):
            current = header[2]
            bodies[current] = []
            entry = current if header[1] else entry
        elif found := _OPCODE.match(line):
            bodies[current].append((found[1], line))
    left = [(entry, 1.0)]
    while left:
        name, runs = left.pop()
        for opcode, line in bodies.pop(name, []):
            yield opcode, line, runs
            if opcode in _ENTERED:
                trips = _TRIPS.search(line) if opcode == "while" else None
                times = runs * int(trips[1]) if trips else runs
                left += [(called, times) for called in _CALLED.findall(line)]
                for branches in _BRANCHES.findall(line):
                    called = [branch.strip().lstrip("%") for branch in branches.split(",")]
                    left += [(branch, runs / len(called)) for branch in called]


def num_kernels(hlo: str) -> int:
    """How many instructions start something, of the entry and of what loops and branches run."""
    return sum(
        opcode not in _ENTERED and opcode not in _FREE and not opcode.endswith(("-done", "-update"))
        for opcode, _, _ in _entered(hlo)
    )


def collectives(hlo: str) -> dict[str, list[int]]:
    """For each kind of collectives how often they run, those that XLA combined as one, and their
    bytes over all runs: of operands, but of the gathered array and of what all devices of an
    all-to-all exchange.
    """
    types = {
        found[1]: found[2]
        for line in re.sub(r"/\*.*?\*/", "", hlo).splitlines()
        if (found := _INSTRUCTION.match(line))
    }
    sent: dict[str, list[float]] = {}
    for opcode, line, runs in _entered(hlo):
        kind = _COLLECTIVE.fullmatch(opcode)
        found = _INSTRUCTION.match(line)
        if kind is None or found is None:
            continue
        operands = [name.strip().split(" ")[-1].lstrip("%") for name in found[3].split(",")]
        size = sum(_num_bytes(types.get(name, "")) for name in operands)
        if kind[1] in ("all-gather", "all-to-all"):
            size *= _group_size(line)
        row = sent.setdefault(kind[1], [0, 0])
        row[0] += runs
        row[1] += runs * size
    return {kind: [round(runs), round(size)] for kind, (runs, size) in sorted(sent.items())}


def _num_bytes(shape: str) -> int:
    return sum(
        prod(int(size) for size in sizes.split(",") if size) * max(int(bits or 8), 8) // 8
        for bits, sizes in _SHAPE.findall(shape)
    )


def _group_size(line: str) -> int:
    """How many devices take part in a collective together."""
    groups = _GROUPS.search(line)
    if groups is None:
        return 1
    size, listed, axes, used = groups.groups()
    if size or listed:
        return int(size) if size else len(listed.split(","))
    sizes = {name: int(length) for name, length in _AXIS.findall(axes)}
    return prod(int(part) if part else sizes[name] for name, part in _USED_AXIS.findall(used))


def analysis(hlo: str) -> dict[str, Any]:
    """What XLA's analysis of costs counts of the module, each loop once."""
    import jax
    from jaxlib import _hlo, _jax

    client = jax.devices("cpu")[0].client
    return dict(_jax.hlo_module_cost_analysis(client, _hlo.hlo_module_from_text(hlo)))
