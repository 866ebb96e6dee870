"""Finds the op at which an axis is lost, as the root cause of several warnings.

From each value with a warning, and from the values of the longest collectives, axes are followed
upstream along the same factors to the ops whose operands have them and whose results do not
(:mod:`~.flow`). There the axis is kept, by a constraint on the result or on the line of the user's
file that computes it, and the program is propagated and costed. Warnings that then disappear follow
from that root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from shardcore._core import AxisRef, DimSharding, TensorSharding, ops_named
from shardcore.costs.longest import longest_collectives
from shardcore.diagnose.findings import Finding, starts_of
from shardcore.diagnose.flow import Flow, Loss
from shardcore.diagnose.hints import effect
from shardcore.diagnose.places import LARGE_BYTES, warning
from shardcore.errors import Diagnostic, ShardcoreError
from shardcore.labels import named_together, sharding_text
from shardcore.units import format_bytes, format_seconds
from shardcore.why import written
from shardcore.why.remedy import Edit, Remedy, keeping_shards
from shardcore.why.text import edit_text

if TYPE_CHECKING:
    from shardcore._core import Result
    from shardcore.why.trial import Trial

MOST_TRIED = 6
"""How many ops are tried."""

_LEAST_GAIN = 0.05
"""A root must reduce step time times peak memory by at least this share."""


_ALONE_GAIN = 0.2
"""The least share if no warning disappears, but collectives do."""

_MOST_COLLECTIVES = 4
"""How many locations, those with the longest collectives, axes are followed from."""


class Root(NamedTuple):
    """An op at which an axis is lost."""

    diagnostic: Diagnostic
    product: float
    """Step time times peak memory with the axis kept, relative to before."""
    follows: frozenset[tuple[str, str | None, str | None]]
    """The keys of the warnings that then disappear."""


def key(found: Diagnostic) -> tuple[str, str | None, str | None]:
    """Return a key that identifies a warning before and after an edit."""
    return found.code, found.value, found.location


def root_of(
    found: Sequence[Finding],
    trial: Trial,
    again: Callable[[Result, Trial], Sequence[Finding]],
    most: int = MOST_TRIED,
) -> Root | None:
    """Return the op at which keeping an axis saves most and makes warnings of ``found`` disappear;
    ``None`` if there is none.

    Args:
        found: the warnings.
        trial: the program as it is.
        again: finds the warnings of another propagated program.
        most: how many ops are tried.
    """
    best: tuple[float, Loss, Remedy, Result] | None = None
    tried = set[tuple[str, str]]()
    for loss in _losses(found, trial):
        edit = _keeping(loss, trial)
        if edit is None or (edit[0], str(edit[1])) in tried:
            continue
        if len(tried) == most:
            break
        tried.add((edit[0], str(edit[1])))
        remedy, result = _tried(edit, trial)
        if remedy is not None and result is not None:
            product = remedy.product(trial.cost)
            # Of equals the first, to which most warnings lead.
            if product <= 1 - _LEAST_GAIN and (best is None or product < best[0] - _LEAST_GAIN / 5):
                best = product, loss, remedy, result
    if best is None:
        return None
    product, loss, remedy, result = best
    left = {key(each.diagnostic) for each in again(result, trial.of(result))}
    follows = frozenset(key(each.diagnostic) for each in found) - left
    if not follows and product > 1 - _ALONE_GAIN:
        return None
    gone = [each.diagnostic for each in found if key(each.diagnostic) in follows]
    return Root(_diagnostic(loss, remedy, trial, gone), product, follows)


def _losses(found: Sequence[Finding], trial: Trial) -> Iterator[Loss]:
    """The ops at which axes are lost; those to which most of ``found`` lead come first."""
    flow = Flow(trial.local.result.module)
    counts: Counter[tuple[str, int, str]] = Counter()
    known: dict[tuple[str, int, str], Loss] = {}
    longest = longest_collectives(trial.cost, _MOST_COLLECTIVES)
    longest = [row for row in longest if row.total_bytes >= LARGE_BYTES]
    for starts in [*(each.starts for each in found), *map(starts_of, longest)]:
        here = {
            (loss.value.qualified_name, loss.dim, loss.axis): loss
            for name, axes in starts
            for axis in axes
            for loss in flow.losses(name, axis)
        }
        counts.update(here.keys())
        known.update(here)
    # An annotated value is meant to be as it is.
    given = trial.local.result._given()
    constraints = ops_named(given, ["sdy.sharding_constraint"]) if counts else []
    constrained = {each.qualified_name for op in constraints for each in op.operands}
    for place, _ in counts.most_common():
        if place[0] not in constrained and written(trial.local.result, place[0]) is None:
            yield known[place]


def _keeping(loss: Loss, trial: Trial) -> Edit | None:
    """The annotation with which the result of ``loss`` keeps the axis."""
    value, sharding = loss.value, loss.value.sharding
    kept = sharding or loss.operand.sharding
    if kept is None or kept.mesh is None:
        return None
    mesh, rank = kept.mesh, len(value.shape or ())
    dims = [DimSharding(())] * rank if sharding is None else list(sharding.dims)
    axis = AxisRef(loss.axis)
    bare = [DimSharding([each for each in dim.axes if each.name != axis.name]) for dim in dims]
    size = (value.shape or ())[loss.dim]
    parts = axis.size_in(mesh)
    for each in bare[loss.dim].axes:
        parts *= each.size_in(mesh)
    if size is None or size % parts:
        return None
    bare[loss.dim] = DimSharding([*bare[loss.dim].axes, axis])
    target = trial.lines.reach(value.qualified_name, loss.op.location)
    if target is None:
        return None
    edit = target, TensorSharding(mesh, bare, mesh_name=kept.mesh_name)
    return next(keeping_shards(trial, [edit]), None)


def _tried(edit: Edit, trial: Trial) -> tuple[Remedy | None, Result | None]:
    try:
        result = trial.completed(*edit)
        cost = trial.of(result).cost
    except ShardcoreError:
        return None, None
    return Remedy.of(edit, trial, cost), result


def _diagnostic(
    loss: Loss, remedy: Remedy, trial: Trial, follows: Sequence[Diagnostic]
) -> Diagnostic:
    op = loss.op.name.removeprefix("stablehlo.")
    name = loss.value.qualified_name
    origin = _source(trial, loss.operand.qualified_name, loss.operand_dim, loss.axis)
    of = "" if origin is None else f", which it has from {origin},"
    message = f'"{loss.axis}"{of} is lost on dim {loss.dim} at this {op}{_winner(loss, trial)}'
    costs = [
        f"{text(-change)} {what}"
        for change, text, what in (
            (remedy.seconds, format_seconds, "of the step"),
            (remedy.peak_bytes, format_bytes, "on every device"),
        )
        if change < 0
    ]
    message += f"; {' and '.join(costs)} follow from it"
    hint = f"{edit_text(remedy.record())}: {effect(remedy, trial.cost)}"
    found = warning("axis-lost", message, hint, name, loss.op.location)
    return found._replace(follows=tuple(follows), remedy=remedy)


def _source(trial: Trial, name: str, dim: int, axis: str) -> str | None:
    """The annotation from which an axis on a dim comes."""
    try:
        rows = trial.local.result.why(name, axis, dim).axes
    except ShardcoreError:
        return None
    sources = [row.source.label or row.source.name for row in rows]
    return named_together(sources) if sources else None


def _winner(loss: Loss, trial: Trial) -> str:
    """The axes that the result has instead."""
    for dim, there in enumerate(() if loss.value.sharding is None else loss.value.sharding.dims):
        if any(each.name == loss.axis for each in there.axes):
            source = _source(trial, loss.value.qualified_name, dim, loss.axis)
            by = "" if source is None else f", from {source}"
            return f", whose result has it on dim {dim}{by}"
    return f", whose result is {sharding_text(str(loss.value.sharding or '')) or 'replicated'}"
