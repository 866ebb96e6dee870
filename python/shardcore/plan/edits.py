"""Edits of a text at positions of its syntax tree; positions stay those of the text."""

from __future__ import annotations

import ast
from collections.abc import Sequence

Position = tuple[int, int]
"""A line, counted from 1, and a column in bytes, counted from 0."""


class Edits:
    """Replacements of parts of ``text``, none of which overlaps another one."""

    def __init__(self, text: str) -> None:
        # Lines of bytes end where Python's do, which those of texts do not.
        self._lines = text.encode().splitlines(keepends=True)
        self._edits: list[tuple[Position, bool, Position, Position, str]] = []

    def replace(self, start: Position, end: Position, new: str) -> None:
        """Replace what is between ``start`` and ``end``."""
        self._add(start, (0, len(self._edits)), end, new)

    def wrap(self, start: Position, end: Position, before: str, after: str) -> None:
        """Put ``before`` and ``after`` around an expression, whatever is put around others that it
        holds or is in."""
        self._add(start, (-end[0], -end[1]), start, before)
        self._add(end, (-start[0], -start[1]), end, after)

    def _add(self, start: Position, rank: Position, end: Position, new: str) -> None:
        """Add an edit; of insertions at one place the one with the lowest rank comes first, and all
        come before what is replaced there."""
        self._edits.append((start, end > start, rank, end, new))

    def replace_node(self, node: ast.expr, new: str) -> None:
        """Replace the expression ``node``."""
        self.replace(start_of(node), end_of(node), new)

    def insert(self, at: Position, new: str) -> None:
        """Insert ``new`` at a position, after what is inserted there already."""
        self.replace(at, at, new)

    def wrap_arguments(self, call: ast.Call, before: str, after: str) -> None:
        """Put ``before`` and ``after`` around the arguments of a ``call``, which form a tuple."""
        line, column = end_of(call.func)
        opening = self.between((line, column), start_of(call.args[0])).index("(")
        last, end = end_of(call)
        has_comma = "," in self.between(end_of(call.args[-1]), (last, end))
        comma = "," if len(call.args) == 1 and not has_comma else ""
        self.wrap((line, column + opening + 1), (last, end - 1), before, f"{comma}{after}")

    def append_arguments(self, call: ast.Call, new: Sequence[str]) -> None:
        """Give more arguments, in code, to a ``call`` that has positional ones only."""
        start, end = end_of(call.args[-1]), end_of(call)
        rest = self.between(start, end).removesuffix(")").rstrip().removesuffix(",")
        # What is behind a comment needs a line of its own.
        has_comment = "#" in rest.rpartition("\n")[2]
        between = f"\n{' ' * call.args[-1].col_offset}" if has_comment else ", "
        self.replace(start, end, f"{rest}{between}{', '.join(new)})")

    def insert_line(self, after: int, new: str) -> None:
        """Insert the lines ``new`` after a line; 0 is the beginning of the text."""
        self.insert((after + 1, 0), f"{new}\n")

    def remove_lines(self, first: int, last: int) -> None:
        """Remove the lines from ``first`` to ``last``."""
        self.replace((first, 0), (last + 1, 0), "")

    def are_lines(self, node: ast.stmt) -> bool:
        """Whether the lines of a statement have nothing else, but for a comment."""
        (first, start), (last, end) = start_of(node), end_of(node)
        behind = self._lines[last - 1][end:].strip()
        return not self._lines[first - 1][:start].strip() and behind[:1] in (b"", b"#")

    def between(self, start: Position, end: Position) -> str:
        """Return the text between ``start`` and ``end``, as it was given."""
        (first, column), (last, stop) = start, end
        lines = self._lines[first - 1 : last]
        lines[-1] = lines[-1][:stop]
        lines[0] = lines[0][column:]
        return b"".join(lines).decode()

    def text(self) -> str:
        """Return the text with all edits."""
        whole = b"".join(self._lines)
        if whole and not whole.endswith((b"\n", b"\r")):
            whole += b"\n"
        starts = [0]
        for line in self._lines:
            starts.append(starts[-1] + len(line))
        starts[-1] = len(whole)

        def place(at: Position) -> int:
            return starts[min(at[0] - 1, len(starts) - 1)] + at[1]

        for start, _, _, end, new in sorted(self._edits, reverse=True):
            whole = whole[: place(start)] + new.encode() + whole[place(end) :]
        return whole.decode()


def start_of(node: ast.expr | ast.stmt | ast.keyword) -> Position:
    """Return where an expression begins."""
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt | ast.keyword) -> Position:
    """Return where an expression ends."""
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
