"""What limits a collective where the links of a torus are not equally fast.

The devices of a group receive its bytes over their links along all axes. Where one axis has slower
links than others, less may already be too much: the devices that have the same place along it,
together, receive what only those elsewhere have over its links alone. With N_S places along some
axes S and links of W_S bytes per second of a device along them, a gather of V bytes takes at least
``V * (N_S - 1) / N_S / (N / N_S * W_S)``, for each choice of S.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from shardcore.calculus.physical_axes import PhysicalAxis


@dataclass(frozen=True)
class Cut:
    """What some axes of a group have to carry in a gather."""

    seconds_per_byte: float
    formula: str
    """The time as text, with ``{V}`` for the bytes."""
    links: float
    """The bandwidth of its fastest link, as :attr:`PhysicalAxis.links`."""


def slowest_cut(parts: Sequence[PhysicalAxis], one_way: float, both: bool, partly: bool) -> Cut:
    """Return the axes among ``parts`` that a gather along all of them takes longest on.

    Args:
        one_way: bytes per second of a link in one direction.
        both: whether rings use both directions.
        partly: whether to count that a device already has its own block.
    """
    found = _cut(parts, parts, one_way, both, partly)
    if len({part.links for part in parts}) > 1:
        for count in range(1, len(parts)):
            for some in combinations(parts, count):
                found = max(
                    found,
                    _cut(some, parts, one_way, both, True),
                    key=lambda cut: cut.seconds_per_byte,
                )
    return found


def _cut(
    some: Sequence[PhysicalAxis],
    parts: Sequence[PhysicalAxis],
    one_way: float,
    both: bool,
    partly: bool,
) -> Cut:
    places = math.prod(part.size for part in some)
    together = math.prod(part.size for part in parts) // places
    width = one_way * sum(
        (2 if part.wraps_around and both else 1) * part.links / part.stride for part in some
    )
    share = ((places - 1) / places if partly else 1.0) / (together * width)
    fraction = f" * {places - 1}/{places}" if partly else ""
    rate = f"{width:.4g} B/s" if together == 1 else f"({together} * {width:.4g} B/s)"
    formula = f"{{V}} B{fraction} / {rate}"
    return Cut(share, formula, max((part.links for part in some), default=1.0))


def shift_width(parts: Sequence[PhysicalAxis], one_way: float) -> float:
    """Return the bytes per second at which all devices of a group send a block to the next.

    Of the devices that have the same place along an axis, only one sends along its links; axes with
    slower links are taken to be the outer ones.
    """
    together, slowest = 1, math.inf
    for part in sorted(parts, key=lambda part: -part.links):
        slowest = min(slowest, part.links * together)
        together *= part.size
    return one_way * min(slowest, max((part.links for part in parts), default=1.0))
