"""Writes a chip as a hardware file, which :mod:`~shardcore.calculus.hardware` reads."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware

_NEEDED = ("node_size", "node_bytes_per_second")
"""Figures that chips on a switch need."""
_TABLES = ("achieved", "measured", "source")


def quoted(text: str) -> str:
    """``text`` as a TOML string, which differs from a JSON string in one character only."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def key(name: str) -> str:
    """``name`` as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else quoted(name)


def hardware_text(chip: Hardware) -> str:
    """Return all figures of ``chip`` that differ from the defaults."""
    name = key(chip.name)
    lines = [f"[{name}]", *_lines(chip, {"name", *_TABLES})]
    lines += ["", f"[{name}.achieved]", *_lines(chip.achieved, set())]
    if chip.measured:
        lines += ["", f"[{name}.measured]"]
        lines += [f"{kind} = {_value(vars(row))}" for kind, row in chip.measured.items()]
    lines += ["", f"[{name}.source]"]
    lines += [f"{key(figure)} = {quoted(text)}" for figure, text in chip.source.items()]
    return "\n".join([*lines, ""])


def _lines(record: Any, without: set[str]) -> Iterator[str]:
    """The fields of ``record``, except ``without``, that differ from their defaults."""
    for each in fields(record):
        value = getattr(record, each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        is_needed = each.name in _NEEDED and record.kind == "switched"
        if each.name not in without and (value != default or is_needed):
            yield f"{each.name} = {_value(value)}"


def _value(value: Any) -> str:
    """``value`` as TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key(name)} = {_value(each)}" for name, each in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float) and not math.isinf(value):
        return f"{value:.12g}"
    return str(value)
