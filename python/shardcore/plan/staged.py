"""Shardings of a stage with their pipelines, and what an answer says of those not chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore._core import Mesh
from shardcore.pipeline import Candidate, Layers
from shardcore.plan.answer import Alternative, Plan
from shardcore.plan.planner import Planner
from shardcore.plan.trials import Trial
from shardcore.session import Evaluation
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore.remat.choices import Setting


@dataclass(frozen=True)
class Staged:
    """Shardings of a stage with the best pipeline that was found for them."""

    planner: Planner
    trial: Trial
    found: Candidate
    setting: Setting | None = None
    """What layers keep, where that is not what the program says."""

    @property
    def kind(self) -> str:
        """The kind of parallelism of a stage."""
        return self.planner.kind_of(self.trial)


@dataclass(frozen=True)
class Sharded:
    """Shardings of one of some stages."""

    planner: Planner
    trial: Trial
    stages: int
    layers: Layers
    estimate: float
    """Seconds of a step."""
    options: Mapping[str, Any]
    """Those of :func:`shardcore.cost` for the mesh of a stage."""


def alternative(each: Staged, step: float) -> Alternative:
    """Return what is said of a pipeline where the best takes ``step`` seconds."""
    from shardcore.remat.choices import label

    found = each.found
    mesh = Mesh({"stage": found.stages, **each.trial.mesh.shape})
    seconds = found.step_seconds
    figures = Evaluation(
        {}, step_seconds=seconds, serial_seconds=seconds, peak_bytes=int(found.peak_bytes)
    )
    kind = f"{each.kind}, {plural(found.stages, 'stage')}, {found.schedule}"
    if each.setting is not None:
        kind += f", {label(each.setting)}"
    reason = f"the step is {seconds / step - 1:.1%} longer; stages wait {found.timeline.bubble:.1%}"
    edit = each.planner.edit(each.trial)
    return Alternative(kind, mesh, edit, figures, reason, found.stages)


def without(whole: Plan, step: float) -> Alternative:
    """Return what is said of the best without stages."""
    cost = whole.cost
    figures = Evaluation(
        {},
        step_seconds=cost.step_seconds,
        serial_seconds=cost.step_seconds,
        compute_seconds=cost.compute_seconds,
        comm_seconds=cost.comm_seconds,
        peak_bytes=cost.peak_bytes,
    )
    reason = f"the step is {cost.step_seconds / step - 1:.1%} longer"
    kind = f"{whole.kind}, no stages"
    return Alternative(kind, whole.mesh, dict(whole.specs), figures, reason, 1)
