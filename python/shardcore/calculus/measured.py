"""How far measured steps were from the estimates of them, and the interval that follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

KINDS = ("one", "many")
"""Kinds of runs: those of one chip, and those of many, which wait for each other."""

ASSUMED_SPREAD = 0.4
"""The spread where nobody measured: more than that of any chip that was."""

_T90 = {1: 6.31, 2: 2.92, 3: 2.35, 4: 2.13, 5: 2.02, 6: 1.94, 8: 1.86, 10: 1.81, 15: 1.75, 30: 1.70}
"""Between minus and plus this lie 90 % of Student's distribution, by degrees of freedom."""
_NORMAL = 1.645


@dataclass(frozen=True)
class Measured:
    """What measured steps of one kind showed."""

    runs: int
    """How many there were."""
    spread: float
    """The root of the mean square of the logarithm of measured over estimated seconds."""
    source: str
    """Which these were."""
    products: float = 0.0
    """The least share of their time that these were in products and custom calls: of programs with
    less nothing is known."""

    @property
    def factor(self) -> float:
        """9 of 10 steps are between an estimate divided by this and multiplied by it, if their
        errors are distributed as those of the runs were, and no better known than from so few.
        """
        if not self.runs:
            return math.exp(_NORMAL * self.spread)
        known = [quantile for freedom, quantile in _T90.items() if freedom <= self.runs]
        quantile = _NORMAL if self.runs > max(_T90) else known[-1]
        return math.exp(quantile * self.spread * math.sqrt(1 + 1 / self.runs))


@dataclass(frozen=True)
class Confidence:
    """What the interval around the time of a step rests on."""

    low: float
    """Seconds: 9 of 10 steps are between this and ``high``."""
    high: float
    runs: int
    """How many measured steps it rests on; 0 if nobody measured such a chip."""
    spread: float
    """Of these the root of the mean square of the logarithm of measured over estimated seconds."""
    source: str
    """Which these were."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.runs} measured: {self.source}" if self.runs else self.source


@dataclass(frozen=True)
class Estimate:
    """The time of a step, as far as it is known without measuring."""

    seconds: float
    least: float
    """Seconds: no step takes less."""
    products: float
    """Seconds in products and custom calls."""


def confidence(
    measured: Mapping[str, Measured], chip: str, num_devices: int, estimate: Estimate
) -> Confidence:
    """Return what is known of ``estimate`` on ``num_devices`` chips."""
    seconds, least = estimate.seconds, estimate.least
    found = measured.get(KINDS[num_devices > 1])
    if found is None or estimate.products < found.products * seconds:
        which = "on one chip" if num_devices == 1 else "on many chips"
        such = "" if found is None else ", that is not mostly products,"
        text = f"assumed: no step {which} of {chip}{such} is known"
        found = Measured(0, ASSUMED_SPREAD, text)
    low, high = max(least, seconds / found.factor), seconds * found.factor
    return Confidence(min(low, seconds), high, found.runs, found.spread, found.source)


def read_measured(table: object, wrong: Callable[[str, str], Exception]) -> Mapping[str, Measured]:
    """Return the measured steps in ``table``, the part of a file, by kind; ``wrong`` makes the
    error of a figure.
    """
    if not isinstance(table, dict):
        raise wrong("is no table", _EXAMPLE)
    found = {}
    for kind, row in table.items():
        if (
            kind not in KINDS
            or not isinstance(row, dict)
            or not _NEEDED <= row.keys() <= _ROW.keys()
        ):
            raise wrong(f"has {kind!r:.40} = {row!r:.60}", _EXAMPLE)
        for key, value in row.items():
            if isinstance(value, bool) or not _ROW[key](value):
                raise wrong(f"has {key} = {value!r:.60}", _EXAMPLE)
        found[kind] = Measured(**row)
    return MappingProxyType(found)


_EXAMPLE = 'write measured = { one = { runs = 9, spread = 0.1, source = "..." } }'
_ROW: dict[str, Callable[[Any], bool]] = {
    "runs": lambda value: isinstance(value, int) and 0 < value < 1 << 31,
    "spread": lambda value: isinstance(value, (int, float)) and 0 <= value <= 10,
    "source": lambda value: isinstance(value, str),
    "products": lambda value: isinstance(value, (int, float)) and 0 <= value <= 1,
}
_NEEDED = _ROW.keys() - {"products"}
