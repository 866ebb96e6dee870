"""Random shardings for a shape: sub-axes, priorities, open dims, replicated and unreduced axes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from random import Random

from tests.shardy.generator.meshes import Mesh

Part = tuple[int, int]
"""Pre-size and size of a piece of an axis."""


@dataclasses.dataclass(frozen=True)
class Style:
    """What the shardings of one module look like."""

    sub_axes: float = 0.2
    open_dims: float = 0.4
    priorities: float = 0.0
    replicated: float = 0.1
    unreduced: float = 0.0
    other_reductions: float = 0.0
    uneven: float = 0.2
    density: float = 0.45


def sharding(
    rng: Random, mesh: Mesh, shape: Sequence[int], style: Style, taken: Collection[str] = ()
) -> str:
    """A sharding without its angle brackets; axes in `taken` are manual."""
    if mesh.is_maximal:
        return f"{mesh.reference}, []"
    free = [
        piece
        for axis, size in mesh.axes
        if axis not in taken
        for piece in pieces_of(rng, axis, size, style)
    ]
    rng.shuffle(free)
    left = free
    dims = []
    for size in shape:
        axes, left = _axes_of_dim(rng, size, left, style)
        dims.append(dim(rng, axes, style))
    text = f"{mesh.reference}, [{', '.join(dims)}]"
    order = {axis: at for at, (axis, _) in enumerate(mesh.axes)}
    for key, chance in (("replicated", style.replicated), ("unreduced", style.unreduced)):
        if left and rng.random() < chance:
            count = rng.randint(1, len(left))
            chosen, left = left[:count], left[count:]
            listed = sorted_axes(chosen, order)
            reduction = ""
            if key == "unreduced" and style.other_reductions > 0:
                is_other = rng.random() < style.other_reductions
                reduction = rng.choice(["max", "min"]) if is_other else ""
            text += f", {key}={reduction}{{{', '.join(listed)}}}"
    return text


def fully_open(mesh: Mesh, shape: Sequence[int]) -> str:
    return f"{mesh.reference}, [{', '.join(['{?}'] * len(shape))}]"


Piece = tuple[str, Part | None, int]


def pieces_of(rng: Random, axis: str, size: int, style: Style) -> list[Piece]:
    """The whole axis, or pieces that make it up, of which some may be left out."""
    if size in (1, 2, 3, 5, 7) or rng.random() > style.sub_axes:
        return [(axis, None, size)]
    pieces: list[Piece] = []
    before = 1
    while before < size:
        rest = size // before
        factors = [f for f in range(2, rest + 1) if rest % f == 0 and f < size]
        taken = rng.choice(factors)
        pieces.append((axis, (before, taken), size))
        before *= taken
    return rng.sample(pieces, rng.randint(1, len(pieces)))


def extent(piece: Piece) -> int:
    return piece[1][1] if piece[1] else piece[2]


def _axes_of_dim(
    rng: Random, size: int, free: list[Piece], style: Style
) -> tuple[list[Piece], list[Piece]]:
    axes: list[Piece] = []
    left = []
    shards = 1
    for piece in free:
        divides = size % (shards * extent(piece)) == 0
        wanted = style.density if divides else style.density * style.uneven
        if rng.random() < wanted:
            axes.append(piece)
            shards *= extent(piece)
        else:
            left.append(piece)
    return axes, left


def _merge(pieces: list[Piece]) -> list[Piece]:
    """Pieces that follow each other in an axis are written as one."""
    merged: list[Piece] = []
    for axis, part, size in pieces:
        last = merged[-1] if merged else None
        if part and last and last[1] and last[0] == axis and math.prod(last[1]) == part[0]:
            whole = (last[1][0], last[1][1] * part[1])
            merged[-1] = (axis, None if whole == (1, size) else whole, size)
        else:
            merged.append((axis, part, size))
    return merged


def sorted_axes(pieces: list[Piece], order: dict[str, int]) -> list[str]:
    """The pieces as lists of axes have them that are no dims; `order` is that of the mesh."""
    ordered = sorted(pieces, key=lambda piece: (order[piece[0]], piece[1] or (0, 0)))
    return [*map(_axis, _merge(ordered))]


def _axis(piece: Piece) -> str:
    axis, part, _ = piece
    return f'"{axis}":({part[0]}){part[1]}' if part else f'"{axis}"'


def dim(rng: Random, axes: list[Piece], style: Style) -> str:
    is_open = rng.random() < style.open_dims
    parts = [*map(_axis, _merge(axes)), *["?"] * is_open]
    has_priority = parts and rng.random() < style.priorities
    priority = f"p{rng.choice([0, 1, 1, 2, 3, 7])}" if has_priority else ""
    return f"{{{', '.join(parts)}}}{priority}"
