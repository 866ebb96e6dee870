"""Updates a file of expectations to the actual values of a result.

Only shardings and limits that fail are replaced. ``forbid`` and ``divisible`` do not change: the
user has to remove them. Comments, order, other values and the notation of a value are kept. If the
arguments that match a pattern no longer have one sharding, the pattern is replaced by one row for
each sharding: with a pattern that matches exactly those arguments, else with their names. A file
without expectations gets everything that can be stated, with patterns for repeated layers and
similar trees.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from shardcore._core import Port
from shardcore.expect.compare import Comparison
from shardcore.expect.mistakes import dotted
from shardcore.expect.report import Failure
from shardcore.expect.sharding_text import device_alone, dims_text
from shardcore.expect.toml_places import Path, Places
from shardcore.expect.trees import joined
from shardcore.labels import folded
from shardcore.units import format_bytes, parse_bytes

_MIN_REPLICATED = 1 << 20
"""New files allow values up to a megabyte to be replicated, whatever the program has."""


_MANY = 12
"""If a new file would have more rows than this, those of similar trees are merged."""


def updated(
    comparison: Comparison, failures: Sequence[Failure], places: Places
) -> tuple[str, list[str]]:
    """Return the text of ``places`` with actual values for ``failures``, and the updated keys."""
    edits: list[tuple[int, int, str, str]] = []
    for failure in failures:
        span = places.values.get(failure.path)
        if span is None:
            continue
        literal = _literal(comparison, failure.path, places, span)
        if literal is not None:
            edits.append((*span, literal, dotted(failure.path)))
        elif failure.path[0] == "shardings" and (rows := _split(comparison, failure.path, places)):
            edits.append((*rows, dotted(failure.path)))
    text = places.text
    for start, end, literal, _ in sorted(edits, reverse=True):
        text = text[:start] + literal + text[end:]
    return text, [key for *_, key in edits]


def _literal(
    comparison: Comparison, path: Path, places: Places, span: tuple[int, int]
) -> str | None:
    """The new text of the value at ``path``; ``None`` if no value makes the expectation hold."""
    section, key = path[0], str(path[-1])
    if section == "shardings":
        return _sharding_literal(comparison, key)
    if section == "shapes":
        found = comparison.subjects.find(key)
        shapes = set() if isinstance(found, str) else {subject.shape for subject in found}
        shape = shapes.pop() if len(shapes) == 1 else None
        return None if shape is None or None in shape else json.dumps(shape)
    if path[:2] == ("collectives", "max_count"):
        totals = comparison.cost.by_axis().get(key)
        return None if totals is None else str(totals.count)
    if path[:2] == ("collectives", "max_bytes"):
        totals = comparison.cost.by_axis().get(key)
        count = None if totals is None else totals.wire_bytes
    elif section == "memory":
        cost = comparison.cost
        count = cost.peak_bytes if key == "peak" else cost.argument_bytes
    elif path == ("replicated", "max_bytes"):
        largest = comparison.replicated_values(0)
        count = max((value.bytes or 0 for value in largest), default=0)
    else:
        return None
    if count is None:
        return None
    is_text = places.text[span[0]] in "\"'"
    return json.dumps(bytes_text(count)) if is_text else str(count)


def _sharding_literal(comparison: Comparison, name: str) -> str | None:
    found = comparison.subjects.find(name)
    if isinstance(found, str):
        return None
    if any(device_alone(subject.sharding) is not None for subject in found):
        return None
    expected = comparison.expected.shardings[name]
    texts = {expected.rewritten(subject.sharding, len(subject.shape or ())) for subject in found}
    return toml_text(texts.pop()) if len(texts) == 1 else None


def _split(comparison: Comparison, path: Path, places: Places) -> tuple[int, int, str] | None:
    """The span of a pattern's row, and a row for each sharding that its arguments and results have;
    ``None`` if it has no row of its own, or if one of the shardings cannot be written.
    """
    name = str(path[-1])
    found = comparison.subjects.find(name)
    if isinstance(found, str):
        return None
    ports = [each for each in found if isinstance(each, Port) and each.label]
    if len(ports) < len(found) or any(device_alone(port.sharding) is not None for port in ports):
        return None
    start, end = places.keys[path][0], places.values[path][1]
    line = places.text.rfind("\n", 0, start) + 1
    before = places.text[line:start]
    if "{" in before or "," in before:
        return None
    expected = comparison.expected.shardings
    texts = [
        (port, expected[name].rewritten(port.sharding, len(port.shape or ()))) for port in ports
    ]
    rows = _joined(comparison, [(port.label or "", text) for port, text in texts], {*expected})
    lines = [f"{_quoted(key)} = {toml_text(text)}" for key, text in rows if key not in expected]
    newline = "\r\n" if "\r\n" in places.text else "\n"
    return start, end, f"{newline}{before}".join(lines)


def bytes_text(count: int) -> str:
    """``count`` with a unit, rounded up."""
    text = format_bytes(count)
    if (parse_bytes(text) or 0) >= count:
        return text
    number, unit = text.split()
    return f"{math.floor(float(number) * 10 + 1.5) / 10:.1f} {unit}"


def toml_text(text: str) -> str:
    """``text`` in quotes."""
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    # JSON escapes strings like TOML, except characters above U+FFFF and DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def new_text(comparison: Comparison) -> str:
    """The text of a new file with all expectations that can be stated for a result."""
    cost = comparison.cost
    lines = ["[shardings]"]
    for name, text in _shardings(comparison):
        lines.append(f"{_quoted(name)} = {toml_text(text)}")
    by_axis = {axis: totals for axis, totals in cost.by_axis().items() if totals.count}
    axes = dict.fromkeys([*(comparison.mesh.axis_names if comparison.mesh else ()), *by_axis])
    if axes:
        lines += ["", "# What one device sends along each mesh axis, at most."]
        lines.append("[collectives.max_bytes]")
        for axis in axes:
            sent = by_axis[axis].wire_bytes if axis in by_axis else 0
            lines.append(f"{_key(axis)} = {json.dumps(bytes_text(sent))}")
    lines += ["", "[memory]", f"peak = {json.dumps(bytes_text(cost.peak_bytes))}"]
    largest = max((value.bytes or 0 for value in comparison.replicated_values(0)), default=0)
    limit = bytes_text(max(largest, _MIN_REPLICATED))
    lines += ["", "# The largest value that every device may hold whole."]
    lines += ["[replicated]", f"max_bytes = {json.dumps(limit)}"]
    return "\n".join(lines) + "\n"


def _shardings(comparison: Comparison) -> list[tuple[str, str]]:
    """Names or patterns of arguments and results with their shardings."""
    names: set[str] = set()
    rows = []
    for port in (*comparison.result.arguments(), *comparison.result.results()):
        name = _name(port, names)
        if port.shape is not None and device_alone(port.sharding) is None:
            names.add(name)
            rows.append((name, dims_text(port.sharding, len(port.shape))))
    rows = _joined(comparison, rows, names)
    if len(rows) <= _MANY:
        return rows
    ports = [*comparison.result.arguments(), *comparison.result.results()]
    return joined(rows, [port.label for port in ports if port.label])


def _joined(
    comparison: Comparison, rows: Sequence[tuple[str, str]], taken: set[str]
) -> list[tuple[str, str]]:
    """``rows`` of names and shardings, with repeated layers of equal sharding merged into a pattern
    that is not ``taken`` and matches no other argument or result.
    """
    found = []
    for pattern, alike in folded((name, text, (name, text)) for name, text in rows):
        is_several = len(alike) > 1 and pattern not in taken
        if is_several and len(comparison.subjects.matching(pattern)) == len(alike):
            found.append((pattern, alike[0][1]))
        else:
            found += alike
    return found


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _name(port: Port, taken: set[str]) -> str:
    """The name of ``port`` in a new file: its name in the user's program, if that is unique."""
    return port.label if port.label and port.label not in taken else port.name


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else json.dumps(name, ensure_ascii=False)
