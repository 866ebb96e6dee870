"""What the costs of measured programs are if the constants of their chip are fitted without them.

For each program the constants are fitted to the other programs and to the single ops of
``test_ops.py``: least squares of the logarithms of the errors (Gauss and Newton). Rules of the
model that were found on these programs stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from shardcore.calculus.hardware import Hardware, hardware
from shardcore.costs.measurements import Measurement
from shardcore.partition.counted import local_program

from tests.measured.steps import steps
from tests.measured.test_ops import DISPATCH, OPS, lowered

CHIP = "h100"
_ROUNDS = 3
_STEP = 0.02
"""How far a constant is moved, as a logarithm, to find what depends on it."""
_LOOSE = 1.0
"""How uncertain a constant is before any measurement, as a logarithm."""

Move = Callable[[Hardware, float], Hardware]


def _share(name: str) -> Move:
    def move(chip: Hardware, ratio: float) -> Hardware:
        value = getattr(chip.achieved, name) * ratio
        return replace(chip, achieved=replace(chip.achieved, **{name: value}))

    return move


def _products(chip: Hardware, ratio: float) -> Hardware:
    products = {name: share * ratio for name, share in chip.achieved.products.items()}
    return replace(chip, achieved=replace(chip.achieved, products=products))


def _cache(chip: Hardware, ratio: float) -> Hardware:
    return replace(chip, cache_bytes_per_second=chip.cache_bytes_per_second * ratio)


CONSTANTS: dict[str, Move] = {
    "products": _products,
    "cache_bytes_per_second": _cache,
    **{
        name: _share(name)
        for name in (
            "memory",
            "scattered",
            "vector_flops",
            "transcendental_flops",
            "depth_overhead",
            "misaligned",
            "op_seconds",
            "sort_flops",
            "column_seconds",
        )
    },
}
"""The constants that were fitted to measurements of one chip; each is multiplied by a ratio."""


@dataclass(frozen=True)
class Case:
    """A measured program or op."""

    name: str
    measurement: Measurement
    extra: float
    """Seconds of its measured time that are not those of the chip."""
    is_program: bool

    def error(self, chip: Hardware) -> float:
        """The logarithm of estimated over measured seconds."""
        seconds = self.measurement.cost(chip).step_seconds + self.extra
        return math.log(seconds / self.measurement.step_seconds)


@cache
def cases() -> tuple[Case, ...]:
    """The programs, then the ops."""
    found = []
    for step in steps():
        if step.chip == CHIP:
            program = local_program(step.module().propagate(), "xla")
            measurement = Measurement(step.program, program, step.step_seconds, {})
            found.append(Case(step.program, measurement, 0.0, True))
    for name, (function, arguments, took) in OPS.items():
        program = local_program(lowered(function, *arguments).propagate().result, "xla")
        found.append(Case(name, Measurement(name, program, took, {}), DISPATCH, False))
    return tuple(found)


def errors() -> Iterator[tuple[str, float, float]]:
    """For each program the logarithm of estimated over measured seconds: with the constants of the
    chip, and with those fitted without it."""
    chip = hardware(CHIP)
    for case in cases():
        if case.is_program:
            fitted = _fitted(chip, [other for other in cases() if other is not case])
            yield case.name, case.error(chip), case.error(fitted)


def _fitted(chip: Hardware, known: Sequence[Case]) -> Hardware:
    """``chip`` with constants that have the least squares of the errors of ``known``."""
    moves, moved, found = CONSTANTS.values(), np.zeros(len(CONSTANTS)), chip
    for _ in range(_ROUNDS):
        base = np.array([case.error(found) for case in known])
        steps = [move(found, math.exp(_STEP)) for move in moves]
        slopes = [
            [(case.error(step) - at) / _STEP for step in steps]
            for case, at in zip(known, base, strict=True)
        ]
        prior = base.std() / _LOOSE
        left = np.vstack([slopes, prior * np.eye(len(moved))])
        moved += np.linalg.lstsq(left, np.concatenate([-base, -prior * moved]), rcond=None)[0]
        found = chip
        for move, by in zip(moves, moved, strict=True):
            found = move(found, math.exp(by))
    return found
