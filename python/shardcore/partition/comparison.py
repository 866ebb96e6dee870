"""Runs the per-device and the global program on the same data, and tells rounding from mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shardcore.errors import ProgramTooLargeError, SimulationError
from shardcore.partition.data import rounds
from shardcore.partition.first_difference import DifferingOp, first_difference
from shardcore.partition.proof import Difference
from shardcore.partition.rounding import Bounds, floor, gap, orders, size, widest
from shardcore.simulate import Simulator
from shardcore.simulate.dtypes import finfo, is_float, widened
from shardcore.simulate.memory import available_bytes
from shardcore.simulate.mistakes import too_large
from shardcore.simulate.order import Order
from shardcore.units import format_bytes

if TYPE_CHECKING:
    from shardcore.partition.partitioned import Partitioned

Array = np.ndarray[Any, np.dtype[Any]]
_DRAWN_BYTES = 8
"""The bytes of an element of an argument as it is drawn, before it has its type."""


class Comparison:
    """The differences between the results of the devices and those of the global program.

    Args:
        partitioned: the per-device program.
        seed: the seed of the random data.
        dtype: the type in which narrower floats are computed.
    """

    def __init__(self, partitioned: Partitioned, seed: int, dtype: str | None) -> None:
        self._partitioned = partitioned
        self._dtype = dtype
        self._dtypes = widened(dtype)
        self._random = np.random.default_rng(seed)
        self._global: Simulator | None = None
        self._arrays: Sequence[Array] = ()
        self.elements = 0
        """How many elements the results have."""
        self.differs = False
        """Whether any element differs."""
        self.wrong: list[Difference] = []
        """Results whose difference is larger than rounding explains."""
        self.reordered: list[Difference] = []
        """Results whose difference rounding explains."""
        self.is_loose = False
        """Whether rounding alone changes results so much that it could hide a mistake."""

    @property
    def is_widest(self) -> bool:
        """Whether no argument has floats that are narrower than ``"f64"``."""
        widest_types = widened("f64")
        names = [port.dtype or "" for port in self._partitioned.arguments]
        return all(self._dtypes.get(name) == widest_types.get(name) for name in names)

    def run(self, tolerance: float, is_measured: bool) -> None:
        """Run both programs on rounds of data, until a result is wrong.

        Args:
            tolerance: the allowed difference of floats, relative to the largest element of a
                result.
            is_measured: whether differences that other orders of summation cause are allowed too.
        """
        partitioned = self._partitioned
        self._check_arguments()
        data = rounds(partitioned.source, partitioned.arguments, self._random, self._dtypes)
        found_before: dict[str, Difference] = {}
        for arrays in data:
            self._arrays = arrays
            if self._global is None:
                self._global = Simulator(partitioned.source, dtype=self._dtype)
                self._check_memory(self._needed_bytes(self._global))
            self._compare(self._global, tolerance, is_measured)
            found_before.update((row.result, row) for row in self.reordered)
            if self.wrong:
                break
        self.reordered = [
            row for row in found_before.values() if row.result not in {w.result for w in self.wrong}
        ]

    def _compare(self, run: Simulator, tolerance: float, is_measured: bool) -> None:
        arrays, partitioned = self._arrays, self._partitioned
        found = partitioned.simulate(*arrays, dtype=self._dtype)
        expected: list[Any] = run(*arrays)
        self.elements = sum(int(array.size) for array in expected if array is not None)
        gaps = [gap(mine, theirs) for mine, theirs in zip(found, expected, strict=True)]
        self.reordered = []
        if all(each is None for each in gaps):
            return
        self.differs = True
        bounds = Bounds(expected, self._in_order, orders(partitioned.num_devices))
        changed: list[Array] | None = None
        for at, each in enumerate(gaps):
            if each is None:
                continue
            most = floor(expected[at], tolerance)
            count = int((each > most).sum())
            name, largest = partitioned.results[at].name, size(each).largest
            if not count:
                self.reordered.append(Difference(name, int((each > 0).sum()), largest, 0.0, 0.0))
                continue
            is_allowed = is_measured and bounds.allows(at, size(each))
            if is_allowed and bounds.is_loose(at):
                self.is_loose = True
                is_allowed = not self.is_widest
            change = bounds.change(at).largest if is_measured else 0.0
            if changed is None:
                changed = run(
                    *(array if array is None else _rounded(array, self._random) for array in arrays)
                )
            rounding = _change(changed[at], expected[at])
            row = Difference(name, count, largest, rounding, change)
            (self.reordered if is_allowed else self.wrong).append(row)

    def _in_order(self, order: Order) -> Sequence[Array]:
        """The results of the global program with the terms of each sum added in ``order``."""
        run = Simulator(self._partitioned.source, dtype=self._dtype, order=order)
        return run(*self._arrays)

    def first(
        self, wrong: Sequence[Difference], tolerance: float, dtype: str | None
    ) -> DifferingOp | None:
        """The first differing op among those that the ``wrong`` results depend on, computed in
        ``dtype``; ``None`` if there is not enough memory to look for it."""
        names = {row.result for row in wrong}
        ports = self._partitioned.results
        at = [place for place, port in enumerate(ports) if port.name in names]
        try:
            return first_difference(
                self._partitioned, self._arrays, at, dtype=dtype, tolerance=tolerance
            )
        except (ProgramTooLargeError, SimulationError):
            return None

    def _check_arguments(self) -> None:
        """Refuse programs whose arguments alone need too much memory, before any is drawn."""
        ports = self._partitioned.arguments
        own = [_bytes(port.shape, self._itemsize(port.dtype)) for port in ports]
        drawn = max((_bytes(port.shape, _DRAWN_BYTES) for port in ports), default=0)
        self._check_memory(sum(own) + drawn, "over")

    def _check_memory(self, needed: int, about: str = "about") -> None:
        """Refuse programs that need more memory than the machine has, before they run."""
        available = available_bytes()
        if available is not None and needed > available:
            raise too_large(
                f"simulating {self._partitioned.num_devices} devices and the global program needs "
                f"{about} {format_bytes(needed)} of memory, and {format_bytes(available)} are free"
            )

    def _needed_bytes(self, run: Simulator) -> int:
        """About how many bytes the two programs need, run one after the other, with their
        results."""
        partitioned = self._partitioned
        count = partitioned.num_devices
        rows, held = [], 0
        for port in partitioned.arguments:
            is_uniform = port.sharding is None
            rows.append(1 if is_uniform else count)
            held += (
                0 if is_uniform else _bytes(port.local_shape, self._itemsize(port.dtype)) * count
            )
        results = [
            (_bytes(port.shape, self._itemsize(port.dtype)), _bytes(port.shape, 8))
            for port in partitioned.results
        ]
        of_devices = held + partitioned.simulator(self._dtype).peak_bytes(rows, count)
        kept = sum(own for own, _ in results)
        compared = kept + 3 * max((wide for _, wide in results), default=0)
        return kept + max(of_devices, run.peak_bytes(), compared)

    def _itemsize(self, dtype: str | None) -> int:
        kind = self._dtypes.get(dtype or "")
        return 1 if kind is None else kind.itemsize


def _bytes(shape: Sequence[int | None] | None, itemsize: int) -> int:
    total = itemsize
    for length in shape or ():
        total *= length or 0
    return total


def _change(rounded: Array, theirs: Array) -> float:
    """The largest change of a result when the arguments are rounded differently."""
    with np.errstate(invalid="ignore", over="ignore"):
        change = np.abs(widest(rounded) - widest(theirs))
    return float(np.max(change[np.isfinite(change)], initial=0.0))


def _rounded(array: Array, random: np.random.Generator) -> Array:
    """``array`` with each element moved up or down by the rounding of its type, at random."""
    if not is_float(array.dtype):
        return array
    epsilon = float(finfo(array.dtype).eps)
    signs = random.integers(0, 2, array.shape) * 2 - 1
    return np.asarray(array.astype(np.float64) * (1 + epsilon * signs)).astype(array.dtype)
