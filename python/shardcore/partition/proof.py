"""Compares the per-device program with the global program by simulating both."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf, isfinite
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, Any

from shardcore.expected import expect
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore.partition.first_difference import DifferingOp
    from shardcore.partition.partitioned import Partitioned

EQUAL = "equal"
"""All results are equal bit for bit."""
REORDERED = "equal within reordering"
"""The results differ by rounding only: the devices add in another order."""
WRONG = "wrong"
"""Some result differs by more than rounding."""

_AMPLIFIED = 10
"""A difference is not called rounding if it exceeds this many times the effect of rounding the
arguments."""
_TOLERANCE = 1e-5
_TOLERANCES: dict[str | None, float] = {"f64": 1e-6}
"""The allowed differences without ``tolerance``, relative to the largest element of a result, where
they are not the usual one."""


@dataclass(frozen=True)
class Difference:
    """A result in which the devices and the global program differ."""

    result: str
    """The name of the result."""
    elements: int
    """How many of its elements differ by more than the tolerance."""
    largest: float
    """The largest difference."""
    rounding: float
    """How much the global program's result changes if each float argument changes by the rounding
    of its type. If it changes as much as ``largest``, the program amplifies rounding."""
    reordering: float
    """The largest change of the result under some other orders of summation; 0 if that was not
    measured, as with a ``tolerance``."""


@dataclass(frozen=True)
class Proof:
    """The outcome of the comparison."""

    num_devices: int
    num_results: int
    elements: int
    """How many elements of results were compared."""
    tolerance: float
    """The allowed difference, relative to the largest element of a result; 0 means bit for bit."""
    differences: tuple[Difference, ...]
    seconds: float
    dtype: str | None = None
    """The type in which narrower floats were computed, as passed to ``prove``."""
    has_narrow_floats: bool = False
    """Whether arguments were computed in floats narrower than ``"f64"``."""
    reordered: tuple[Difference, ...] = ()
    """Results that differ, but by no more than other orders of summation explain."""
    first: DifferingOp | None = None
    """The first differing op if results are wrong; ``None`` if it was not found."""
    in_double: bool | None = None
    """Whether the programs agree in double precision; ``None`` if that was not tested. It is tested
    if other orders of summation change a result so much that a mistake could hide in it."""

    @property
    def is_proven(self) -> bool:
        """Whether nothing differs by more than other orders of summation explain."""
        return self.verdict != WRONG

    @property
    def verdict(self) -> str:
        """``"equal"``, ``"equal within reordering"`` or ``"wrong"``."""
        if self.differences:
            return WRONG
        return REORDERED if self.reordered else EQUAL

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "verdict": self.verdict,
            "is_proven": self.is_proven,
            "num_devices": self.num_devices,
            "elements": self.elements,
            "tolerance": self.tolerance,
            "dtype": self.dtype,
            "differences": [vars(difference) for difference in self.differences],
            "reordered": [vars(difference) for difference in self.reordered],
            "first": None if self.first is None else self.first.record(),
            "in_double": self.in_double,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        what = (
            f"{plural(self.elements, 'element')} of {plural(self.num_results, 'result')} "
            f"on {plural(self.num_devices, 'device')}"
        )
        if self.is_proven:
            how = "bit for bit" if self.verdict == EQUAL else self._rounded()
            how += f" in {self.dtype}" if self.dtype else ""
            return f"proven: {what} agree with the global program, {how} ({self.seconds:.2f} s)"
        rows = [
            f"  {row.result}: {row.elements} elements, by up to {row.largest:g}; "
            f"other orders of sums make up to {row.reordering:g}, "
            f"rounding of the arguments up to {row.rounding:g}"
            for row in self.differences
        ]
        if self.first is not None:
            rows.append(f"  the first op that differs: {self.first}")
        if self.in_double:
            rows.append("  in double precision they agree: rounding is worse than reordering does")
        if (
            self.has_narrow_floats
            and self.in_double is None
            and all(row.largest <= _AMPLIFIED * row.rounding for row in self.differences)
        ):
            rows.append(
                "  help: the program amplifies rounding, and the order of sums may do this: "
                'compute its floats in double precision, prove(..., dtype="f64") or '
                "--prove --dtype f64"
            )
        return "\n".join([f"NOT proven: of {what} these differ:", *rows])

    def _rounded(self) -> str:
        """A text that says by how much results differ through rounding."""
        if all(not row.reordering for row in self.reordered):
            return f"within {self.tolerance:g}"
        most = max(self.reordered, key=lambda row: (isfinite(row.largest), row.largest))
        also = ", and in double precision" if self.in_double else ""
        return (
            f"within what reordering does: by up to {most.largest:g}, where other orders of sums "
            f"make up to {most.reordering:g}{also}"
        )


def prove(
    partitioned: Partitioned,
    *,
    seed: int = 0,
    tolerance: float | None = None,
    dtype: str | None = None,
) -> Proof:
    """Run the devices and the global program on the same random data, and compare the results.

    The data are small integers, whose sums and products are exact in any order, so most programs
    agree bit for bit. Some indices are out of range; divisors are not zero. A program that
    multiplies integers runs a second time on odd integers, whose products are never zero; one that
    reduces booleans by `and` or `or` also runs on booleans that are nearly all true or nearly all
    false. Padding of arguments is NaN, or the largest integer.

    The devices add in another order than the global program, so they may round differently. The
    effect is measured: where results differ, the global program is run again with other orders of
    summation, each partial sum rounded to the types of the program. If these change a result by
    more than a twentieth of it, both programs also run in double precision, and that comparison
    decides.

    Args:
        partitioned: the per-device program.
        seed: the seed of the random data.
        tolerance: the allowed difference of floats, relative to the largest element of a result,
            instead of the measured effect of reordering. By default a difference of 1e-5 is always
            allowed, 1e-6 in ``"f64"``, because devices call functions of another math library.
        dtype: compute narrower floats of both programs in this type, ``"f32"`` or ``"f64"``, so
            that rounding neither hides nor causes differences. ``reduce_precision`` still rounds,
            and ``bitcast_convert`` uses the bits of the program's own types.

    Raises:
        SimulationError: an op cannot be simulated, or a loop does not end.
        ProgramTooLargeError: the values of the programs do not fit into memory.
        ValueError: replicas of a result differ between devices, ``seed`` is negative, ``tolerance``
            is negative or no finite number, or ``dtype`` is no such type.
    """
    from shardcore.partition.comparison import Comparison
    from shardcore.partition.partitioned import Partitioned

    expect(partitioned, Partitioned)
    started = time.perf_counter()
    comparison = Comparison(partitioned, index(seed), dtype)
    is_measured = tolerance is None
    if tolerance is None:
        tolerance = _TOLERANCES.get(dtype, _TOLERANCE)
    expect(tolerance, Real)
    if not 0 <= tolerance < inf:
        raise ValueError(f"tolerance is a number of at least 0, not {tolerance}")
    comparison.run(tolerance, is_measured)
    in_double = None
    differences, reordered = comparison.wrong, comparison.reordered
    if comparison.is_loose and not comparison.is_widest:
        wrong = _wrong_in_double(partitioned, seed)
        if wrong is not None:
            in_double = not wrong
            differences = [*differences, *(row for row in reordered if row.result in wrong)]
            reordered = [row for row in reordered if row.result not in wrong]
    first = None
    if differences:
        # Where the program's own types leave room for mistakes, double precision decides.
        is_double = in_double is False and not comparison.wrong
        in_dtype = "f64" if is_double else dtype
        first = comparison.first(
            differences, _TOLERANCES["f64"] if is_double else tolerance, in_dtype
        )
    return Proof(
        partitioned.num_devices,
        len(partitioned.results),
        comparison.elements,
        tolerance if comparison.differs else 0.0,
        tuple(differences),
        time.perf_counter() - started,
        dtype,
        not comparison.is_widest,
        tuple(reordered),
        first,
        in_double,
    )


def _wrong_in_double(partitioned: Partitioned, seed: int) -> set[str] | None:
    """The results that are wrong in double precision; ``None`` if there is not enough memory."""
    from shardcore.errors import ProgramTooLargeError

    try:
        double = prove(partitioned, seed=seed, dtype="f64")
    except ProgramTooLargeError:
        return None
    return {row.result for row in double.differences}
