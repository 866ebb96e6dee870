"""Splits the axes of an array for collectives along a sub-axis.

``A[I_X]`` on ``X=4``, gathered along ``X:(2)2``, the minor half of ``X``, is ``A[I_{X:(1)2}]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.axes import axis_text
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray
from shardcore.errors import CalculusError


def split(array: NamedArray, wanted: Sequence[AxisRef], mesh: Mesh | None) -> NamedArray:
    """Return ``array`` with its axes split at the boundaries of the sub-axes in ``wanted``.

    Raises:
        CalculusError: sub-axes are involved, but there is no mesh (``invalid-collective``).
    """
    parts = [axis for axis in wanted if not axis.is_full]
    if not parts and all(axis.is_full for axis in array.axes):
        return array
    if mesh is None:
        text = ", ".join(map(axis_text, parts))
        raise mistake(
            CalculusError,
            "invalid-collective",
            f"what {text or array} is depends on the mesh",
            hint="give the mesh",
            text=text or str(array),
        )
    dims = [list(_pieces(dim.axes, wanted, mesh)) for dim in array.dims]
    return array.with_axes(dims, list(_pieces(array.unreduced, wanted, mesh)))


def joined(array: NamedArray, mesh: Mesh | None) -> NamedArray:
    """Return ``array`` with consecutive sub-axes of an axis merged."""
    if mesh is None or all(axis.is_full for axis in (*array.axes, *array.unreduced)):
        return array
    dims = [mesh.merge_axes(dim.axes) for dim in array.dims]
    return array.with_axes(dims, mesh.merge_axes(array.unreduced))


def shares(axes: Iterable[AxisRef], others: Sequence[AxisRef]) -> bool:
    """Whether any of ``axes`` overlaps any of ``others``."""
    return any(axis.overlaps(other) for axis in axes for other in others)


def _pieces(axes: Iterable[AxisRef], wanted: Sequence[AxisRef], mesh: Mesh) -> Iterator[AxisRef]:
    for axis in axes:
        pieces = [axis]
        for other in wanted:
            pieces = [part for piece in pieces for part in _split_at(piece, other, mesh)]
        yield from pieces


def _split_at(axis: AxisRef, other: AxisRef, mesh: Mesh) -> list[AxisRef]:
    """The parts of ``axis`` before ``other``, in common with it, and after it."""
    shared = axis.overlap(other)
    if shared is None:
        return [axis]
    before = axis.prefix_without_overlap(other)
    after = axis.suffix_without_overlap(other, mesh)
    return [part for part in (before, shared, after) if part is not None]
