"""The errors of estimates against measured steps, and the confidence interval that follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

KINDS = ("one", "many")
"""The kinds of runs: on one chip, and on many, which wait for each other."""

ASSUMED_SPREAD = 0.4
"""The spread for chips without measurements: more than that of any measured chip."""

_T90 = {1: 6.31, 2: 2.92, 3: 2.35, 4: 2.13, 5: 2.02, 6: 1.94, 8: 1.86, 10: 1.81, 15: 1.75, 30: 1.70}
"""Student's t: 90 % of the distribution are between minus and plus this, by degrees of freedom."""
_NORMAL = 1.645


@dataclass(frozen=True)
class Measured:
    """The errors of measured steps of one kind."""

    runs: int
    """The number of measured steps."""
    spread: float
    """The root mean square of the logarithm of measured over estimated seconds."""
    source: str
    """The origin of the measurements."""
    products: float = 0.0
    """The least share of time in products and custom calls among these steps; programs with a
    smaller share are not covered by them."""

    @property
    def factor(self) -> float:
        """The factor of the interval: 9 of 10 steps are between the estimate divided by it and
        multiplied by it, if their errors are distributed like those of the measured runs (Student's
        t).
        """
        if not self.runs:
            return math.exp(_NORMAL * self.spread)
        known = [quantile for freedom, quantile in _T90.items() if freedom <= self.runs]
        quantile = _NORMAL if self.runs > max(_T90) else known[-1]
        return math.exp(quantile * self.spread * math.sqrt(1 + 1 / self.runs))


@dataclass(frozen=True)
class Confidence:
    """The interval around a step time, and its basis."""

    low: float
    """Seconds: 9 of 10 steps take between this and ``high``."""
    high: float
    runs: int
    """The number of measured steps that it is based on; 0 if the chip was never measured."""
    spread: float
    """Their root mean square of the logarithm of measured over estimated seconds."""
    source: str
    """The origin of the measurements."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.runs} measured: {self.source}" if self.runs else self.source


@dataclass(frozen=True)
class Estimate:
    """The estimated time of a step."""

    seconds: float
    least: float
    """A lower bound of the step time, in seconds."""
    products: float
    """Seconds in products and custom calls."""


def confidence(
    measured: Mapping[str, Measured], chip: str, num_devices: int, estimate: Estimate
) -> Confidence:
    """Return the interval around ``estimate`` on ``num_devices`` chips."""
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
    """Return the measured steps in ``table``, part of a hardware file, by kind; ``wrong`` makes
    errors about them.
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
