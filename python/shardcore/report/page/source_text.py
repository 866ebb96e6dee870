"""The user's source, if the files in locations can be read; else the program's text."""

from __future__ import annotations

import ast
import linecache
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from shardcore import files
from shardcore._core import Module
from shardcore.report.page.string_tables import Tables, split_place
from shardcore.report.repeats import runs

MAX_FILE_BYTES = 1 << 22
"""The largest source file that is read."""
MAX_COLUMNS = 240
"""Longer lines are cut, because a constant may have megabytes."""
MAX_FOLDED = 200_000
"""Later lines are not searched for repeated layers."""
MAX_LISTED = 3000
"""How many lines of a program's text are listed."""
_AROUND = 2
"""How many lines are shown before and after a line outside of functions."""

_FUNCTION = re.compile(r"\s*func\.func\s+(?:private |public |nested )?@([\w.$-]+)")
_RESULT = re.compile(r"\s*(%[\w.$-]+)(?::\d+)? =")
_LOCATION = re.compile(r"\s*loc\((?:[^()\"]|\"[^\"]*\")*\)$")


def sources(module: Module, tables: Tables) -> list[dict[str, Any]]:
    """Return the files of the locations in ``tables``, each as blocks of lines.

    Python files are read, from the working directory or that of the program, and notebook cells.
    The functions that contain a location are shown, and a few lines around other locations. A file
    that cannot be read has one block with the line ``numbers`` only. Lines in installed packages
    are left out if other code calls them.
    installed packages are left out where they are called from others.
    """
    used: dict[str, set[int]] = {}
    for file, line, _ in map(split_place, tables.places()):
        if line:
            used.setdefault(file, set()).add(line)
    found = []
    for file, lines in used.items():
        text = _read(file, module.filename)
        numbers = sorted(lines)
        blocks = [] if text is None else _blocks(text, numbers)
        if not blocks:
            empty = [""] * len(numbers)
            blocks = [{"name": "", "first": numbers[0], "lines": empty, "numbers": numbers}]
        found.append({"name": file, "is_read": text is not None, "blocks": blocks})
    return found


def _read(file: str, program: str) -> list[str] | None:
    """The lines of ``file``; ``None`` if it is no source, or cannot be read."""
    cell = linecache.cache.get(file)
    if cell is not None and len(cell) == 4 and not os.path.exists(file):
        return [line.rstrip("\n") for line in cell[2]]
    # Only Python is shown, because a program may name any file.
    if not file.endswith(".py"):
        return None
    beside = os.path.join(os.path.dirname(program), file)
    for path in dict.fromkeys([file, beside]):
        try:
            if os.path.isfile(path):
                text = files.read(path, MAX_FILE_BYTES).decode("utf-8", "replace")
                return text.splitlines()
        except (OSError, ValueError):
            continue
    return None


def _blocks(lines: Sequence[str], used: Sequence[int]) -> list[dict[str, Any]]:
    spans = dict(_functions("\n".join(lines)))
    chosen: dict[tuple[int, int], str] = {}
    for line in used:
        if line > len(lines):
            continue
        around = max(1, line - _AROUND), min(len(lines), line + _AROUND)
        inside = [span for span in spans if span[0] <= line <= span[1]]
        # The outermost function, because it shows what its inner functions use.
        span = min(inside) if inside else around
        chosen[span] = spans.get(span, "")
    blocks: list[dict[str, Any]] = []
    end = 0
    for (first, last), name in sorted(chosen.items()):
        first = max(first, end + 1)
        if first > last:
            continue
        shown = [line[:MAX_COLUMNS] for line in lines[first - 1 : last]]
        blocks.append({"name": name, "first": first, "lines": shown})
        end = last
    return blocks


def _functions(text: str) -> Iterable[tuple[tuple[int, int], str]]:
    """First and last line of each outermost function and of each method, with its name."""
    try:
        tree = ast.parse(text)
    # Some versions of Python raise SystemError if another thread parses too.
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return
    inside: list[tuple[ast.AST, str]] = [(tree, "")]
    while inside:
        node, name = inside.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                yield (first, child.end_lineno or child.lineno), name + child.name
            elif isinstance(child, ast.ClassDef):
                inside.append((child, f"{name}{child.name}."))
            elif not isinstance(child, ast.expr):
                inside.append((child, name))


def _without_location(line: str) -> str:
    # Searching the end of a line for its start is much faster than the reverse.
    at = line.rfind("loc(")
    found = _LOCATION.match(line, at) if at >= 0 else None
    return _LOCATION.sub("", line) if found is None else line[:at].rstrip()


def listing(
    module: Module, entry: str | None, row_of: dict[tuple[str, str], int]
) -> dict[str, Any]:
    """Return the text of ``module`` with the row of each line's value, and repeated layers
    folded."""
    *first, rest = f"{module}\n".split("\n", MAX_FOLDED)
    lines = [line for line in first if line and not line.startswith("#loc")]
    num_lines = len(lines) + rest.count("\n")
    lines = list(map(_without_location, lines))
    function = entry or ""
    rows: list[int] = []
    for line in lines:
        header = _FUNCTION.match(line)
        function = header[1] if header else function
        result = _RESULT.match(line)
        name = "" if result is None else result[1]
        row = row_of.get((function, name), row_of.get((function, f"{name}#0"), -1))
        rows.append(row)
    shown = []
    left = MAX_LISTED
    for run in runs(lines):
        stop = min(run.stop, run.start + left)
        left -= stop - run.start
        shown.append(
            {
                "first": run.start + 1,
                "lines": [line[:MAX_COLUMNS] for line in lines[run.start : stop]],
                "rows": rows[run.start : stop],
                "times": run.times,
            }
        )
        if left <= 0:
            break
    return {"runs": shown, "num_lines": num_lines}
