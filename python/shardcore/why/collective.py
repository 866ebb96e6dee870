"""Why a collective is there: the annotations that conflict, and the edit that removes it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shardcore.cached_property import cached_property
from shardcore.controls import in_lines
from shardcore.errors import Diagnostic, LocationError
from shardcore.why import AxisWhy, Source, of_axes, written
from shardcore.why.remedy import Remedy, Search, remedy
from shardcore.why.text import collective_tree
from shardcore.why.values import Found, find, value
from shardcore.why.whole_ops import is_for_whole_op

if TYPE_CHECKING:
    from shardcore._core import AxisRef, Explainer, Result
    from shardcore.costs.records import CollectiveCost
    from shardcore.why.trial import Trial

_COMPETING = frozenset({"taken", "replicated", "closed", "other-factor", "conflict"})
"""The reasons that say that something else on the dim keeps the axis away."""


@dataclass(frozen=True)
class Side:
    """A tensor of the op that needs a collective, and the annotation that decided its sharding."""

    value: str
    """The name of the tensor in the original program."""
    sharding: str
    """Its sharding, as ``sdy`` text."""
    source: Source
    """The annotation that decided it."""
    origin: AxisWhy | None
    """How an axis came from there; ``None`` if the annotation keeps axes away."""
    number: int | None = field(default=None, repr=False, compare=False)
    """The number of the tensor in its program; ``None`` for a result."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        origin = None if self.origin is None else self.origin.record()
        return {
            "value": self.value,
            "sharding": self.sharding,
            "source": dict(vars(self.source)),
            "axis": origin and origin["axis"],
            "dim": origin and origin["dim"],
            "chain": origin["chain"] if origin else [],
        }


@dataclass(frozen=True)
class CollectiveWhy:
    """Why a collective is there. ``str()`` is a readable tree."""

    collective: CollectiveCost
    sides: tuple[Side, ...]
    """The tensors of the op that needs it whose shardings conflict."""
    search: Search = field(repr=False, compare=False)
    """The search for :attr:`edit`."""
    is_for_whole_op: bool = False
    """Whether every device computes the whole op that needs the collective."""

    @property
    def annotations(self) -> tuple[Source, ...]:
        """The conflicting annotations, without duplicates; one if a single annotation causes it."""
        return _sources(self.sides)

    @cached_property
    def edit(self) -> Remedy | None:
        """The edit of one annotation that removes it and gives the shortest step; ``None`` if no
        tried edit removes it.

        The first access propagates and costs the program for each edit, at most
        :data:`shardcore.why.remedy.MOST_TRIALS` times.
        """
        return remedy(self.search)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        row = self.collective
        return {
            "kind": row.kind,
            "axes": list(row.axes),
            "op": row.op,
            "cause": row.cause,
            "computed_whole": self.is_for_whole_op,
            "location": row.cause_location or row.location,
            "count": row.count,
            "total_bytes": row.total_bytes,
            "total_seconds": row.total_seconds,
            "annotations": [dict(vars(source)) for source in self.annotations],
            "sides": [side.record() for side in self.sides],
            "edit": None if self.edit is None else self.edit.record(),
        }

    def _repr_html_(self) -> str:
        from shardcore.report.html import text_html

        return text_html(self)

    def __str__(self) -> str:
        return collective_tree(in_lines(self.record()))


def collective_why(row: CollectiveCost) -> CollectiveWhy:
    """Return why ``row`` is there; see :attr:`shardcore.costs.CollectiveCost.why`."""
    trial = row.trial
    if trial is None:
        message = "the program of this collective is not known: it is a copy that was pickled"
        raise LocationError(Diagnostic("unknown-location", message, "ask the Cost itself"))
    tensors, arguments = _tensors(trial, row)
    explainer = trial.result._explainer
    sides = tuple(_sides(trial.result, explainer, tensors, row.axis_refs))
    search = Search(trial, row, _sources(sides), tensors, arguments)
    return CollectiveWhy(row, sides, search, is_for_whole_op(trial.local, row))


def _sources(sides: Iterable[Side]) -> tuple[Source, ...]:
    return tuple({side.source.name: side.source for side in sides}.values())


def _tensors(trial: Trial, row: CollectiveCost) -> tuple[list[Found], list[int]]:
    """The tensors of the op that needs ``row``, and the arguments that they come from."""
    result = trial.result
    if row.cause_op is None:
        return [], []
    around = result._explainer.around(trial.local.origin, row.cause_op)
    if around is None:
        return [], []
    operands, results, returns, arguments = around
    found = [value(result, name, number) for number, name in [*operands, *results]]
    if not returns:
        return found, arguments
    # The returned values, and the program's results, which are resharded one by one.
    ports = result.results()
    pairs = [(tensor, port) for tensor, port in zip(found, ports, strict=False)]
    moved = [pair for pair in pairs if _dims(pair[0].sharding) != _dims(pair[1].sharding)]
    fits = [pair for pair in moved if str(pair[0].sharding) == row.operand_sharding]
    # If a value is computed with another sharding than propagation's, it is resharded on return.
    asked = [pair for pair in pairs if str(pair[1].sharding) == row.result_sharding]
    chosen = fits or moved or asked or pairs
    tensors = [tensor for tensor, _ in chosen]
    tensors += [
        Found(port.name, port.label, port.sharding, None, len(port.shape or ()), port.index)
        for _, port in chosen
    ]
    return tensors, arguments


def _dims(sharding: Any) -> Any:
    return None if sharding is None else tuple(dim.axes for dim in sharding.dims)


def _sides(
    result: Result, explainer: Explainer, tensors: list[Found], axes: tuple[AxisRef, ...]
) -> list[Side]:
    """The decisions behind the shardings of ``tensors``, as far as they concern ``axes``."""
    holding: list[Side] = []
    others: list[Side] = []
    for tensor in tensors:
        rows = of_axes(explainer, tensor)
        own = [row for row in rows if any(row.axis.overlaps(axis) for axis in axes)]
        holding += [_side(tensor, row) for row in own]
        if not own:
            others += _absent(result, explainer, tensor, axes)
    if holding or others:
        return [*holding, *others]
    return [_side(tensor, row) for tensor in tensors for row in of_axes(explainer, tensor)]


def _side(tensor: Found, row: AxisWhy) -> Side:
    return Side(tensor.name, str(tensor.sharding or ""), row.source, row, tensor.number)


def _absent(
    result: Result, explainer: Explainer, tensor: Found, axes: tuple[AxisRef, ...]
) -> list[Side]:
    """What keeps ``axes`` away from ``tensor``: its own annotation, or other axes."""
    own = written(result, tensor)
    if own is not None:
        return [Side(tensor.name, str(tensor.sharding or ""), own, None)]
    number, is_result = (tensor.index, True) if tensor.number is None else (tensor.number, False)
    for axis in axes:
        for dim in range(tensor.rank or 0):
            row = explainer.missing(number, is_result, dim, axis)
            if row is None or row["code"] not in _COMPETING:
                continue
            name, place, _ = row["instead"] or (*row["at"], ())
            try:
                winner = find(result, name)
            except LocationError:
                # The export removed the axis.
                continue
            won = [each for each in of_axes(explainer, winner) if each.dim == place]
            if won:
                return [_side(winner, each) for each in won]
            own = written(result, winner)
            if own is not None:
                return [Side(winner.name, str(winner.sharding or ""), own, None)]
    return []
