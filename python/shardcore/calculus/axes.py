"""Mesh axes as the notation writes them: ``X``, and ``X:(1)2`` for a sub-axis of ``X``.

Arrays and collectives hold :class:`~shardcore.AxisRef` objects; functions that take axes also
accept these texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TypeAlias

from shardcore._core import AxisRef, Mesh
from shardcore.bounded import items
from shardcore.calculus.mistakes import choices, mistake
from shardcore.errors import VerificationError
from shardcore.expected import expect

Axis: TypeAlias = AxisRef | str
"""An axis, or its text."""

_SUB_AXIS = re.compile(r"(?P<name>.*):\((?P<pre_size>\d{1,18})\)(?P<size>\d{1,18})", re.DOTALL)


def axis_ref(axis: Axis) -> AxisRef:
    """Return the axis or sub-axis that ``X`` or ``X:(1)2`` denotes.

    Raises:
        VerificationError: a sub-axis has a pre-size below 1 or a size below 2
            (``invalid-sub-axis``).
    """
    if isinstance(axis, AxisRef):
        return axis
    expect(axis, str)
    part = _SUB_AXIS.fullmatch(axis)
    if not part:
        return AxisRef(axis)
    return AxisRef(part["name"], pre_size=int(part["pre_size"]), size=int(part["size"]))


def axis_refs(axes: Axis | Iterable[Axis]) -> tuple[AxisRef, ...]:
    """Return the axes in ``axes``, one or several; see :func:`axis_ref`."""
    if isinstance(axes, (AxisRef, str)):
        return (axis_ref(axes),)
    return tuple(map(axis_ref, items(axes, "axes")))


def axis_text(axis: AxisRef) -> str:
    """Return the text that :func:`axis_ref` reads."""
    return axis.name if axis.is_full else f"{axis.name}:({axis.pre_size}){axis.size}"


def axes_text(axes: Iterable[AxisRef]) -> str:
    """Return several axes as in a subscript: ``XY``, or ``data,model`` for longer names."""
    texts = list(map(axis_text, axes))
    return ("" if all(len(text) == 1 for text in texts) else ",").join(texts)


def axis_size(mesh: Mesh, axis: Axis) -> int:
    """Return the number of devices of ``mesh`` along ``axis``.

    Raises:
        VerificationError: the mesh lacks the axis (``unknown-axis``).
    """
    expect(mesh, Mesh)
    ref = axis_ref(axis)
    if ref.name not in mesh:
        raise mistake(
            VerificationError,
            "unknown-axis",
            f'the mesh has no axis "{ref.name}"',
            hint=choices(ref.name, mesh.axis_names),
            text=axis_text(ref),
            filename="<axis>",
        )
    return ref.size_in(mesh)


def group_size(mesh: Mesh, axes: Iterable[Axis]) -> int:
    """Return the size of a group of devices along ``axes``, which do not overlap.

    Raises:
        VerificationError: the mesh lacks an axis (``unknown-axis``).
    """
    return math.prod(axis_size(mesh, axis) for axis in axes)
