"""Fits the shares that programs achieve of a chip's peaks to measured steps (format:
``docs/cost.md``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from shardcore.calculus.achieved import Achieved
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.hardware_text import key, quoted
from shardcore.calculus.measured import ASSUMED_SPREAD, KINDS, Measured
from shardcore.calculus.mistakes import mistake
from shardcore.costs.measurements import Measurement
from shardcore.costs.program import Cost
from shardcore.errors import CalculusError

FITTED = ("products", "contention", "network", "memory", "kernels", "links")
"""The shares to fit, most important first; as many are fitted as there are measurements."""

_ROUNDS = 4
_KINDS_DIFFER = 0.08
"""How far runs of different kinds are from the estimates of a chip with the right shares."""
_MACHINES_DIFFER = 0.05
"""How far the shares of machines with the same chip are from each other. Both are root mean squares
of logarithms, of the public steps of ``docs/bench_steps.md``."""
_LOWEST, _HIGHEST = 0.05, 1.0
_LEAST_SPREAD = 0.02
"""The relative spread of repeated measurements of one step."""


@dataclass(frozen=True)
class Calibration:
    """The result of a fit."""

    chip: Hardware
    """The chip with the fitted shares."""
    before: Hardware
    rows: tuple[tuple[Measurement, Cost, Cost], ...]
    """Each measurement, with the cost before and after the fit."""

    def to_toml(self) -> str:
        """Return the fitted shares as a hardware file."""
        shares = self.chip.achieved
        products = ", ".join(f"{name} = {share:.4g}" for name, share in shares.products.items())
        chip = key(self.chip.name)
        lines = [f"[{chip}.achieved]", f"products = {{ {products} }}"]
        lines += [f"{name} = {getattr(shares, name):.4g}" for name in FITTED[1:]]
        names = ", ".join(row.name for row, *_ in self.rows if not row.held_out)
        source = quoted(f"calibrated on {names}")
        lines += ["", f"[{chip}.measured]"]
        for kind, it in self.chip.measured.items():
            figures = f"runs = {it.runs}, spread = {it.spread:.4g}, products = {it.products:g}"
            lines.append(f"{kind} = {{ {figures}, source = {quoted(it.source)} }}")
        return "\n".join([*lines, "", f"[{chip}.source]", f"achieved = {source}", ""])

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        shares = self.chip.achieved
        return {
            "hardware": self.chip.name,
            "achieved": {
                "products": dict(shares.products),
                **{name: getattr(shares, name) for name in FITTED[1:]},
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
    """Fit the shares of ``chip`` to ``runs``: least squares of the logarithms of the errors.

    One share after the other is moved to its best value, in a few rounds; with few runs only the
    first of :data:`FITTED` are fitted. Shares that no run depends on keep their values. A share
    moves the less, the more measured runs it is based on already: an error of a single run is
    mostly due to its kind, not to the chip.

    Raises:
        CalculusError: the model gives a run no time (``measurements``).
        ValueError: there is no run to fit to.
    """
    used = [run for run in runs if not run.held_out]
    if not used:
        raise ValueError("there is no measurement that is not held out")
    for run in used:
        if run.cost(chip).step_seconds == 0:
            raise mistake(
                CalculusError,
                "measurements",
                f"{run.name} takes no time on {chip.name}, whatever it achieves",
                hint="leave the run out, or give the chip the figures that bound it",
                text=run.name,
                filename="<runs>",
            )
    fitted = FITTED[: max(1, len(used))]
    stiffness = (_KINDS_DIFFER / _uncertainty(chip, used)) ** 2
    start = {name: _share(chip.achieved, name) for name in fitted}
    best = chip

    def error(candidate: Hardware) -> float:
        misses = (run.cost(candidate).step_seconds / run.step_seconds for run in used)
        total = sum(math.log(miss) ** 2 for miss in misses) / len(used)
        moved = (_share(candidate.achieved, name) / start[name] for name in fitted)
        return total + stiffness * sum(math.log(ratio) ** 2 for ratio in moved) / len(used)

    for _ in range(_ROUNDS):
        for name in fitted:
            best = _least(best, name, error)
    found = replace(best, measured=_measured(used, best, len(fitted)))
    return Calibration(found, chip, tuple((run, run.cost(chip), run.cost(found)) for run in runs))


def _uncertainty(chip: Hardware, runs: Sequence[Measurement]) -> float:
    """How far the shares of ``chip`` may be from those of the machine of ``runs``."""
    known = [chip.measured.get(KINDS[run.program.num_devices > 1]) for run in runs]
    found = (
        ASSUMED_SPREAD
        if one is None
        else math.hypot(one.spread / math.sqrt(one.runs), _MACHINES_DIFFER)
        for one in known
    )
    return max(found)


def _measured(
    runs: Sequence[Measurement], chip: Hardware, num_fitted: int
) -> Mapping[str, Measured]:
    """The errors of the runs that ``chip`` is based on, and the remaining ones of ``runs``, after a
    fit of ``num_fitted`` shares."""
    found = {}
    for kind in KINDS:
        own = [run for run in runs if KINDS[run.program.num_devices > 1] == kind]
        points = [(run, run.cost(chip).step_seconds) for run in own]
        # The model may give a held-out run no time; nothing can be learnt from that.
        misses = [(run.name, math.log(run.step_seconds / at)) for run, at in points if at > 0]
        if misses:
            # Each fitted share takes one degree of freedom.
            freedom = max(1, len(misses) - num_fitted)
            total = sum(miss * miss for _, miss in misses)
            source = f"calibrated on {', '.join(name for name, _ in misses)}"
            known = chip.measured.get(kind, Measured(0, 0.0, ""))
            if known.runs:
                freedom += known.runs
                total += known.runs * known.spread**2
                source = f"{known.source}; {source}"
            spread = max(math.sqrt(total / freedom), _LEAST_SPREAD)
            found[kind] = Measured(known.runs + len(misses), spread, source, known.products)
    return MappingProxyType({**chip.measured, **found})


def _share(shares: Achieved, name: str) -> float:
    if name == "products":
        return shares.products_of("bf16")
    # A share of 0, which contention may have, has no logarithm.
    return getattr(shares, name) or _LOWEST


def _with(chip: Hardware, name: str, share: float) -> Hardware:
    """``chip`` with another share; those of products change together for all types."""
    shares = chip.achieved
    if name != "products":
        values: dict[str, Any] = {name: share}
        return replace(chip, achieved=replace(shares, **values))
    ratio = share / shares.products_of("bf16")
    products = {each: min(old * ratio, 1.0) for each, old in shares.products.items()}
    return replace(chip, achieved=replace(shares, products={**products, "bf16": share}))


def _least(chip: Hardware, name: str, error: Callable[[Hardware], float]) -> Hardware:
    """``chip`` with the share ``name`` that minimizes the error, found by golden-section search."""
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
