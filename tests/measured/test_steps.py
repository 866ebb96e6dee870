"""Measured steps lie in the intervals that are given for them, and none below its bound."""

from __future__ import annotations

import math

import pytest
from shardcore.calculus.hardware import hardware

from tests.deep import deep
from tests.measured.leave_one_out import CHIP, errors
from tests.measured.steps import Step, spread, steps


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.program)
def test_no_step_is_below_its_bound(step: Step) -> None:
    cost = step.cost()
    assert cost.step_seconds_lower <= step.step_seconds
    assert cost.step_seconds_lower <= cost.confidence.low <= cost.step_seconds
    assert cost.step_seconds_upper == cost.confidence.high
    assert cost.uncounted == ()


def test_intervals_hold() -> None:
    inside = [
        step.cost().confidence.low <= step.step_seconds <= step.cost().confidence.high
        for step in steps()
    ]
    assert sum(inside) >= 0.85 * len(inside)


def test_the_interval_is_at_least_that_of_the_errors() -> None:
    own = [step for step in steps() if step.chip == "h100"]
    known = hardware("h100").measured["one"]
    ratios = [step.step_seconds / step.cost().step_seconds for step in own]
    assert known.runs == len(own)
    assert spread(ratios) <= known.spread <= 0.1


@deep
def test_the_interval_is_that_of_steps_that_constants_were_not_fitted_to() -> None:
    ratios = [math.exp(left) for _, _, left in errors()]
    known = hardware(CHIP).measured["one"]
    assert len(ratios) == known.runs
    assert spread(ratios) <= known.spread <= spread(ratios) + 0.01


def test_estimates_are_near() -> None:
    misses = sorted(abs(step.cost().step_seconds / step.step_seconds - 1) for step in steps())
    assert misses[len(misses) // 2] <= 0.05
    assert misses[-1] <= 0.1


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.program)
def test_a_step_of_one_chip_takes_what_its_kernels_take(step: Step) -> None:
    cost = step.cost()
    seconds = sum(kernel.seconds * kernel.count for kernel in cost.kernels)
    assert cost.step_seconds == pytest.approx(seconds)
    assert cost.hbm_bytes == sum(kernel.bytes * kernel.count for kernel in cost.kernels)
