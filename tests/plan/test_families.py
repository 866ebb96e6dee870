"""Plans over numbers of devices that are no powers of two, for programs with paths and without."""

from __future__ import annotations

import math

import pytest

jax = pytest.importorskip("jax")

import shardcore  # noqa: E402
import shardcore.jax  # noqa: E402
from shardcore import Module, PlanError  # noqa: E402

from tests.deep import IS_DEEP, sampled_pairs  # noqa: E402
from tests.plan.families import FAMILIES  # noqa: E402
from tests.plan.ports import unlike  # noqa: E402

CHIP = "tpu-v5e"


@pytest.mark.parametrize("devices", [6, 12, 16] if IS_DEEP else [12])
@pytest.mark.parametrize(("name", "has_paths"), sampled_pairs(FAMILIES, [True, False], 4))
def test_a_plan_is_as_good_as_the_usual_annotations_over_any_mesh(
    name: str, devices: int, has_paths: bool
) -> None:
    function, arguments, donated, annotations = FAMILIES[name]()
    step = jax.jit(function, donate_argnums=() if donated is None else donated)
    named = shardcore.jax.lower(step, *arguments, platform="cpu")
    usual, leanest = math.inf, math.inf
    for size in (size for size in range(1, devices + 1) if devices % size == 0):
        session = named.session(mesh={"d": devices // size, "m": size})
        session.set(annotations)
        cost = session.cost(CHIP)
        if cost.peak_bytes < leanest:
            usual, leanest = cost.serial_seconds, cost.peak_bytes
    program = named if has_paths else Module.parse(step.lower(*arguments).as_text())
    # Within the memory of the leanest of the usual annotations.
    plan = shardcore.plan(program, CHIP, leanest, devices=devices, seconds=120)
    assert plan.value <= usual * 1.0001
    assert plan.bound <= plan.value
    assert len(plan.specs) <= 12
    assert unlike(plan) == []


def test_no_limit_well_below_the_least_memory_is_met() -> None:
    function, arguments, _, _ = FAMILIES["mixture"]()
    # Of a program without its function: otherwise layers are computed anew, which takes less.
    program = Module.parse(jax.jit(function).lower(*arguments).as_text())
    least = shardcore.plan(program, CHIP, devices=8, minimize="memory").value
    with pytest.raises(PlanError, match="no plan that was found takes less than"):
        shardcore.plan(program, CHIP, int(least * 0.97), devices=8)
