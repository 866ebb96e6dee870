"""Compares the per-device program with the global program by simulating both."""

from __future__ import annotations

import time
from dataclasses import dataclass
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, Any

from shardcore.expected import expect
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore.partition.partitioned import Partitioned


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

    @property
    def is_proven(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "is_proven": self.is_proven,
            "num_devices": self.num_devices,
            "elements": self.elements,
            "tolerance": self.tolerance,
            "dtype": self.dtype,
            "differences": [vars(difference) for difference in self.differences],
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        what = (
            f"{plural(self.elements, 'element')} of {plural(self.num_results, 'result')} "
            f"on {plural(self.num_devices, 'device')}"
        )
        if self.is_proven:
            how = "bit for bit" if not self.tolerance else f"within {self.tolerance:g}"
            how += f" in {self.dtype}" if self.dtype else ""
            return f"proven: {what} agree with the global program, {how} ({self.seconds:.2f} s)"
        rows = [
            f"  {row.result}: {row.elements} elements, by up to {row.largest:g}; "
            f"rounding of the arguments makes up to {row.rounding:g}"
            for row in self.differences
        ]
        if self.has_narrow_floats and all(
            row.largest <= _AMPLIFIED * row.rounding for row in self.differences
        ):
            rows.append(
                "  help: the program amplifies rounding, and the order of sums may do this: "
                'compute its floats in double precision, prove(..., dtype="f64") or '
                "--prove --dtype f64"
            )
        return "\n".join([f"NOT proven: of {what} these differ:", *rows])


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

    Args:
        partitioned: the program of one device.
        seed: that of the random data.
        tolerance: what floats may differ by, relative to the largest element of a result, for
            programs that divide or call functions. By default 1e-5, and 1e-6 in ``"f64"``.
        dtype: compute the floats of both programs that are narrower in this type, ``"f32"`` or
            ``"f64"``, so that rounding neither hides nor makes differences. ``reduce_precision``
            still rounds, and ``bitcast_convert`` has the bits of the program's own types.

    Raises:
        SimulationError: an op cannot be simulated.
        ValueError: devices that should hold the same part of a result hold different ones,
            ``seed`` is negative, or there is no such ``dtype``.
    """
    import numpy as np

    from shardcore.partition.data import rounds
    from shardcore.partition.partitioned import Partitioned
    from shardcore.simulate import Simulator
    from shardcore.simulate.dtypes import widened

    expect(partitioned, Partitioned)
    dtypes, widest = widened(dtype), widened("f64")
    if tolerance is None:
        tolerance = _TOLERANCES.get(dtype, _TOLERANCE)
    expect(tolerance, Real)
    started = time.perf_counter()
    random = np.random.default_rng(index(seed))
    run: Simulator | None = None
    ports = partitioned.results
    differences: list[Difference] = []
    is_exact, elements = True, 0
    for arrays in rounds(partitioned.source, partitioned.arguments, random, dtypes):
        run = run or Simulator(partitioned.source, dtype=dtype)
        found, expected = partitioned.simulate(*arrays, dtype=dtype), run(*arrays)
        elements = sum(int(array.size) for array in expected)
        gaps = [_gap(mine, theirs) for mine, theirs in zip(found, expected, strict=True)]
        is_exact = is_exact and all(gap is None for gap in gaps)
        wrong = {
            at: count
            for at, gap in enumerate(gaps)
            if gap is not None
            if (count := int((gap > _most(expected[at], tolerance)).sum()))
        }
        if wrong:
            rounded = run(*(_rounded(array, random) for array in arrays))
            differences = [
                Difference(
                    ports[at].name, count, float(gaps[at].max()), _change(rounded[at], expected[at])
                )
                for at, count in wrong.items()
            ]
            break
    return Proof(
        partitioned.num_devices,
        len(ports),
        elements,
        0.0 if is_exact else tolerance,
        tuple(differences),
        time.perf_counter() - started,
        dtype,
        any(
            dtypes.get(port.dtype or "") != widest.get(port.dtype or "")
            for port in partitioned.arguments
        ),
    )


def _gap(mine: Any, theirs: Any) -> Any:
    """By how much each element differs; ``None`` if none does."""
    import numpy as np

    from shardcore.simulate.dtypes import are_equal

    if are_equal(mine, theirs):
        return None
    a, b = _widest(mine), _widest(theirs)
    is_finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore"):
        is_alike = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.where(is_finite, np.abs(a - b), np.where(is_alike, 0.0, np.inf))


def _most(theirs: Any, tolerance: float) -> float:
    """What elements may differ by."""
    import numpy as np

    b = np.abs(_widest(theirs))
    scale = max(1.0, float(np.max(b[np.isfinite(b)], initial=0.0)))
    return (tolerance if theirs.dtype.kind in "fcV" else 0.0) * scale


def _change(rounded: Any, theirs: Any) -> float:
    """The largest change of a result that rounding of the arguments makes."""
    import numpy as np

    with np.errstate(invalid="ignore"):
        change = np.abs(_widest(rounded) - _widest(theirs))
    return float(np.max(change[np.isfinite(change)], initial=0.0))


def _widest(array: Any) -> Any:
    import numpy as np

    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _rounded(array: Any, random: Any) -> Any:
    """``array`` with each element changed by the rounding of its type, up or down."""
    import numpy as np

    from shardcore.simulate.dtypes import finfo, is_float

    if not is_float(array.dtype):
        return array
    epsilon = float(finfo(array.dtype).eps)
    signs = random.integers(0, 2, array.shape) * 2 - 1
    return (array.astype(np.float64) * (1 + epsilon * signs)).astype(array.dtype)
