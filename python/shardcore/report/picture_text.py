"""A picture of a sharding as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore.report.picture import Panel, Picture


def text(picture: Picture) -> str:
    """Return ``picture`` as lines of text."""
    lines = list(picture.caption)
    for panel in picture.panels:
        lines += ["", *_panel(picture, panel)]
    if picture.left_out:
        lines += ["", picture.left_out]
    return "\n".join(line.rstrip() for line in lines)


def _panel(picture: Picture, panel: Panel) -> list[str]:
    corner = "" if picture.row_dim is None else f"dim {picture.row_dim}"
    gutter = max(map(len, (corner, *picture.rows)))
    margin = " " * (gutter + 1) if gutter else ""
    width = max(len(cell) for row in (picture.columns, *panel.cells) for cell in row) + 2
    lines = [panel.title] if panel.title else []
    if picture.column_dim is not None:
        lines.append(f"{margin} dim {picture.column_dim}")
    if corner or any(picture.columns):
        lines.append(f"{corner:{len(margin)}} {' '.join(x.center(width) for x in picture.columns)}")
    for number, (row, cells) in enumerate(zip(picture.rows, panel.cells, strict=True)):
        lines.append(margin + _rule("├┼┤" if number else "┌┬┐", width, len(cells)))
        blocks = "│".join(cell.center(width) for cell in cells)
        lines.append(f"{row:>{gutter}}{margin[:1]}│{blocks}│")
    lines.append(margin + _rule("└┴┘", width, len(panel.cells[0])))
    return lines


def _rule(corners: str, width: int, count: int) -> str:
    return corners[0] + corners[1].join(["─" * width] * count) + corners[2]
