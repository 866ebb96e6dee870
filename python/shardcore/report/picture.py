"""A sharding as a picture: a grid of the blocks of a tensor, each with the devices that hold it.

The last two sharded dims are the rows and columns of a grid; each block of the other sharded dims
has its own grid. For a large picture only the first blocks are drawn, with a note.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from shardcore._core import TensorSharding
from shardcore.errors import Diagnostic, ProgramTooLargeError, VerificationError
from shardcore.report.placement import Placement, device_text, num_blocks
from shardcore.units import plural

MAX_ROWS, MAX_COLUMNS, MAX_PANELS = 16, 16, 4
"""How many rows, columns and grids are drawn at most."""

MAX_LISTED = 1 << 16
"""How many devices are enumerated at most, if sub-axes do not divide each other."""


@dataclass(frozen=True)
class Panel:
    """One grid."""

    title: str
    """The blocks of the dims that are not in the grid; empty if there are no such dims."""
    cells: tuple[tuple[str, ...], ...]
    """The devices of each block, row by row."""
    numbers: tuple[tuple[int, ...], ...]
    """The index of each block among all blocks, row by row."""


@dataclass(frozen=True)
class Picture:
    """A drawing: ``str()`` is text for terminals; notebooks display SVG."""

    caption: tuple[str, ...]
    """The sharding, the mesh, and the blocks of each dim."""
    row_dim: int | None
    """The dim along the rows."""
    column_dim: int | None
    """The dim along the columns."""
    rows: tuple[str, ...]
    """The element range of each row of blocks."""
    columns: tuple[str, ...]
    """The element range of each column of blocks."""
    panels: tuple[Panel, ...]
    num_blocks: int
    """The number of different blocks, drawn or not."""
    left_out: str
    """A note on what is not drawn; empty if everything is."""

    def __str__(self) -> str:
        from shardcore.report.picture_text import text

        return text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from shardcore.report.picture_svg import html

        return html(self)


def picture(sharding: TensorSharding | None, shape: Sequence[int | None] | None = None) -> Picture:
    """Draw ``sharding`` of a tensor with shape ``shape`` (if known).

    Raises:
        VerificationError: there is no sharding, its mesh is unknown (``unknown-mesh``), or the
            shape has another rank (``invalid-sharding``).
        ProgramTooLargeError: the devices have to be enumerated, and there are too many.
    """
    if sharding is None or sharding.mesh is None:
        raise VerificationError(
            Diagnostic(
                "unknown-mesh",
                "there is no sharding to draw"
                if sharding is None
                else f"the mesh @{sharding.mesh_name} of this sharding is not known",
                "propagate first" if sharding is None else "sharding.with_mesh(mesh) gives it one",
            )
        )
    sizes = None if shape is None or None in shape else [size for size in shape if size is not None]
    if sizes is not None:
        sharding.local_shape(sizes)
    placement = Placement(sharding, sharding.mesh)
    if placement.copies is None and sharding.mesh.num_devices > MAX_LISTED:
        raise ProgramTooLargeError(
            Diagnostic(
                "program-too-large",
                f"{sharding} has sub-axes that do not divide each other, on too many devices",
                f"it can be drawn for {MAX_LISTED} devices at most",
            )
        )
    cut = [dim for dim, count in enumerate(placement.counts) if count > 1]
    row_dim, column_dim, outer = _axes_of_picture(cut, sharding.rank)
    rows = _shown(placement, row_dim, MAX_ROWS)
    columns = _shown(placement, column_dim, MAX_COLUMNS)
    panels = [
        _panel(placement, dict(zip(outer, numbers, strict=True)), row_dim, column_dim, sizes)
        for numbers in itertools.islice(
            itertools.product(*(range(placement.counts[dim]) for dim in outer)), MAX_PANELS
        )
    ]
    total = num_blocks(placement)
    drawn = len(rows) * len(columns) * len(panels)
    return Picture(
        caption=tuple(_caption(sharding, placement, sizes)),
        row_dim=row_dim,
        column_dim=column_dim,
        rows=tuple(_elements(placement, row_dim, number, sizes) for number in rows),
        columns=tuple(_elements(placement, column_dim, number, sizes) for number in columns),
        panels=tuple(panels),
        num_blocks=total,
        left_out=f"{drawn} of {total} blocks are drawn" if drawn < total else "",
    )


def _axes_of_picture(cut: Sequence[int], rank: int) -> tuple[int | None, int | None, list[int]]:
    """The dims of rows and columns, and the other sharded dims."""
    if len(cut) > 1:
        return cut[-2], cut[-1], list(cut[:-2])
    if not cut:
        return None, None, []
    return (None, cut[0], []) if cut[0] == rank - 1 else (cut[0], None, [])


def _shown(placement: Placement, dim: int | None, limit: int) -> range:
    return range(1 if dim is None else min(placement.counts[dim], limit))


def _panel(
    placement: Placement,
    fixed: dict[int, int],
    row_dim: int | None,
    column_dim: int | None,
    sizes: Sequence[int] | None,
) -> Panel:
    cells: list[tuple[str, ...]] = []
    numbers: list[tuple[int, ...]] = []
    for row in _shown(placement, row_dim, MAX_ROWS):
        blocks = []
        for column in _shown(placement, column_dim, MAX_COLUMNS):
            at = fixed | {
                dim: place
                for dim, place in ((row_dim, row), (column_dim, column))
                if dim is not None
            }
            blocks.append([at.get(dim, 0) for dim in range(len(placement.counts))])
        cells.append(tuple(device_text(placement, block) for block in blocks))
        numbers.append(tuple(_number(placement, block) for block in blocks))
    title = ", ".join(
        f"dim {dim} {_elements(placement, dim, number, sizes)}" for dim, number in fixed.items()
    )
    return Panel(title, tuple(cells), tuple(numbers))


def _number(placement: Placement, block: Sequence[int]) -> int:
    number = 0
    for place, count in zip(block, placement.counts, strict=True):
        number = number * count + place
    return number


def _elements(
    placement: Placement, dim: int | None, number: int, sizes: Sequence[int] | None
) -> str:
    """The element range of a block along ``dim``, or its number if the size is unknown."""
    if dim is None:
        return ""
    if sizes is None:
        return f"{number}"
    step = -(-sizes[dim] // placement.counts[dim])
    start, stop = number * step, min((number + 1) * step, sizes[dim])
    return f"{start}:{stop}" if start < stop else "padding"


def _caption(
    sharding: TensorSharding, placement: Placement, sizes: Sequence[int] | None
) -> list[str]:
    mesh = ", ".join(f"{axis.name}={axis.size}" for axis in placement.mesh.axes)
    over = f"the mesh {mesh}" if mesh else "one device"
    whole = "" if sizes is None else f"{'x'.join(map(str, sizes)) or 'a scalar'}, "
    lines = [str(sharding), f"{whole}{_blocks(num_blocks(placement))} over {over}"]
    for dim, count in enumerate(placement.counts):
        if count > 1:
            axes = " and ".join(map(str, sharding.dims[dim].axes))
            lines.append(f"dim {dim} over {axes}: {_blocks(count)}{_of(sizes, dim, count)}")
    if placement.copies is not None and placement.copies > 1:
        lines.append(
            "every device holds it whole"
            if num_blocks(placement) == 1
            else f"every block is on {placement.copies} devices"
        )
    if sharding.unreduced:
        partial = {"sum": "sums", "max": "maxima", "min": "minima"}[sharding.reduction_op]
        lines.append(f"partial {partial} over {', '.join(map(str, sharding.unreduced))}")
    return lines


def _blocks(count: int) -> str:
    return plural(count, "block")


def _of(sizes: Sequence[int] | None, dim: int, count: int) -> str:
    if sizes is None:
        return ""
    step = -(-sizes[dim] // count)
    padding = step * count - sizes[dim]
    return f" of {step}" + (f", the last ones padded by {padding}" if padding else "")
