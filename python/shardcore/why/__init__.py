"""Why a value is sharded as it is: for each axis the propagation steps from a user's annotation.

Source: the propagation that is explained; see ``rust/src/explain``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore._core import AxisRef, Explainer, Value
from shardcore.controls import in_lines
from shardcore.errors import Diagnostic, LocationError
from shardcore.expected import expect, expect_all
from shardcore.units import plural
from shardcore.why.text import WHY_NOT, absence, tree
from shardcore.why.values import Found, find

if TYPE_CHECKING:
    from shardcore._core import Result

__all__ = ["WHY_NOT", "AxisWhy", "Source", "Step", "Why", "WhyNot", "why", "why_not"]


@dataclass(frozen=True)
class Source:
    """An annotation from which an axis comes."""

    name: str
    """The name of the annotated port or value in the original program: ``"%arg3"``, ``"result
    0"``."""
    kind: str
    """``argument``, ``result``, ``constraint``, ``group``, ``op`` or ``manual``."""
    label: str | None
    """The path of an argument or result in the user's program."""
    location: str | None
    """The source line of the annotation."""
    sharding: str
    """The annotation, as ``sdy`` text."""


@dataclass(frozen=True)
class Step:
    """A propagation step: a tensor gets an axis from another tensor."""

    from_value: str
    """The tensor that already has the axis."""
    value: str
    """The tensor that gets the axis."""
    op: str
    """The op that propagates it, such as ``"stablehlo.add"``."""
    line: str | None
    """The source line of the op."""
    factor: str | None
    """The factor of the op's sharding rule; ``None`` if it propagates without a rule."""
    direction: str
    """``forward`` to results, ``backward`` to operands; ``both`` if neither applies."""
    priority: int
    """The user priority of the propagation round."""
    step: int
    """The op-priority step, from 0."""

    def record(self) -> dict[str, Any]:
        """Return the step as plain data."""
        record = dict(vars(self))
        return {"from": record.pop("from_value"), **record}


