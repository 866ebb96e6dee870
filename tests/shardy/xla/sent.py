"""How many bytes a device sends in a program that XLA's SPMD partitioner has just made.

Counted in the text of the module right after the partitioner's pass, before others merge or move
what it wrote; what a loop does is counted once a trip. A device sends of b bytes among n devices:
all-gather and all-to-all b(n-1)/n, all-reduce 2b(n-1)/n, reduce-scatter (n-1) times its result, and
a permute b.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.shardy.xla import compiled

BITS = {"pred": 8, "token": 0, "c64": 64, "c128": 128}
_HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_OP = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<types>.*?) (?P<kind>[a-z][\w\-]*)\((?P<rest>.*)$"
)
_USED_VALUE = re.compile(r"%([\w.\-]+)")
_TYPE = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_CALLED = re.compile(r"(?:to_apply|calls|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_LOOP = re.compile(r"condition=%?([\w.\-]+), body=%?([\w.\-]+)")
_CONSTANT = re.compile(r"= [su]\d+\[\](?:\{\})? constant\((-?\d+)\)")
_LISTED = re.compile(r"replica_groups=\{(?:\{([\d,]*)\})?")
_IOTA = re.compile(r"replica_groups=\[\d+,(\d+)\]<=")
_MESH = re.compile(
    r"replica_groups=@?[\w']*mesh\[(?P<mesh>[^\]]*)\](?:, device_ids=\(.*?\))? \{(?P<axes>[^}]*)\}"
)
_AXIS = re.compile(r"'([^']+)'=(\d+)")
_USED = re.compile(r"'([^']+)'(?::\(\d+\)(\d+))?")
_PAIR = re.compile(r"\{(\d+),(\d+)\}")


@dataclass
class Computation:
    """What a computation sends itself, by kind, and what it runs how often."""

    sent: Counter[str] = field(default_factory=Counter)
    runs: list[tuple[str, int]] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    loops: list[tuple[str, str]] = field(default_factory=list)


@cache
def sent_bytes(text: str, scatters: bool = False) -> dict[str, float]:
    """The bytes that a device sends, by kind of collective, in XLA's program for ``text``.

    With ``scatters`` an all-reduce of which a device uses its own slice alone is a reduce-scatter,
    as compilers for accelerators make of it.
    """
    with tempfile.TemporaryDirectory() as folder:
        compiled.executable(
            text,
            xla_dump_to=folder,
            xla_dump_hlo_pass_re="spmd-partitioning",
            xla_dump_emitter_re="none",
            **compiled.SIMPLE_EMITTER,
        )
        [path] = Path(folder).glob("*after_spmd-partitioning*.txt")
        hlo = path.read_text()
        return dict(count(with_scatters(hlo) if scatters else hlo, compiled.partitions(text)))


def with_scatters(hlo: str) -> str:
    """The text with the type and kind of a reduce-scatter where only one slice, a part for each
    device of a group, of the result of an all-reduce is used."""
    lines = hlo.splitlines()
    users: dict[tuple[int, str], list[re.Match[str]]] = {}
    computation = 0
    summed: list[tuple[int, int, re.Match[str]]] = []
    for place, line in enumerate(lines):
        computation += bool(_HEADER.match(line))
        if op := _OP.match(line):
            for name in _USED_VALUE.findall(op["rest"]):
                users.setdefault((computation, name), []).append(op)
            if op["kind"] == "all-reduce":
                summed.append((place, computation, op))
    for place, inside, op in summed:
        used = users.get((inside, op["name"]), [])
        if len(used) == 1 and used[0]["kind"] == "dynamic-slice":
            whole, part = (sum(map(_bytes, _TYPE.findall(each["types"]))) for each in (op, used[0]))
            if part and whole == part * _group(lines[place], 0):
                start, end = op.start("types"), op.end("kind")
                text = f"{used[0]['types']} reduce-scatter"
                lines[place] = f"{lines[place][:start]}{text}{lines[place][end:]}"
    return "\n".join(lines)


def count(hlo: str, devices: int) -> Counter[str]:
    """The bytes that a device sends, by kind, in the text of a module for so many devices."""
    computations: dict[str, Computation] = {}
    entry, current = "", Computation()
    for line in hlo.splitlines():
        if header := _HEADER.match(line):
            current = computations.setdefault(header[2], Computation())
            entry = header[2] if header[1] else entry
        elif op := _OP.match(line):
            _add(current, op, line, devices)
    for computation in computations.values():
        for condition, body in computation.loops:
            # Loops of JAX count to a constant.
            trips = max(computations[condition].constants, default=1)
            computation.runs += [(body, max(trips, 0)), (condition, trips + 1)]
    return _total(entry, computations, {})


def _add(into: Computation, op: re.Match[str], line: str, devices: int) -> None:
    kind = op["kind"]
    if constant := _CONSTANT.search(line):
        into.constants.append(int(constant[1]))
    if kind == "while" and (loop := _LOOP.search(line)):
        into.loops.append((loop[1], loop[2]))
    elif kind in ("call", "fusion", "conditional", "custom-call"):
        names = _CALLED.findall(line)
        if branches := _BRANCHES.search(line):
            names += [name.strip().lstrip("%") for name in branches[1].split(",")]
        into.runs += [(name, 1) for name in names]
    size = sum(map(_bytes, _TYPE.findall(op["types"])))
    n = _group(line, devices)
    match kind:
        case "all-gather" | "all-to-all":
            into.sent[kind] += size * (n - 1) / n
        case "all-reduce":
            into.sent[kind] += 2 * size * (n - 1) / n
        case "reduce-scatter":
            into.sent[kind] += size * (n - 1)
        case "collective-permute":
            moves = any(source != target for source, target in _PAIR.findall(line))
            into.sent[kind] += size if moves else 0


def _total(name: str, of: dict[str, Computation], known: dict[str, Counter[str]]) -> Counter[str]:
    if name not in known:
        total = Counter(of[name].sent)
        for called, times in of[name].runs:
            for kind, sent in _total(called, of, known).items():
                total[kind] += sent * times
        known[name] = total
    return known[name]


def _bytes(found: tuple[str, str]) -> float:
    element, dims = found
    bits = BITS.get(element)
    if bits is None:
        digits = re.search(r"\d+", element)
        bits = int(digits[0]) if digits else 0
    return math.prod(int(dim) for dim in dims.split(",") if dim) * max(bits, 8 * bool(bits)) / 8


def _group(line: str, devices: int) -> int:
    """How many devices talk to each other."""
    if iota := _IOTA.search(line):
        return int(iota[1])
    if mesh := _MESH.search(line):
        sizes = {name: int(size) for name, size in _AXIS.findall(mesh["mesh"])}
        used = _USED.findall(mesh["axes"])
        return math.prod(int(size) if size else sizes[name] for name, size in used)
    if (listed := _LISTED.search(line)) and listed[1]:
        return len(listed[1].split(","))
    return devices
