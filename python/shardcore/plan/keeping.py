"""What layers keep for the backward pass, chosen with the shardings and the stages.

A lowered step is traced anew with layers that keep something else, and the program is costed with
the shardings of a plan. Shardings are searched with layers that keep nothing; what fits into the
memory then is filled by the search of :mod:`shardcore.remat`.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardcore._core import TensorSharding
from shardcore.errors import LoweringError, PlanError
from shardcore.plan import bounds
from shardcore.plan.answer import Alternative, Plan
from shardcore.plan.carried import carried
from shardcore.plan.objective import Wanted
from shardcore.plan.planner import Planner
from shardcore.plan.program import Program, read
from shardcore.plan.reading import Reading
from shardcore.session import Evaluation, Session

if TYPE_CHECKING:
    from shardcore.remat.answer import Trial
    from shardcore.remat.choices import Setting
    from shardcore.remat.loss import Program as Loss
    from shardcore.remat.step import Step

_VALUES = ("%", "@")
"""What the names of values begin with."""
Figures = tuple[float, float, float]
"""Seconds of a step, and bytes at the peak of a device and of its host."""
_LEAN_SHARE = 0.7
"""The part of the time that is left in which shardings are searched for layers that keep
nothing."""
_FINAL_SHARE = 0.85
"""The part of the time after which nothing else is tried that layers may keep."""
_WORTH = 0.999
"""A plan with other policies is taken if its step is below this part of that without."""


class _Late(Exception):  # noqa: N818 - it is no error
    """The time is up."""


@dataclass(frozen=True, eq=False)
class Kept:
    """What the layers of a step keep."""

    step: Step
    setting: Setting

    @property
    def policies(self) -> dict[str, str]:
        """What each stack of layers keeps, in words."""
        from shardcore.remat.choices import label
        from shardcore.remat.code import stack_text

        stacks = self.step.layers.stacks
        return {
            stack_text(stack): label((runs,))
            for stack, runs in zip(stacks, self.setting, strict=True)
        }

    def code(self) -> str:
        """Return the policies as code, with what to write in the program as comments."""
        from shardcore.remat.code import commented

        layers = self.step.layers
        return commented(layers.stacks, self.setting, layers.used(self.setting))

    def wrapped(self, layer: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function that a scan runs, which keeps what is chosen."""
        return self.step.layers.wrapped(layer, self.setting)