@dataclass(frozen=True)
class AxisWhy:
    """The origin of one axis of a value."""

    axis: AxisRef
    dim: int
    source: Source
    chain: tuple[Step, ...]
    """The steps from the annotation to the value; each starts where the previous one ended."""

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
    """The origins of the axes of a value. ``str()`` is a readable tree."""

    value: str
    """The name of the value in the original program."""
    label: str | None
    """The path of an argument or result in the user's program."""
    sharding: str
    """The sharding of the value, as ``sdy`` text."""
    axes: tuple[AxisWhy, ...]
    """The origin of each axis of its dims, in order."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "value": self.value,
            "label": self.label,
            "sharding": self.sharding,
            "axes": [axis.record() for axis in expect_all(self.axes, AxisWhy, "axes")],
        }

    def _repr_html_(self) -> str:
        from shardcore.report.html import text_html

        return text_html(self)

    def __str__(self) -> str:
        return tree(in_lines(self.record()))


def why(
    result: Result, value: Value | str, axis: AxisRef | str | None = None, dim: int | None = None
) -> Why:
    """Return the origins of the axes of ``value``; see :meth:`shardcore.Result.why`."""
    found = find(result, value)
    axes = of_axes(result._explainer, found)
    if axis is not None:
        ref = _axis(axis)
        axes = [each for each in axes if each.axis.overlaps(ref)]
    if dim is not None:
        _check_dim(dim)
        axes = [each for each in axes if each.dim == dim]
    sharding = "" if found.sharding is None else str(found.sharding)
    if not axes and (axis is not None or dim is not None):
        if dim is not None:
            _check_rank(found, dim)
        if axis is not None:
            _check_known(result, _axis(axis))
        where = "" if dim is None else f" on dim {dim}"
        what = "no axis" if axis is None else f"no axis {axis}"
        message = f"{found.label or found.name} has {what}{where}: {sharding or 'no sharding'}"
        raise _mistake(message, "why_not(value, dim, axis) says why one is not there")
    return Why(found.name, found.label, sharding, tuple(axes))


@dataclass(frozen=True)
class WhyNot:
    """Why an axis is not on a dim of a value, as one of a fixed set of reasons."""

    code: str
    """One of :data:`shardcore.WHY_NOT`."""
    value: str
    """The name of the value in the original program."""
    label: str | None
    """The path of an argument or result in the user's program."""
    dim: int
    axis: AxisRef
    at: tuple[str, int]
    """The tensor and dim at which the axis stopped: the value, or a tensor on the way to it."""
    op: str | None
    """The op that does not propagate it; ``None`` if the tensor itself is the reason."""
    location: str | None
    """The source line of the op."""
    instead: tuple[str, int, tuple[str, ...]] | None
    """What is there instead: a tensor, its dim, and the axes of that dim."""
    is_trimmed: bool = False
    """Whether the export then removed some of these axes from an input or output."""
    winner: AxisWhy | None = None
    """The origin of the axis itself if the dim has it, else of the first axis on the dim."""
    closed_by: Source | None = None
    """The annotation that closes the dim, if that is the reason and it is on the tensor itself."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        instead, winner = self.instead, self.winner
        last = winner.chain[-1] if winner is not None and winner.chain else None
        return {
            "code": self.code,
            "value": self.value,
            "label": self.label,
            "dim": self.dim,
            "axis": _axis_text(self.axis),
            "location": self.location,
            "op": self.op,
            "at": {"value": self.at[0], "dim": self.at[1]},
            "closed_by": self.closed_by and dict(vars(self.closed_by)),
            "instead": instead
            and {
                "value": instead[0],
                "dim": instead[1],
                "axes": list(instead[2]),
                "is_trimmed": self.is_trimmed,
                "source": winner and dict(vars(winner.source)),
                "priority": last and last.priority,
                "step": last and last.step,
            },
        }

    def _repr_html_(self) -> str:
        from shardcore.report.html import text_html

        return text_html(self)

    def __str__(self) -> str:
        return absence(in_lines(self.record()))


def why_not(result: Result, value: Value | str, dim: int, axis: AxisRef | str) -> WhyNot:
    """Return why ``axis`` is not on ``dim``; see :meth:`shardcore.Result.why_not`."""
    found = find(result, value)
    ref = _axis(axis)
    _check_dim(dim)
    name = found.label or found.name
    _check_rank(found, dim)
    _check_known(result, ref)
    # A sharding on one device (`maximal`) has no dims.
    dims = () if found.sharding is None else found.sharding.dims[dim : dim + 1]
    if any(each.overlaps(ref) for there in dims for each in there.axes):
        raise _mistake(f"{_axis_text(ref)} is on dim {dim} of {name}", "ask why: result.why(value)")
    number, is_result = (found.index, True) if found.number is None else (found.number, False)
    row = result._explainer.missing(number, is_result, dim, ref)
    if row is None:
        raise _mistake(f"{name} was made by the export", "ask for what it reshards")
    instead, is_trimmed, winner = row["instead"], False, None
    if instead is not None:
        other, place, texts = instead
        axes = [AxisRef.parse(text) for text in texts]
        instead = (other, place, tuple(map(_axis_text, axes)))
        is_trimmed = _is_trimmed(result, other, place, axes)
        winner = None if is_trimmed else _winner(result, other, place, ref)
    return WhyNot(
        row["code"],
        found.name,
        found.label,
        dim,
        ref,
        tuple(row["at"]),
        row["op"],
        row["location"],
        instead,
        is_trimmed,
        winner,
        written(result, row["at"][0]) if row["code"] == "closed" else None,
    )


def written(result: Result, tensor: Found | str) -> Source | None:
    """Return the annotation on ``tensor`` itself; ``tensor`` is a name or a found value."""
    if isinstance(tensor, str):
        try:
            tensor = find(result, tensor)
        except LocationError:
            return None
    if tensor.number is not None:
        row = result._explainer.annotation(tensor.number)
        return None if row is None else Source(**row)
    ports = result._annotated()[1]
    port = ports[tensor.index] if tensor.index < len(ports) else None
    if port is None or port.sharding is None:
        return None
    return Source(port.name, "result", port.label, None, str(port.sharding))


def absences(
    result: Result, value: Value | str, axis: AxisRef | str, dim: int | None = None
) -> list[WhyNot]:
    """Return why ``axis`` is not on ``dim``, or on each dim, of ``value``; empty if it is there."""
    found = find(result, value)
    asked = range(max(found.rank or 0, 1)) if dim is None else [dim]
    sharded = () if found.sharding is None else found.sharding.dims
    ref = _axis(axis)
    for place in asked:
        for there in sharded[max(place, 0) : place + 1]:
            if any(each.overlaps(ref) for each in there.axes):
                return []
    return [why_not(result, value, place, ref) for place in asked]


def _winner(result: Result, name: str, dim: int, ref: AxisRef) -> AxisWhy | None:
    """The origin of the axes on ``dim`` of ``name``: of ``ref`` if it is there, else of the
    first."""
    try:
        found = find(result, name)
    except LocationError:
        return None
    there = [each for each in of_axes(result._explainer, found) if each.dim == dim]
    same = [each for each in there if each.axis.overlaps(ref)]
    return next(iter(same or there), None)


def _is_trimmed(result: Result, name: str, dim: int, axes: list[AxisRef]) -> bool:
    """Whether the export removed some of ``axes`` from dim ``dim`` of the tensor ``name``."""
    try:
        sharding = find(result, name).sharding
    except LocationError:
        return False
    dims = sharding.dims[dim : dim + 1] if sharding else ()
    left = [axis for there in dims for axis in there.axes]
    return any(axis not in left for axis in axes)


def _axis(axis: AxisRef | str) -> AxisRef:
    if isinstance(axis, str):
        return AxisRef.parse(axis) if ":" in axis else AxisRef(axis)
    expect(axis, AxisRef, str)
    return axis


def _check_dim(dim: object) -> None:
    if isinstance(dim, bool) or not isinstance(dim, int):
        raise TypeError(f"a dim is a number, not a {type(dim).__name__}")


def _check_rank(found: Found, dim: int) -> None:
    """Raise an error unless ``found`` has the dim."""
    if not 0 <= dim < (found.rank or 0):
        what = "no tensor" if found.rank is None else f"a tensor of {plural(found.rank, 'dim')}"
        message = f"{found.label or found.name} is {what}; it has no dim {dim}"
        raise _mistake(message, "dims count from 0")


def _check_known(result: Result, axis: AxisRef) -> None:
    """Raise an error unless a mesh of the program has ``axis``."""
    known = {name for mesh in result.module.meshes.values() for name in mesh.axis_names}
    if not known:
        hint = "annotate it: lower it with in_shardings=, or constrain a value"
        raise _mistake(f"the program has no mesh, and so no axis {axis.name}", hint)
    if axis.name not in known:
        # The calculus is imported here, as the package does not import it.
        from shardcore.calculus.mistakes import choices

        raise _mistake(f"no mesh of the program has an axis {axis.name}", choices(axis.name, known))


def _mistake(message: str, hint: str) -> LocationError:
    return LocationError(Diagnostic("unknown-location", message, hint))


def of_axes(explainer: Explainer, found: Found) -> list[AxisWhy]:
    """Return the origins of the axes of ``found``."""
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
    return axis.name if axis.is_full else f"{axis.name}:({axis.pre_size}){axis.size}"
