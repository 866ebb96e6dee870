"""Why a value is sharded as it is: for each axis the steps from what a user annotated.

Source: the propagation that is explained; see ``rust/src/explain``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore._core import AxisRef, Explainer, Value
from shardcore.errors import Diagnostic, LocationError
from shardcore.why.text import tree
from shardcore.why.values import Found, find

if TYPE_CHECKING:
    from shardcore._core import Result

__all__ = ["AxisWhy", "Source", "Step", "Why", "why"]


@dataclass(frozen=True)
class Source:
    """An annotation that an axis comes from."""

    name: str
    """What is annotated, in the program given: ``"%arg3"``, ``"result 0"``, ``"%12"``."""
    kind: str
    """``argument``, ``result``, ``constraint``, ``group``, ``op`` or ``manual``."""
    label: str | None
    """The path of an argument or result in the user's program."""
    location: str | None
    """The source line."""
    sharding: str
    """The annotation, as ``sdy`` text."""


@dataclass(frozen=True)
class Step:
    """One tensor gets an axis from another one."""

    from_value: str
    """The tensor that had it."""
    value: str
    """The tensor that gets it."""
    op: str
    """The op that passes it on, ``"stablehlo.add"``."""
    line: str | None
    """The source line of the op."""
    factor: str | None
    """The factor of the op's sharding rule; ``None`` where a sharding flows without one."""
    direction: str
    """``forward`` to results, ``backward`` to operands; ``both`` where that has no meaning."""
    priority: int
    """The user priority that takes part."""
    step: int
    """The op-priority step, from 0."""

    def record(self) -> dict[str, Any]:
        """Return the step as plain data."""
        record = dict(vars(self))
        return {"from": record.pop("from_value"), **record}


@dataclass(frozen=True)
class AxisWhy:
    """Where one axis of a value comes from."""

    axis: AxisRef
    dim: int
    source: Source
    chain: tuple[Step, ...]
    """The steps from the annotation to the value; each begins where the one before ended."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "axis": _axis_text(self.axis),
            "dim": self.dim,
            "source": dict(vars(self.source)),
            "chain": [step.record() for step in self.chain],
        }


@dataclass(frozen=True)
class Why:
    """Where the axes of a value come from. ``str()`` is a tree that a person reads."""

    value: str
    """The name of the value in the program given."""
    label: str | None
    """The path of an argument or result in the user's program."""
    sharding: str
    """The sharding of the value, as ``sdy`` text."""
    axes: tuple[AxisWhy, ...]
    """Each axis of its dims, in order."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "value": self.value,
            "label": self.label,
            "sharding": self.sharding,
            "axes": [axis.record() for axis in self.axes],
        }

    def __str__(self) -> str:
        return tree(self.record())


def why(
    result: Result, value: Value | str, axis: AxisRef | str | None = None, dim: int | None = None
) -> Why:
    """Return where the axes of ``value`` come from; see :meth:`shardcore.Result.why`."""
    found = find(result, value)
    wanted = AxisRef.parse(axis) if isinstance(axis, str) and ":" in axis else axis
    axes = _axes(result._explainer, found)
    if wanted is not None:
        ref = AxisRef(wanted) if isinstance(wanted, str) else wanted
        axes = [each for each in axes if each.axis.overlaps(ref)]
    if dim is not None:
        axes = [each for each in axes if each.dim == dim]
    if not axes and (axis is not None or dim is not None):
        where = "" if dim is None else f" on dim {dim}"
        what = "no axis" if axis is None else f"no axis {axis}"
        message = (
            f"{found.label or found.name} has {what}{where}: {found.sharding or 'no sharding'}"
        )
        raise LocationError(Diagnostic("unknown-location", message, "ask for all axes: why(value)"))
    return Why(found.name, found.label, found.sharding, tuple(axes))


def _axes(explainer: Explainer, found: Found) -> list[AxisWhy]:
    if found.number is None:
        rows: Sequence[dict[str, Any]] = explainer.of_result(found.index)
    else:
        rows = explainer.of_value(found.number)
    return [
        AxisWhy(
            AxisRef.parse(row["axis"]),
            row["dim"],
            Source(**row["source"]),
            tuple(Step(**_renamed(step)) for step in row["chain"]),
        )
        for row in rows
    ]


def _renamed(step: dict[str, Any]) -> dict[str, Any]:
    return {"from_value": step.pop("from"), **step}


def _axis_text(axis: AxisRef) -> str:
    # The calculus is not imported with the package.
    from shardcore.calculus.axes import axis_text

    return axis_text(axis)
