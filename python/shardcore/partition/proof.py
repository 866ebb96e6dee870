"""Compares the per-device program with the global program by simulating both."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, Any

from shardcore.expected import expect
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore.partition.first_difference import DifferingOp
    from shardcore.partition.partitioned import Partitioned

EQUAL = "equal"
"""All results agree bit for bit."""
REORDERED = "equal within reordering"
"""What differs is rounding: devices add in another order than the global program does."""
WRONG = "wrong"
"""Results differ by more than that."""

_AMPLIFIED = 10
"""Differences of more times what rounding of the arguments makes are not ascribed to rounding."""
_TOLERANCE = 1e-5
_TOLERANCES: dict[str | None, float] = {"f64": 1e-6}
"""What results may differ by unless the caller says, relative to their largest elements, where that
is not the usual."""


@dataclass(frozen=True)
class Difference:
    """A result in which the devices and the global program differ."""

    result: str
    """Which result."""
    elements: int
    """How many of its elements differ by more than the tolerance."""
    largest: float
    """The largest difference."""
    rounding: float
    """How much the global program's result changes if each float argument changes by the rounding
    of its type: a program that changes as much by that alone amplifies rounding."""
    reordering: float
    """How much it changes, at most, where sums are added in some other orders; 0 where that was not
    asked, as with a ``tolerance``."""


@dataclass(frozen=True)
class Proof:
    """The outcome of the comparison."""

    num_devices: int
    num_results: int
    elements: int
    """Elements of results that were compared."""
    tolerance: float
    """What may differ, relative to the largest element of a result; 0 is bit for bit."""
    differences: tuple[Difference, ...]
    seconds: float
    dtype: str | None = None
    """The type that narrower floats were computed in, as ``prove`` takes it."""
    has_narrow_floats: bool = False
    """Whether arguments were computed in floats narrower than ``"f64"``."""
    reordered: tuple[Difference, ...] = ()
    """Results that differ, but not by more than what reordering does."""
    first: DifferingOp | None = None
    """Where results are wrong, the first op that differs; ``None`` if it was not found."""
    in_double: bool | None = None
    """Whether the programs agree in double precision; ``None`` where that was not asked. It is
    asked where reordering changes a result by so much that little can be said of it."""

    @property
    def is_proven(self) -> bool:
        """Whether nothing differs, or by no more than what reordering does."""
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
        """How far results are apart that differ by rounding."""
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
    """Run the devices and the global program on the same random data, and compare.

    The data are small integers, whose sums and products are exact in any order, so that most
    programs agree bit for bit. Indices are in range and out of it; divisors are not zero. A program
    that multiplies integers runs a second time, on odd ones, of which no product is zero; one that
    asks whether all or any of its booleans are true runs on booleans of which nearly all or few
    are. Padding of arguments is NaN, or the largest integer.

    Devices add in another order than the global program does, and so round otherwise. What that may
    make is measured: where results differ, the global program runs with its sums in other orders,
    each part rounded to the types of the program. Where these change a result by more than a
    twentieth of it, both programs run in double precision, too, which then decides.

    Args:
        partitioned: the program of one device.
        seed: that of the random data.
        tolerance: what floats may differ by, relative to the largest element of a result, instead
            of what reordering makes. By default results may always differ by 1e-5, and by 1e-6 in
            ``"f64"``, since devices do not call the functions of the same library.
        dtype: compute the floats of both programs that are narrower in this type, ``"f32"`` or
            ``"f64"``, so that rounding neither hides nor makes differences. ``reduce_precision``
            still rounds, and ``bitcast_convert`` has the bits of the program's own types.

    Raises:
        SimulationError: an op cannot be simulated, or a loop does not end.
        ProgramTooLargeError: the values of the programs do not fit into memory.
        ValueError: devices that should hold the same part of a result hold different ones,
            ``seed`` is negative, or there is no such ``dtype``.
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
        # What little can be said of in the program's own types is looked for in double precision.
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
    """The results that are wrong in double precision; ``None`` if there is no memory for it."""
    from shardcore.errors import ProgramTooLargeError

    try:
        double = prove(partitioned, seed=seed, dtype="f64")
    except ProgramTooLargeError:
        return None
    return {row.result for row in double.differences}
