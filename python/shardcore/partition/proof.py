"""Compares the per-device program with the global program by simulating both."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from operator import index
from typing import TYPE_CHECKING, Any

from shardcore._core import Port
from shardcore.expected import expect
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore.partition.partitioned import Partitioned


_AMPLIFIED = 10
"""Differences of more times what rounding of the arguments makes are not ascribed to rounding."""


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
            return f"proven: {what} agree with the global program, {how} ({self.seconds:.2f} s)"
        rows = [
            f"  {row.result}: {row.elements} elements, by up to {row.largest:g}; "
            f"rounding of the arguments makes up to {row.rounding:g}"
            for row in self.differences
        ]
        if all(row.largest <= _AMPLIFIED * row.rounding for row in self.differences):
            rows.append(
                "  help: the program amplifies rounding, and the order of sums may do this: prove "
                "it with f64 for its floats"
            )
        return "\n".join([f"NOT proven: of {what} these differ:", *rows])


def prove(partitioned: Partitioned, *, seed: int = 0, tolerance: float = 1e-5) -> Proof:
    """Run the devices and the global program on the same random data, and compare.

    The data are small integers, whose sums and products are exact in any order, so that most
    programs agree bit for bit. ``tolerance``, relative to the largest element of a result, is for
    programs with other arithmetic. Padding of arguments is NaN, or the largest integer.

    Raises:
        SimulationError: an op cannot be simulated.
        ValueError: devices that should hold the same part of a result hold different ones, or
            ``seed`` is negative.
    """
    import numpy as np

    from shardcore.partition.partitioned import Partitioned
    from shardcore.simulate import Simulator
    from shardcore.simulate.dtypes import are_equal

    expect(partitioned, Partitioned)
    expect(tolerance, Real)
    started = time.perf_counter()
    random = np.random.default_rng(index(seed))
    arrays = [_data(port, random) for port in partitioned.arguments]
    found = partitioned.simulate(*arrays)
    run = Simulator(partitioned.source)
    expected = run(*arrays)
    rounded: Sequence[Any] | None = None
    differences = []
    exact = True
    for at, port in enumerate(partitioned.results):
        mine, theirs = found[at], expected[at]
        if are_equal(mine, theirs):
            continue
        wide = np.complex128 if theirs.dtype.kind == "c" else np.float64
        a, b = mine.astype(wide), theirs.astype(wide)
        is_finite = np.isfinite(a) & np.isfinite(b)
        scale = max(1.0, float(np.max(np.abs(b[is_finite]), initial=0.0)))
        with np.errstate(invalid="ignore"):
            gap = np.where(is_finite, np.abs(a - b), np.where(_alike(a, b), 0.0, np.inf))
        exact = False
        is_wrong = gap > (tolerance if theirs.dtype.kind in "fcV" else 0.0) * scale
        if is_wrong.any():
            if rounded is None:
                rounded = run(*(_rounded(array, random) for array in arrays))
            with np.errstate(invalid="ignore"):
                change = np.abs(rounded[at].astype(wide) - b)
            most = float(np.max(change[np.isfinite(change)], initial=0.0))
            row = Difference(port.name, int(is_wrong.sum()), float(gap.max()), most)
            differences.append(row)
    return Proof(
        partitioned.num_devices,
        len(found),
        sum(int(array.size) for array in expected),
        0.0 if exact else tolerance,
        tuple(differences),
        time.perf_counter() - started,
    )


def _alike(a: Any, b: Any) -> Any:
    import numpy as np

    return (a == b) | (np.isnan(a) & np.isnan(b))


def _rounded(array: Any, random: Any) -> Any:
    """``array`` with each element changed by the rounding of its type, up or down."""
    import numpy as np

    from shardcore.simulate.dtypes import finfo, is_float

    if not is_float(array.dtype):
        return array
    epsilon = float(finfo(array.dtype).eps)
    signs = random.integers(0, 2, array.shape) * 2 - 1
    return (array.astype(np.float64) * (1 + epsilon * signs)).astype(array.dtype)


def _data(port: Port, random: Any) -> Any:
    """Small integers of the argument's type."""
    import numpy as np

    from shardcore.simulate.dtypes import DTYPES
    from shardcore.simulate.mistakes import OTHER_TYPES, mistake

    dtype = DTYPES.get(port.dtype or "f32")
    if dtype is None:
        message = f"{port.name} has elements of type {port.dtype}"
        raise mistake("unsupported-op", message, OTHER_TYPES, (), "")
    shape = tuple(size or 0 for size in port.shape or ())
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    low = 0 if dtype.kind == "u" else -3
    return np.asarray(random.integers(low, 4, shape)).astype(dtype)