class Keeping:
    """Programs of one step whose layers keep something."""

    def __init__(self, reading: Reading, wanted: Wanted, step: Step) -> None:
        self._reading, self._wanted, self._step = reading, wanted, step

    @staticmethod
    def of(reading: Reading, wanted: Wanted) -> Keeping | None:
        """Return those of the program that was read; ``None`` where what layers keep cannot be
        changed: it is no function of JAX, differentiates no loss, or has no layers."""
        source = reading.program.source
        if wanted.minimize not in ("time", "step") or not hasattr(source, "anew"):
            return None
        from shardcore.remat.step import Step

        try:
            return Keeping(reading, wanted, Step(source))
        except (LoweringError, PlanError):
            return None

    @property
    def leanest(self) -> Setting:
        """What keeps least on the device: nothing."""
        return self._uniform("nothing_saveable")

    @property
    def recomputes(self) -> bool:
        """Whether the layers of the program as it is compute something anew."""
        whole, given = self._step.lowered(self._uniform("none")), self._step.given
        return whole.module.num_ops != given.module.num_ops

    def _uniform(self, policy: str) -> Setting:
        from shardcore.remat.choices import Choice, uniform

        return uniform(Choice(policy), [stack.count for stack in self._step.layers.stacks])

    def program(self, setting: Setting | None) -> Program:
        """Return the program whose layers keep what ``setting`` says; ``None`` is as it is."""
        own = self._reading.program
        return own if setting is None else read(self._step.lowered(setting), own.keep)

    def session(self, setting: Setting | None, of: Session) -> Session:
        """Return a session of that program with the annotations of another."""
        [mesh] = of.module.meshes.values()
        return self.program(setting).session(mesh)._copy(self._known(setting, of))

    def _known(self, setting: Setting | None, of: Session) -> dict[str, TensorSharding]:
        """The annotations of ``of`` but for those of values that the program does not have."""
        ports = {name: at for name, at in of.annotations.items() if not name.startswith(_VALUES)}
        values = {name: at for name, at in of.annotations.items() if name.startswith(_VALUES)}
        if not values:
            return ports
        # Constraints are ops at the lines of what they constrain.
        given = of._copy(dict.fromkeys(of.annotations)).module
        return ports | carried(values, given, self.program(setting).module)

    def best(
        self, figures: Callable[[Setting | None], Figures], limit: float, seconds: float
    ) -> Setting | None:
        """Return what is fastest for layers to keep within ``limit``; ``None`` if nothing fits.

        Args:
            figures: says what the program takes.
            limit: bytes of a device.
            seconds: the time after which the best so far is returned.
        """
        from shardcore.remat.search import Search
        from shardcore.remat.trials import Trials

        host = self._wanted.limits.host_memory or math.inf
        programs = _Programs(self._step.layers, figures, time.monotonic() + seconds)
        trials: Trials | None = None
        with contextlib.suppress(_Late):
            trials = Trials(programs, self._wanted.chip, (limit, host), seconds, None)
            Search(trials).run()
        best = None if trials is None else trials.best
        return None if best is None else best.setting

    def plan(self, setting: Setting, of: Session, seconds: float) -> Plan:
        """Return the plan of that program with the annotations of ``of``, whatever it takes."""
        [mesh] = of.module.meshes.values()
        wanted = replace(
            self._wanted, meshes=(mesh,), limit=math.inf, seconds=max(seconds, 1e-3), progress=None
        )
        reading = Reading(self.program(setting), wanted)
        planner = Planner(reading, wanted)
        plan = planner.plan_of(planner.trial(mesh, reading.by_role(self._known(setting, of))))
        return replace(plan, kept=Kept(self._step, setting), limit=self._wanted.limit)

    def planned(self, whole: Plan | None) -> Plan | None:
        """Return a plan whose layers keep something else, if it is faster than ``whole``."""
        wanted, start = self._wanted, time.monotonic()
        left = wanted.seconds - (start - self._reading.start)
        if left <= 0:
            return None
        lean = replace(wanted, seconds=left * _LEAN_SHARE)
        try:
            found = Planner(Reading(self.program(self.leanest), lean), lean).plan()
        except PlanError as error:
            # What takes least is said where nothing fits.
            if error.code != "does-not-fit" or whole is None:
                raise
            return None

        def figures(setting: Setting | None) -> Figures:
            cost = self.session(setting, found.session).cost(wanted.chip, **wanted.counting)
            # Copies to and from the host are in the step alone.
            return cost.step_seconds, cost.peak_bytes, cost.host_memory_peak_bytes

        left -= time.monotonic() - start
        setting = self.best(figures, wanted.limit, left * _FINAL_SHARE)
        plans = [replace(found, kept=Kept(self._step, self.leanest))]
        if setting is not None and setting != self.leanest:
            left = wanted.seconds - (time.monotonic() - self._reading.start)
            plans.append(self.plan(setting, found.session, left))
        fitting = [each for each in plans if each.cost.peak_bytes <= wanted.limit]
        best = min(fitting, key=lambda each: each.step_seconds, default=None)
        if best is None or (whole is not None and best.step_seconds >= whole.step_seconds * _WORTH):
            return None
        others = () if whole is None else (_as_it_is(whole, best), *whole.alternatives)
        return replace(best, alternatives=others or found.alternatives)


def without_stages(reading: Reading, wanted: Wanted) -> Plan:
    """Return the best plan without stages, with layers that keep something else where nothing is
    likely to fit otherwise, or where something faster does not.

    Raises:
        PlanError: nothing fits (``does-not-fit``).
    """
    if bounds.likely_bytes(reading.alone, reading.ports, wanted.meshes) > wanted.limit:
        keeping = Keeping.of(reading, wanted)
        found = keeping and keeping.planned(None)
        return found or Planner(reading, wanted).plan()
    whole = refused = None
    try:
        planner = Planner(reading, wanted)
        whole = planner.plan()
    except PlanError as error:
        if error.code != "does-not-fit":
            raise
        refused = error
    keeping = None
    if whole is None or (whole.stopped == "done" and planner.has_faster(whole.value)):
        keeping = Keeping.of(reading, wanted)
    found = (keeping and keeping.planned(whole)) or whole
    if found is None:
        assert refused is not None
        raise refused
    return found


class _Programs:
    """Programs for the search of what layers keep."""

    def __init__(
        self, program: Loss, figures: Callable[[Setting | None], Figures], end: float
    ) -> None:
        self.program = program
        self._figures, self._end = figures, end

    def trial(self, setting: Setting | None) -> Trial:
        from shardcore.remat.answer import Trial

        if time.monotonic() > self._end:
            raise _Late
        step, peak, host = self._figures(setting)
        return Trial(setting, step, int(peak), int(host))


def _as_it_is(whole: Plan, best: Plan) -> Alternative:
    cost = whole.cost
    figures = Evaluation(
        {},
        step_seconds=cost.step_seconds,
        serial_seconds=cost.serial_seconds,
        compute_seconds=cost.compute_seconds,
        comm_seconds=cost.comm_seconds,
        peak_bytes=cost.peak_bytes,
    )
    reason = f"the step is {whole.step_seconds / best.step_seconds - 1:.1%} longer"
    return Alternative(f"{whole.kind}, as written", whole.mesh, dict(whole.specs), figures, reason)
