"""The change of the user's files that applies a plan, with what the step costs as changed.

A line of code may do more than the plan says: it constrains every value that it computes, where the
function is called several times, and the gradient of each. So the changed files are run, and what
the step costs then is compared with the plan. Of several ways to constrain values, the first is
taken with which the step costs what the plan says, or else the one with which it costs least.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardcore import entry_point
from shardcore._core import Module
from shardcore.errors import ShardcoreError
from shardcore.plan.patch import FREE, LINES, Changed, changed
from shardcore.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from shardcore.costs import Cost
    from shardcore.plan.answer import Plan
    from shardcore.signature import Signature

_SAME = 1e-9
"""Steps that differ by no more than this share are the same; it is rounding of sums."""


@dataclass(frozen=True)
class _Applied:
    """A change, and the cost of the step with it."""

    changed: Changed
    cost: Cost

    def is_as_planned(self, plan: Plan) -> bool:
        """Whether the step costs what the plan says."""
        is_same = math.isclose(self.cost.step_seconds, plan.cost.step_seconds, rel_tol=_SAME)
        return is_same and self.cost.peak_bytes == plan.cost.peak_bytes

    def rank(self, plan: Plan) -> tuple[bool, float]:
        """The lower, the better: what fits comes first, then the fastest."""
        return self.cost.peak_bytes > plan.limit, self.cost.step_seconds


def patch(plan: Plan, file: str | None, function: str | None) -> str:
    """Return the diff; see :meth:`shardcore.Plan.patch`.

    Raises:
        OSError, LoweringError: as there.
    """
    signature = _signature(plan, file, function)
    first = changed(plan, file, function, signature)
    if first.entry is None or plan.pipeline is not None or plan.kept is not None:
        return _said(first.left) + first.diff()
    assert file is not None
    found: list[_Applied] = []
    fails = ""
    for constrain in (LINES, FREE, None) if plan.constraints else (LINES,):
        each = first if constrain == LINES else changed(plan, file, function, signature, constrain)
        try:
            applied = _Applied(each, _cost(plan, file, each))
        except ShardcoreError as error:
            fails = f"{each.entry} fails as changed: {error.message}"
            continue
        found.append(applied)
        if applied.is_as_planned(plan):
            break
    if not found:
        return _said([fails, *first.left]) + first.diff()
    best = next(
        (each for each in found if each.is_as_planned(plan)),
        min(found, key=lambda each: each.rank(plan)),
    )
    return _said([*_figures(plan, best), *best.changed.left]) + best.changed.diff()


def _signature(plan: Plan, file: str | None, function: str | None) -> Signature | None:
    if file is not None and function is not None:
        return entry_point.signature(file, function)
    own = getattr(plan.program, "signature", None)
    return None if own is None else own()


def _cost(plan: Plan, file: str, change: Changed) -> Cost:
    """The cost of the step with ``change``.

    Raises:
        LoweringError: the changed file makes no program (``lowering``).
    """
    assert change.entry is not None
    sources = {path: new for path, (_, new) in change.texts.items()}
    text = entry_point.program_text(file, change.entry, sources)
    session = Module.parse(text).session()
    return session.cost(plan.cost.hardware, **plan.cost_options)


def _figures(plan: Plan, best: _Applied) -> list[str]:
    """What the step costs, in words."""
    step, peak = format_seconds(best.cost.step_seconds), format_bytes(best.cost.peak_bytes)
    name = best.changed.entry
    if best.is_as_planned(plan):
        return [f"{name}: step {step}, peak {peak}, as planned"]
    more_time = best.cost.step_seconds / plan.cost.step_seconds - 1
    more_memory = best.cost.peak_bytes / plan.cost.peak_bytes - 1
    said = f"step {step} ({more_time * 100:+.2g}%), peak {peak} ({more_memory * 100:+.2g}%)"
    return [f"{name}: {said}, against the plan: no lines constrain just the values that it does"]


def _said(lines: Iterable[str]) -> str:
    return "".join(f"# {line}\n" for line in lines)
