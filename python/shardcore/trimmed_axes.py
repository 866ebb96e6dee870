"""Warnings about annotated axes of arguments and results that the export removed.

On arguments and results of the entry function Shardy's export keeps only axes that divide their
dims evenly, and in open dims only whole axes, because XLA accepts no others there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardcore.errors import Diagnostic

if TYPE_CHECKING:
    from shardcore._core import DimSharding, Mesh, Port, Result

_KEEP = "keep_non_divisible_on_io=True (--keep-non-divisible-on-io) keeps it as it is written"
_HINTS = {
    "non-divisible": f"pad the dim or shard another; {_KEEP}",
    "sub-axis": f"close the dim, or split the axis of the mesh in two; {_KEEP}",
}


def warnings(result: Result) -> tuple[Diagnostic, ...]:
    """Return a warning for each dim of an argument or result that lost annotated axes.

    The code is ``non-divisible`` if the dim's size is no multiple of the product of its axes, and
    ``sub-axis`` if an open dim had sub-axes.
    """
    arguments, results = result._annotated()
    before, after = [*arguments, *results], [*result.arguments(), *result.results()]
    return tuple(
        warning for old, new in zip(before, after, strict=True) for warning in _lost(old, new)
    )


def _lost(old: Port, new: Port) -> Iterator[Diagnostic]:
    """The warnings about one argument or result, annotated as ``old`` and exported as ``new``."""
    mesh = None if old.sharding is None else old.sharding.mesh
    if old.sharding is None or new.sharding is None or mesh is None or mesh.is_maximal:
        return
    dims = zip(old.sharding.dims, new.sharding.dims, old.shape or (), strict=False)
    for number, (wanted, left, size) in enumerate(dims):
        # Axes of size 1 shard nothing: import removes them.
        axes = [axis for axis in wanted.axes if axis.size_in(mesh) > 1]
        if size is not None and list(left.axes[: len(axes)]) != axes:
            yield _warning(old, number, wanted, left, size, mesh)


def _warning(
    port: Port, number: int, wanted: DimSharding, left: DimSharding, size: int, mesh: Mesh
) -> Diagnostic:
    shards = 1
    for axis in wanted.axes:
        shards *= axis.size_in(mesh)
    kept = ", ".join(map(str, left.axes))
    name = port.name if port.label is None else f"{port.name} ({port.label})"
    if size % shards:
        code, why = "non-divisible", f"its size {size} is no multiple of {shards}"
    else:
        code, why = "sub-axis", "it is open, and has a part of an axis"
    message = (
        f"dim {number} of {name} is annotated with {wanted}, but {why}: "
        f"it keeps {kept or 'none of it'}"
    )
    value = port.label or port.name
    return Diagnostic(code, message, _HINTS[code], severity="warning", value=value)
