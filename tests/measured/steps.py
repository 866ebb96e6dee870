"""Steps of programs on one chip that were measured, beside their costs.

Seconds are the median of three times five steps dispatched one after the other, after three that
were not counted; the programs are as JAX lowered them.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import shardcore

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Step:
    """A measured step."""

    chip: str
    program: str
    step_seconds: float
    peak_bytes: int
    """Bytes that XLA for the chip takes at once."""
    kernels: int
    """Kernels of the compiled program, those in loops once."""

    def module(self) -> shardcore.Module:
        """The program."""
        packed = (_FOLDER / self.chip / f"{self.program}.mlir.gz").read_bytes()
        return shardcore.Module.parse(gzip.decompress(packed).decode())

    @cache  # noqa: B019  # There are few.
    def cost(self) -> shardcore.Cost:
        """Its cost on the chip."""
        return self.module().propagate().cost(self.chip)


@cache
def steps() -> tuple[Step, ...]:
    """All of them."""
    found = []
    for table in sorted(_FOLDER.glob("*/steps.json")):
        rows = json.loads(table.read_text(encoding="utf-8"))
        found += [Step(chip=table.parent.name, **row) for row in rows]
    return tuple(found)


def spread(ratios: Iterable[float]) -> float:
    """The root of the mean square of the logarithms of ``ratios``, measured over estimated."""
    errors = [math.log(ratio) ** 2 for ratio in ratios]
    return math.sqrt(sum(errors) / len(errors))
