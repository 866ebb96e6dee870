"""Measured steps next to the estimated costs: errors, medians and the worst tenth."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from shardcore.bench.launches import launched_share
from shardcore.bench.rows import Row, read_rows
from shardcore.calculus.hardware import hardware
from shardcore.errors import Diagnostic, LoweringError

if TYPE_CHECKING:
    from shardcore.bench.training import Training
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs import Cost
    from shardcore.costs.measurements import Measurement
    from shardcore.partition.partitioned import Partitioned

LAUNCH_SECONDS = 2.5e-5
"""Seconds that a kernel takes to start if the host launches it while the device waits."""

SUMMED = "xla_tpu_enable_sparse_core_collective_offload_all_gather"
"""The option of runs on TPUs in which gathers are made of all-reduces: SparseCores gather along one
axis of the torus only, unless there are options for two and three; but they sum along all. So does
libtpu 0.0.42 for a v5p."""

RESERVED = 1.15
"""Memory that PyTorch's caching allocator reserves, relative to the memory in use at the peak.

torchtitan publishes what is reserved; fitted to its rows that are not held out."""

RING = 1.35
"""How much longer attention over an axis of tokens takes torch, which computes it for one pair of
chunks after the other, than the same attention in one kernel.

Fitted, with shares of the chip, to the runs of torchtitan that are not held out."""

CHIPS_FILE = Path(__file__).with_name("chips.toml")
"""Chips that are not in ``hardware.toml``."""


@dataclass(frozen=True)
class Line:
    """A row with the cost of its program."""

    row: Row
    measured: float | None
    """Measured seconds of the step; for rows with FLOP/s only, derived from the model FLOPs."""
    lower: float | None = None
    point: float | None = None
    upper: float | None = None
    """Seconds: the upper end of the interval; ``None`` for a row without a program."""
    low: float | None = None
    """Seconds: the lower end of the interval."""
    peak_bytes: int | None = None
    """The peak memory as the row's source publishes it: in use, or reserved by the allocator."""
    calibrated: float | None = None
    """Seconds: the point after calibration with another row of the chip; ``None`` without one."""
    exposed: float | None = None
    """Seconds spent waiting for collectives."""
    reason: str | None = None
    """Why there is no program."""
    assumptions: tuple[str, ...] = ()
    """Assumptions where the source gives no value."""
    uncounted: tuple[str, ...] = ()
    """Ops that are in no figure."""

    @property
    def error(self) -> float | None:
        """The relative error of the point estimate: 0.1 is 10 % too long."""
        if self.point is None or self.measured is None:
            return None
        return self.point / self.measured - 1

    @property
    def is_within(self) -> bool:
        """Whether the measured step lies in the interval."""
        if self.low is None or self.upper is None or self.measured is None:
            return False
        return self.low <= self.measured <= self.upper

    @property
    def is_below(self) -> bool:
        """Whether the measured step is below the lower bound."""
        return self.lower is not None and self.measured is not None and self.measured < self.lower

    @property
    def memory_error(self) -> float | None:
        """The relative error of the peak memory against the published one."""
        published = self.row.peak_bytes
        if self.peak_bytes is None or published is None:
            return None
        return self.peak_bytes / published - 1

    def record(self) -> dict[str, Any]:
        """Return it as plain data: seconds, bytes and shares."""
        return {
            "row": self.row.number,
            "name": self.row.name,
            "chip": self.row.chip,
            "held_out": self.row.is_held_out,
            "columns": self.row.columns,
            "measured_seconds": self.measured,
            "lower_seconds": self.lower,
            "point_seconds": self.point,
            "upper_seconds": self.upper,
            "exposed_seconds": self.exposed,
            "error": self.error,
            "calibrated_seconds": self.calibrated,
            "peak_bytes": self.peak_bytes,
            "memory_error": self.memory_error,
            "not_built": self.reason,
            "not_modelled": self.row.notes,
            "assumed": list(self.assumptions),
            "uncounted": list(self.uncounted),
        }


