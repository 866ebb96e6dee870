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
_CONDITION = re.compile(r"condition=%?([\w.\-]+)")
_LIMIT = re.compile(r"s32\[\]\S* constant\((\d+)\)")
_BELOW = re.compile(r" compare\(.*direction=LT")
_FUSED = re.compile(r"calls=%?([\w.\-]+)")
_CHAIN = re.compile(r'chain_id="\d+"')
_SHAPE = re.compile(r"[a-z]+(\d+)?\w*\[([\d,]*)\]")
_GROUPS = re.compile(
    r"replica_groups=(?:\[\d+,(\d+)\]|\{\{([\d,]+)\}|mesh\[([^\]]*)\].*?\{('[^}]*)\})"
)
_AXIS = re.compile(r"'(\w+)'=(\d+)")
_USED_AXIS = re.compile(r"'(\w+)'(?::\(\d+\)(\d+))?")


def _entered(hlo: str) -> Iterator[tuple[str, str, float]]:
    """The opcode and the line of each instruction of the entry and of what loops and branches run,
    and how often it runs: in loops once for each trip where their number is known, in branches as
    often as others. Collectives that run in fusions come before these: on TPUs a chain of fusions
    takes an asynchronous one along, which is counted once.
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
    chains: set[str] = set()
    while left:
        name, runs = left.pop()
        for opcode, line in bodies.get(name, []):
            for inner, part in bodies.get(_callee(line), []) if opcode == "fusion" else []:
                chain = _CHAIN.search(part)
                if _COLLECTIVE.fullmatch(inner) and not (chain and chain[0] in chains):
                    chains |= {chain[0]} if chain else set()
                    # A sum of which each device takes a slice.
                    is_scattered = inner == "all-reduce" and "all-reduce-scatter" in line
                    yield "reduce-scatter" if is_scattered else inner, part, runs
            yield opcode, line, runs
            if opcode in _ENTERED:
                times = runs * _trips(line, bodies) if opcode == "while" else runs
                left += [(called, times) for called in _CALLED.findall(line)]
                for branches in _BRANCHES.findall(line):
                    called = [branch.strip().lstrip("%") for branch in branches.split(",")]
                    left += [(branch, runs / len(called)) for branch in called]


def _callee(line: str) -> str:
    found = _FUSED.search(line)
    return found[1] if found else ""


def _trips(line: str, bodies: dict[str, list[tuple[str, str]]]) -> int:
    """The trips of a loop that says them, or counts up from zero to a constant; 1 for others."""
    if known := _TRIPS.search(line):
        return int(known[1])
    condition = _CONDITION.search(line)
    lines = [part for _, part in bodies.get(condition[1], [])] if condition else []
    limits = [limit[1] for part in lines if (limit := _LIMIT.search(part))]
    is_counted = len(limits) == 1 and any(_BELOW.search(part) for part in lines)
    return int(limits[0]) if is_counted else 1


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
