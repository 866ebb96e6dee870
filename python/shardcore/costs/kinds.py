"""What is in the memory of a device over time, by kind and by layer."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore._core import Port
    from shardcore.costs.memory import Lifetime, MemoryTimeline

KINDS = (
    "parameters",
    "optimizer state",
    "other arguments",
    "outputs",
    "activations",
    "temporaries",
)
"""Parameters and optimizer states are arguments with such names, or states that have the path and
type of a parameter, ``state['m']['w']`` beside ``state['params']['w']``; activations are values of
the forward pass that live until the backward pass, if the program's locations tell the passes;
temporaries are all others."""

_STATE = re.compile(
    r"(?<![a-z])(opt(im(izer)?)?|adam\w*|momentum|moments?|mu|nu|exp_avg(_sq)?|ema)(?![a-z])"
)
_PARAMETER = re.compile(r"(?<![a-z])(params?|parameters|weights?|kernel|bias)(?![a-z])")
_LAYER = re.compile(r"(?:\[(\d+)\]|(?<=[a-zA-Z_])(\d+)\b)")


def argument_kinds(ports: Iterable[Port]) -> dict[str, str]:
    """Return the kind of each of ``ports``, the arguments of a program, by name."""
    paths = {port.name: (port.label or port.name, port.type) for port in ports}
    kinds = {name: _by_words(path) for name, (path, _) in paths.items()}
    inside = {
        (path[found.end() :].lstrip("'\"]"), kind)
        for name, (path, kind) in paths.items()
        if kinds[name] == "parameters" and (found := _PARAMETER.search(path.lower()))
    }
    for name, (path, kind) in paths.items():
        if kinds[name] == "other arguments":
            ends = (path[at:] for at in range(1, len(path)) if path[at] in "[.")
            if any((end, kind) in inside for end in ends):
                kinds[name] = "optimizer state"
    return kinds


def _by_words(path: str) -> str:
    """The kind of the argument at ``path``, judged by the names in it."""
    words = path.lower()
    if _STATE.search(words):
        return "optimizer state"
    return "parameters" if _PARAMETER.search(words) else "other arguments"


def layer_of(path: str) -> int | None:
    """Return the first number in a path or scope, ``params['blocks'][3]`` or ``layer_3/mlp``; none
    of a name in the program, ``%3``."""
    found = None if path.startswith("%") else _LAYER.search(path)
    return None if found is None else int(found[1] or found[2])


@dataclass(frozen=True)
class Held:
    """A value in memory."""

    lifetime: Lifetime
    kind: str
    path: str
    """The path of an argument, else the scope of the op that computes it; may be empty."""


@dataclass(frozen=True)
class MemoryByKind:
    """What is in memory over the course of the program, and at its peak."""

    places: list[int]
    """Indices into ``MemoryTimeline.points``, each the fullest point of its section."""
    sizes: dict[str, list[int]]
    """For each kind the bytes at each of these points."""
    held: list[Held]
    """All values."""
    at_peak: list[Held]


def memory_by_kind(timeline: MemoryTimeline, ports: Iterable[Port], most: int) -> MemoryByKind:
    """Return what is in memory at up to ``most`` points of ``timeline``, by kind.

    Args:
        timeline: the program's timeline.
        ports: the program's arguments.
        most: the number of points, at most.
    """
    ports = list(ports)
    paths = {port.name: port.label or port.name for port in ports}
    kinds = argument_kinds(ports)
    points = timeline.points
    held = [_held(row, paths, kinds, points[row.last].direction) for row in timeline.values]
    places = [max(part, key=lambda at: points[at].bytes) for part in sections(len(points), most)]
    of_kind = {kind: [each for each in held if each.kind == kind] for kind in KINDS}
    found = {kind: sizes(rows, len(points), places) for kind, rows in of_kind.items() if rows}
    peak = timeline.peak
    there = [each for each in held if each.lifetime.first <= peak <= each.lifetime.last]
    return MemoryByKind(places, found, held, there)


def sizes(held: Iterable[Held], length: int, places: Iterable[int]) -> list[int]:
    """Return the bytes of ``held`` at each of ``places`` in a timeline of ``length`` points."""
    changes = [0] * (length + 1)
    for each in held:
        row = each.lifetime
        changes[row.first] += row.value.bytes
        changes[row.last + 1] -= row.value.bytes
    whole = list(accumulate(changes))
    return [whole[at] for at in places]


def _held(row: Lifetime, paths: Mapping[str, str], kinds: Mapping[str, str], until: str) -> Held:
    """The kind of a value whose last use is in the pass ``until``."""
    name = row.value.name
    if row.role == "argument":
        return Held(row, kinds.get(name, "other arguments"), paths.get(name, name))
    if row.role == "output":
        return Held(row, "outputs", row.scope)
    is_kept = row.direction == "forward" and until == "backward"
    return Held(row, "activations" if is_kept else "temporaries", row.scope)


def sections(length: int, most: int) -> list[range]:
    """Return up to ``most`` ranges of equal length, none of them empty, that together are
    ``range(length)``.
    """
    parts = min(most, length)
    return [range(at * length // parts, (at + 1) * length // parts) for at in range(parts)]


def column_of(places: Sequence[int], place: int) -> int:
    """Return the number of the section that ``place`` is in."""
    return min(bisect_left(places, place), max(len(places) - 1, 0))
