"""A picture of a sharding as SVG, with a colour for each block."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore.report.picture import Panel, Picture

_CHARACTER = 7.2
"""The width of a character, in pixels."""
_ROW, _LINE, _BASELINE = 26, 16, 12
"""The heights of a row of blocks and of a line of text, and the offset of its baseline."""
_GAP, _PAD = 12, 8
"""The gap between grids, and the padding of text."""
_FONT = 'font-family="ui-monospace, monospace" font-size="12"'


def html(picture: Picture) -> str:
    """Return ``picture`` as an HTML element."""
    caption = "<br>".join(escape(line) for line in picture.caption)
    left_out = f"<div><i>{escape(picture.left_out)}</i></div>" if picture.left_out else ""
    return (
        '<div style="font-family: ui-monospace, monospace; font-size: 12px">'
        f"<div>{caption}</div>{svg(picture)}{left_out}</div>"
    )


def svg(picture: Picture) -> str:
    """Return the grids of ``picture`` as an SVG element."""
    corner = "" if picture.row_dim is None else f"dim {picture.row_dim}"
    cells = [cell for panel in picture.panels for row in panel.cells for cell in row]
    width = max(map(len, (*cells, *picture.columns, "dim 0"))) * _CHARACTER + 2 * _PAD
    gutter = max(map(len, (corner, *picture.rows))) * _CHARACTER + _PAD
    drawing = _Drawing(picture, corner, gutter, width)
    for panel in picture.panels:
        drawing.add(panel)
    # A title may be wider than the grid below it.
    widest = max(len(panel.title) for panel in picture.panels) * _CHARACTER
    across = max(gutter + width * len(picture.columns), widest) + _PAD
    down = drawing.top
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across:.0f}" height="{down:.0f}" '
        f'viewBox="0 0 {across:.0f} {down:.0f}" fill="currentColor" {_FONT}>'
        f"{''.join(drawing.parts)}</svg>"
    )


class _Drawing:
    """Grids below each other; ``top`` is the height so far, in pixels."""

    def __init__(self, picture: Picture, corner: str, gutter: float, width: float) -> None:
        self.parts: list[str] = []
        self.top = 0.0
        self._picture, self._corner, self._gutter, self._width = picture, corner, gutter, width

    def add(self, panel: Panel) -> None:
        """Draw ``panel`` below the others."""
        picture = self._picture
        self.top += _GAP / 2
        if panel.title:
            self._line(panel.title, 0, "start")
        if picture.column_dim is not None:
            self._line(f"dim {picture.column_dim}", self._gutter, "start")
        if self._corner or any(picture.columns):
            self._text(self._corner, self._gutter - _PAD / 2, "end")
            for column, label in enumerate(picture.columns):
                self._text(label, self._gutter + (column + 0.5) * self._width, "middle")
            self.top += _LINE
        for row, cells, numbers in zip(picture.rows, panel.cells, panel.numbers, strict=True):
            self._row(row, cells, numbers)
        self.top += _GAP / 2

    def _row(self, label: str, cells: Sequence[str], numbers: Sequence[int]) -> None:
        for column, number in enumerate(numbers):
            left = self._gutter + column * self._width
            self.parts.append(
                f'<rect x="{left:.1f}" y="{self.top:.1f}" width="{self._width:.1f}" '
                f'height="{_ROW}" fill="{_colour(number)}" stroke="#555"/>'
            )
        self.top += (_ROW - _LINE) / 2
        self._text(label, self._gutter - _PAD / 2, "end")
        for column, cell in enumerate(cells):
            self._text(cell, self._gutter + (column + 0.5) * self._width, "middle", "#111")
        self.top += (_ROW + _LINE) / 2

    def _line(self, text: str, x: float, anchor: str) -> None:
        self._text(text, x, anchor)
        self.top += _LINE

    def _text(self, text: str, x: float, anchor: str, colour: str = "") -> None:
        """Write ``text`` into the line whose upper edge is ``top``."""
        if text:
            fill = f' fill="{colour}"' if colour else ""
            place = f'x="{x:.1f}" y="{self.top + _BASELINE:.1f}" text-anchor="{anchor}"'
            self.parts.append(f"<text {place}{fill}>{escape(text)}</text>")


def _colour(number: int) -> str:
    """A light colour for a block; hues are a golden angle apart, so neighbours differ."""
    return f"hsl({number * 137.508 % 360:.0f}, 70%, {80 - number % 3 * 6}%)"
