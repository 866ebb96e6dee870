"""Fits what programs achieve of a chip to measured steps; the format is in ``docs/cost.md``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shardcore import files
from shardcore._core import Module
from shardcore.calculus.achieved import Achieved
from shardcore.calculus.hardware import Hardware, hardware
from shardcore.calculus.mistakes import mistake
from shardcore.costs.build import build, partitioned
from shardcore.costs.program import Cost
from shardcore.errors import CalculusError
from shardcore.partition.partitioned import Partitioned

FITTED = ("products", "contention", "network", "memory", "kernels", "links")
"""The shares that are fitted, as many as there are measurements, those that matter most first."""

_KEYS = ("file", "step_seconds", "policy", "topology", "mapping", "slices", "dcn", "held_out")
_ROUNDS = 4
_STIFFNESS = 0.02
"""How much a share resists being moved from what it was, against the errors of the runs."""
_LOWEST, _HIGHEST = 0.05, 1.0
_MARGIN = 0.95
"""By how much the upper bound lies above the slowest run."""


@dataclass(frozen=True)
class Measurement:
    """A measured step."""

    name: str
    program: Partitioned
    step_seconds: float
    options: Mapping[str, Any]
    """Of :func:`shardcore.cost`: topology, mapping, slices, dcn."""
    held_out: bool = False
    """Whether it is compared only."""

    def cost(self, chip: Hardware) -> Cost:
        """The cost of its program on ``chip``."""
        from shardcore.calculus.collective_time import TimeOptions

        defaults: dict[str, Any] = {"topology": None, "mapping": None, "hardware_file": None}
        options = {**defaults, **self.options}
        return build(self.program, chip, self.program.policy, options=TimeOptions(), **options)


@dataclass(frozen=True)
class Calibration:
    """What was fitted."""

    chip: Hardware
    """The chip, with the shares that were fitted."""
    before: Hardware
    rows: tuple[tuple[Measurement, Cost, Cost], ...]
    """Each measurement, with the costs before and after."""

    def to_toml(self) -> str:
        """Return the shares as a hardware file."""
        shares = self.chip.achieved
        products = ", ".join(f"{name} = {share:.4g}" for name, share in shares.products.items())
        lines = [f"[{self.chip.name}.achieved]", f"products = {{ {products} }}"]
        lines += [f"{name} = {getattr(shares, name):.4g}" for name in (*FITTED[1:], "slowest")]
        names = ", ".join(row.name for row, *_ in self.rows if not row.held_out)
        source = json.dumps(f"calibrated on {names}", ensure_ascii=False)
        return "\n".join([*lines, "", f"[{self.chip.name}.source]", f"achieved = {source}", ""])

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        shares = self.chip.achieved
        return {
            "hardware": self.chip.name,
            "achieved": {
                "products": dict(shares.products),
                **{name: getattr(shares, name) for name in (*FITTED[1:], "slowest")},
            },
            "runs": [
                {
                    "name": row.name,
                    "held_out": row.held_out,
                    "measured_seconds": row.step_seconds,
                    "before_seconds": before.step_seconds,
                    "after_seconds": after.step_seconds,
                    "lower_seconds": after.step_seconds_lower,
                    "upper_seconds": after.step_seconds_upper,
                }
                for row, before, after in self.rows
            ],
        }


def calibrate(runs: Sequence[Measurement], chip: Hardware) -> Calibration:
    """Fit the shares of ``chip`` to ``runs``, by the squares of the logarithms of errors.

    One share after the other is moved to where the errors are least, a few times; with few runs
    only the first of :data:`FITTED` are. Shares that no run depends on stay as they are.

    Raises:
        ValueError: there is no run to fit to.
    """
    used = [run for run in runs if not run.held_out]
    if not used:
        raise ValueError("there is no measurement that is not held out")
    fitted = FITTED[: max(1, len(used))]
    start = {name: _share(chip.achieved, name) for name in fitted}
    best = chip

    def error(candidate: Hardware) -> float:
        misses = (run.cost(candidate).step_seconds / run.step_seconds for run in used)
        total = sum(math.log(miss) ** 2 for miss in misses) / len(used)
        moved = (_share(candidate.achieved, name) / start[name] for name in fitted)
        return total + _STIFFNESS * sum(math.log(ratio) ** 2 for ratio in moved) / len(used)

    for _ in range(_ROUNDS):
        for name in fitted:
            best = _least(best, name, error)
    slowest = min(
        (cost.step_seconds_upper * best.achieved.slowest / run.step_seconds)
        for run in used
        for cost in (run.cost(best),)
    )
    least = min(chip.achieved.slowest, max(slowest * _MARGIN, 1e-9))
    shares = replace(best.achieved, slowest=least)
    found = replace(best, achieved=shares)
    return Calibration(found, chip, tuple((run, run.cost(chip), run.cost(found)) for run in runs))


def _share(shares: Achieved, name: str) -> float:
    if name == "products":
        return shares.products_of("bf16")
    value: float = getattr(shares, name)
    return value


def _with(chip: Hardware, name: str, share: float) -> Hardware:
    """``chip`` with another share; those of products of all types change alike."""
    shares = chip.achieved
    if name != "products":
        values: dict[str, Any] = {name: share}
        return replace(chip, achieved=replace(shares, **values))
    ratio = share / shares.products_of("bf16")
    products = {each: min(old * ratio, 1.0) for each, old in shares.products.items()}
    return replace(chip, achieved=replace(shares, products={**products, "bf16": share}))


def _least(chip: Hardware, name: str, error: Callable[[Hardware], float]) -> Hardware:
    """``chip`` with the share ``name`` at which the error is least, by golden sections."""
    ratio = (math.sqrt(5) - 1) / 2
    now = _share(chip.achieved, name)
    low, high = math.log(max(now / 2, _LOWEST)), math.log(min(now * 2, _HIGHEST))

    def at(place: float) -> float:
        return error(_with(chip, name, math.exp(place)))

    left, right = high - ratio * (high - low), low + ratio * (high - low)
    errors = at(left), at(right)
    for _ in range(10):
        if errors[0] <= errors[1]:
            high, right = right, left
            left = high - ratio * (high - low)
            errors = at(left), errors[0]
        else:
            low, left = left, right
            right = low + ratio * (high - low)
            errors = errors[1], at(right)
    place = (low + high) / 2
    return _with(chip, name, math.exp(place)) if at(place) < error(chip) else chip


def read_measurements(path: str | Path, hardware_file: str | Path | None = None) -> Any:
    """Return the measurements in the file ``path``, and the chip that they are of.

    Raises:
        CalculusError: it is no such file (``measurements``), or the chip is not known.
        OSError: it, or a program that it names, cannot be read.
        ShardcoreError: a program cannot be parsed, propagated or partitioned.
    """
    text = files.read(path, files.MAX_TABLE_BYTES).decode("utf-8", "replace")

    def wrong(problem: str) -> CalculusError:
        hint = 'write {"hardware": "tpu-v5e", "runs": [{"file": "step.mlir", "step_seconds": 1.5}]}'
        name = str(path)
        return mistake(CalculusError, "measurements", problem, hint=hint, text="", filename=name)

    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise wrong(f"this is no JSON: {problem}") from None
    if not isinstance(data, dict) or not isinstance(data.get("hardware"), str):
        raise wrong("it does not say which hardware was measured")
    runs = data.get("runs")
    if not isinstance(runs, list) or not runs:
        raise wrong("it has no runs")
    chip = hardware(data["hardware"], hardware_file)
    return [_measurement(row, Path(path).parent, wrong) for row in runs], chip


def _measurement(row: Any, folder: Path, wrong: Callable[[str], CalculusError]) -> Measurement:
    if not isinstance(row, dict) or not isinstance(row.get("file"), str):
        raise wrong("a run does not name the file of its program")
    name = row["file"]
    unknown = [key for key in row if key not in _KEYS]
    if unknown:
        raise wrong(f'the run of {name} has an unknown key "{unknown[0]}"')
    seconds = row.get("step_seconds")
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 < seconds < 1e9:
        raise wrong(f"the step_seconds of {name} are no number above 0")
    module = Module.from_file(str(folder / name))
    options = {key: row[key] for key in ("topology", "mapping", "slices", "dcn") if key in row}
    local = partitioned(module, str(row.get("policy", "xla")))
    return Measurement(name, local, float(seconds), options, bool(row.get("held_out", False)))
