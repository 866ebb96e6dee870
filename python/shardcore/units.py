"""Formats bytes, seconds and counts as text, and parses text as bytes."""

from __future__ import annotations

import re
from fractions import Fraction

MAX_BYTES = 1 << 63
"""The limit of :func:`parse_bytes`, more than any memory has."""

_BYTES = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([a-zA-Z]*)\s*\Z", re.ASCII)
_UNITS = {
    unit.lower(): base**power
    for base, units in ((1024, "B KiB MiB GiB TiB PiB"), (1000, "B kB MB GB TB PB"))
    for power, unit in enumerate(units.split())
}
_SECONDS = (("s", 1.0), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))
_PREFIXES = (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def format_bytes(count: float, digits: int = 1) -> str:
    """Return ``count`` bytes with a binary unit: ``format_bytes(1536) == "1.5 KiB"``; ``digits`` is
    the number of decimals.
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(count) < 1024 or unit == "PiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.{digits}f} {unit}"


def format_bytes_up(count: float, digits: int = 2) -> str:
    """Return ``count`` bytes as :func:`format_bytes` does, but rounded up: ``format_bytes_up(2**30
    + 1) == "1.01 GiB"``.
    """
    text = format_bytes(count, digits)
    if (parse_bytes(text) or 0) >= count:
        return text
    number, unit = text.split()
    return f"{float(number) + 10**-digits:.{digits}f} {unit}"


def format_bytes_apart(count: float, other: float) -> tuple[str, str]:
    """Return both counts with the fewest digits that show a difference: ``format_bytes_apart(2**30,
    2**30 + 2**24) == ("1.00 GiB", "1.02 GiB")``.
    """
    texts = [(format_bytes(count, digits), format_bytes(other, digits)) for digits in range(1, 4)]
    texts.append((f"{count:.0f} bytes", f"{other:.0f} bytes"))
    if count == other:
        return texts[0]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[-1])


def format_seconds(seconds: float, digits: int = 3) -> str:
    """Return ``seconds`` to ``digits`` significant digits, with the largest unit that leaves at
    least 1: ``format_seconds(0.00125) == "1.25 ms"``. Zero is ``"0"``.
    """
    for unit, factor in _SECONDS:
        rounded = float(f"{seconds * factor:.{digits}g}")
        if abs(rounded) >= 1 or unit == "ns":
            break
    return f"{rounded:g} {unit}" if seconds else "0"


def format_count(count: float) -> str:
    """Return ``count`` with a decimal prefix: ``format_count(2.5e12) == "2.5 T"``."""
    for unit, factor in _PREFIXES:
        if abs(count) >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.3g}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """Return ``count`` with the noun ``one``, or ``many`` of it: ``1 hop``, ``2 hops``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def parse_bytes(value: object) -> int | None:
    """Return the bytes that ``value``, a number or a text such as ``"1.5 GiB"``, denotes; ``None``
    if it denotes none, or a number of at least :data:`MAX_BYTES`.

    Units are ``B``, ``KiB`` ... ``PiB`` and ``kB`` ... ``PB``, in upper or lower case.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value < MAX_BYTES else None
    match = _BYTES.match(value) if isinstance(value, str) else None
    unit = None if match is None else _UNITS.get(match.group(2).lower() or "b")
    if match is None or unit is None:
        return None
    count = int(Fraction(match.group(1)) * unit)
    return count if count < MAX_BYTES else None