@dataclass(frozen=True)
class Summary:
    """Errors of the rows with a common property."""

    name: str
    """The property, such as ``tpu-v6e``."""
    half: str
    """``all``, ``held out`` or ``other``."""
    rows: int
    """The number of rows, including those without a program."""
    costed: int
    median: float | None
    """The median absolute error of the costed rows."""
    p90: float | None
    """The 90th percentile of the absolute errors."""
    bias: float | None
    """The median of the signed errors."""
    within: int
    """How many measured steps are within the interval."""
    below: int
    """How many are below the lower bound."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(vars(self))


def check_jax() -> None:
    """Check that programs can be rebuilt.

    Raises:
        LoweringError: jax is not installed (``lowering``).
    """
    if importlib.util.find_spec("jax") is None:
        raise LoweringError(
            Diagnostic(
                "lowering",
                "programs of measured steps are rebuilt in JAX, which is not installed",
                "pip install 'shardcore[jax]', on Python 3.11 or later",
            )
        )


def costed(
    rows: Sequence[Row],
    progress: Callable[[str, float], None] | None = None,
    *,
    calibrates: bool = False,
) -> Iterator[Line]:
    """Rebuild and cost ``rows``, one after the other; if it ``calibrates``, also with the shares of
    each chip calibrated with its first row that is not held out.

    Raises:
        LoweringError: jax is not installed (``lowering``).
    """
    check_jax()
    table = _Table(_calibrated(rows) if calibrates else {})
    for place, row in enumerate(rows):
        if progress is not None:
            progress(row.name, place / len(rows))
        yield table.line(row)


class _Table:
    """The costed programs; rows that differ only in the measurement share one."""

    def __init__(self, products: Mapping[str, Mapping[str, float]]) -> None:
        self._known: dict[str, tuple[Cost, Cost | None]] = {}
        self._products = products
        """The calibrated shares of products, by chip."""

    def line(self, row: Row) -> Line:
        from shardcore.bench.rebuilt import NotBuiltError, training_of

        measured = measured_seconds(row)
        try:
            run = training_of(row)
        except NotBuiltError as refused:
            return Line(row, measured, reason=str(refused))
        cost, calibrated = self._costs(row, run)
        assumed = [] if row.columns["remat"] else ["nothing is recomputed"]
        if any(kind.experts for kind in run.model.kinds):
            assumed.append("experts get equally many tokens")
        return Line(
            row,
            measured,
            cost.step_seconds_lower,
            cost.step_seconds,
            cost.step_seconds_upper,
            cost.confidence.low,
            round(cost.peak_bytes * (RESERVED if row.is_torchtitan else 1)),
            None if calibrated is None else calibrated.step_seconds,
            cost.exposed_seconds,
            assumptions=(*row.assumed, *assumed),
            uncounted=tuple(f"{each.name}: {each.reason}" for each in cost.uncounted),
        )

    def _costs(self, row: Row, run: Training) -> tuple[Cost, Cost | None]:
        """The cost of a row, and that after calibration."""
        key = repr((run, row.chip, row.columns["topology"], row.columns["slices"]))
        if key not in self._known:
            program = _program(run, row.chip)
            chip = chip_of(row, run, program)
            measurement = _measurement(row, program, chip)
            cost, calibrated = measurement.cost(chip), None
            if row.chip in self._products:
                shares = replace(chip.achieved, products=self._products[row.chip])
                calibrated = measurement.cost(replace(chip, achieved=shares))
            self._known[key] = cost, calibrated
        return self._known[key]


def _calibrated(rows: Sequence[Row]) -> dict[str, Mapping[str, float]]:
    """The shares of products of each chip of ``rows``, calibrated with its first row that has a
    program and is not held out."""
    from shardcore.bench.rebuilt import NotBuiltError, training_of
    from shardcore.costs.calibrate import calibrate

    found: dict[str, Mapping[str, float]] = {}
    wanted = {row.chip for row in rows}
    for row in read_rows():
        if row.chip not in wanted or row.chip in found or row.is_held_out:
            continue
        try:
            run = training_of(row)
        except NotBuiltError:
            continue
        program = _program(run, row.chip)
        chip = chip_of(row, run, program)
        fit = calibrate([_measurement(row, program, chip)], chip)
        found[row.chip] = fit.chip.achieved.products
    return found


def _program(run: Training, chip: str) -> Partitioned:
    """The program of one device of ``run``, as the compiler for ``chip`` makes it."""
    from shardcore.bench.step import lower
    from shardcore.costs.compilers import compiler_of
    from shardcore.partition.counted import local_program

    compiler = compiler_of(hardware(chip, CHIPS_FILE), None)
    return local_program(lower(run).propagate().result, "xla", compiler=compiler)


def _measurement(row: Row, program: Partitioned, chip: Hardware) -> Measurement:
    """``row`` as a measurement of ``program``, whose devices lie where those of the row are."""
    from shardcore.costs.measurements import Measurement

    slices = int(row.columns["slices"] or 1) if chip.is_torus else None
    options = {"topology": row.columns["topology"] or None, "slices": slices}
    return Measurement(row.name, program, measured_seconds(row) or 0.0, options)


def chip_of(
    row: Row,
    run: Training,
    program: Partitioned | None = None,
    hardware_file: Path = CHIPS_FILE,
) -> Hardware:
    """Return the chip of ``row``, which overlaps collectives as libraries do for such a run.
    Without its ``program`` the host launches all kernels of an eager run."""
    chip = hardware(row.chip, hardware_file)
    if run.platform == "tpu":
        from shardcore.bench.kernels import with_attention

        by_sums = SUMMED in row.options
        chip = with_attention(chip, run)
        in_products = chip.achieved.steps_in_products and not by_sums
        shares = replace(chip.achieved, gathers_by_sums=by_sums, steps_in_products=in_products)
        return replace(chip, achieved=shares)
    if not run.by_hand and not row.is_torchtitan:
        return chip
    shares = replace(
        chip.achieved, overlaps_network=True, splits_collectives=run.splits_collectives
    )
    if row.is_torchtitan and run.time_axis is not None:
        shares = replace(shares, kernels=shares.kernels / RING)
    if run.eager:
        share = launched_share(program, chip, run.graphs) if program is not None else 1.0
        start = share * LAUNCH_SECONDS + (1 - share) * shares.op_seconds
        shares = replace(shares, op_seconds=start, group_seconds=LAUNCH_SECONDS)
    return replace(chip, achieved=shares)


def measured_seconds(row: Row) -> float | None:
    """Return the seconds of the measured step of ``row``.

    If the source gives FLOP/s only, they are the model FLOPs of a step divided by these. Attention
    counts as non-causal for MaxText, which counts it so, and as causal for others.
    """
    if row.columns["step_s"]:
        return float(row.columns["step_s"])
    from shardcore.bench.rebuilt import NotBuiltError, model_of

    try:
        model = model_of(row)
    except NotBuiltError:
        return None
    time = row.number_of("seq")
    tokens = row.number_of("global_batch") * time // row.number_of("chips")
    causal = "maxtext" not in row.columns["source"]
    flops = model.step_flops(tokens, time, causal=causal)
    return flops / (float(row.columns["tflops_per_chip"]) * 1e12)


def summary(name: str, half: str, found: Iterable[Line]) -> Summary:
    """Return the errors of the lines ``found``."""
    known = list(found)
    errors = [line.error for line in known if line.error is not None]
    sizes = sorted(map(abs, errors))
    return Summary(
        name,
        half,
        len(known),
        len(errors),
        median(sizes) if sizes else None,
        sizes[math.ceil(0.9 * len(sizes)) - 1] if sizes else None,
        median(errors) if errors else None,
        sum(line.is_within for line in known),
        sum(line.is_below for line in known),
    )


SIZES = (16, 128, 512)
"""The numbers of chips that separate the groups of runs by size."""


def summaries(found: Sequence[Line]) -> dict[str, list[Summary]]:
    """Return the errors in total and by chip, for each half; by family, type and size, for all;
    and after calibration, for the half that is held out."""
    halves = {
        "all": list(found),
        "other": [line for line in found if not line.row.is_held_out],
        "held out": [line for line in found if line.row.is_held_out],
    }
    by_chip = [
        summary(chip, half, [line for line in own if line.row.chip == chip])
        for chip in dict.fromkeys(line.row.chip for line in found)
        for half, own in halves.items()
    ]
    keys: dict[str, Callable[[Line], str]] = {
        "family": lambda line: line.row.family,
        "type": lambda line: line.row.dtype,
        "chips": lambda line: _size(line.row.number_of("chips")),
    }
    calibrated = [
        replace(line, point=line.calibrated)
        for line in halves["held out"]
        if line.calibrated is not None
    ]
    chips = _grouped(calibrated, lambda line: line.row.chip)
    return {
        "half": [summary("all", half, own) for half, own in halves.items()],
        "chip": by_chip,
        "calibrated": [
            summary(name, "held out", own) for name, own in [("all", calibrated), *chips] if own
        ],
        **{
            key: [summary(name, "all", own) for name, own in _grouped(found, of)]
            for key, of in keys.items()
        },
    }


def _grouped(found: Sequence[Line], key: Callable[[Line], str]) -> Iterable[tuple[str, list[Line]]]:
    names = sorted(set(map(key, found)))
    return [(name, [line for line in found if key(line) == name]) for name in names]


def _size(chips: int) -> str:
    limit = next((limit for limit in SIZES if chips <= limit), None)
    return f"more than {SIZES[-1]}" if limit is None else f"at most {limit:4}"
