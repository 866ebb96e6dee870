"""Collectives along a part of a mesh axis: the axes of an array cut where the parts are.

``A[I_X]`` on ``X=4``, gathered along ``X:(2)2``, the inner half of ``X``, is ``A[I_{X:(1)2}]``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from shardcore._core import Mesh
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray, axis_ref, axis_size, axis_text
from shardcore.errors import CalculusError
from shardcore.gspmd.convert import merged


def is_part(axis: str) -> bool:
    """Whether ``axis`` is a sub-axis."""
    return ":(" in axis


def split(array: NamedArray, wanted: Sequence[str], mesh: Mesh | None) -> NamedArray:
    """Return ``array`` with axes that share devices with ``wanted`` cut where those start and end.

    Raises:
        CalculusError: without a mesh parts of axes mean nothing (``invalid-collective``).
    """
    parts = [axis for axis in wanted if is_part(axis)]
    if not parts and not any(map(is_part, array.axes)):
        return array
    if mesh is None:
        raise mistake(
            CalculusError,
            "invalid-collective",
            f"what {', '.join(parts) or str(array)} is depends on the mesh",
            hint="give the mesh",
            text=", ".join(parts) or str(array),
        )
    cuts = [_pieces(dim.axes, wanted, mesh) for dim in array.dims]
    return array.with_axes(cuts, _pieces(array.unreduced, wanted, mesh))


def joined(array: NamedArray, mesh: Mesh | None) -> NamedArray:
    """Return ``array`` with sub-axes that follow each other as one."""
    if mesh is None or not any(map(is_part, (*array.axes, *array.unreduced))):
        return array
    cuts = [_joined(dim.axes, mesh) for dim in array.dims]
    return array.with_axes(cuts, _joined(array.unreduced, mesh))


def shares(axes: Iterable[str], others: Iterable[str]) -> bool:
    """Whether any of ``axes`` shares devices with any of ``others``."""
    pairs = itertools.product(map(axis_ref, axes), map(axis_ref, others))
    return any(one.overlaps(other) for one, other in pairs)


def _joined(axes: Sequence[str], mesh: Mesh) -> list[str]:
    return [axis_text(ref) for ref in merged([axis_ref(axis) for axis in axes], mesh)]


def _bounds(axis: str, mesh: Mesh) -> tuple[int, int]:
    """Where a part starts and ends: devices of the axis outside of it, and with it."""
    before = axis_ref(axis).pre_size or 1
    return before, before * axis_size(mesh, axis)


def _pieces(axes: Sequence[str], wanted: Sequence[str], mesh: Mesh) -> list[str]:
    found = []
    for axis in axes:
        start, end = _bounds(axis, mesh)
        cuts = {start, end}
        for other in wanted:
            if axis_ref(other).name == axis_ref(axis).name:
                cuts |= {cut for cut in _bounds(other, mesh) if start < cut < end}
        ordered = sorted(cuts)
        if len(ordered) == 2 or any(high % low for low, high in itertools.pairwise(ordered)):
            found.append(axis)
            continue
        name = axis_ref(axis).name
        found += [f"{name}:({low}){high // low}" for low, high in itertools.pairwise(ordered)]
    return found
