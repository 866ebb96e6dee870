"""The best plan of each other kind of parallelism, and why it lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardcore.plan.answer import Alternative
from shardcore.plan.kinds import KINDS, Meanings
from shardcore.plan.roles import Role
from shardcore.plan.trials import Trial, Trials
from shardcore.units import format_bytes, format_seconds, plural

_NOISE = 1e-9
"""Relative differences of step times below this are rounding."""


def alternatives(
    trials: Trials,
    best: Trial,
    roles: Sequence[Role],
    meanings: Meanings,
    given: Trial | None,
) -> Iterator[Alternative]:
    """Yield the program's own plan, then the best plan of each kind other than that of ``best``,
    the best first.
    """
    if given is not None:
        yield _alternative("given", given, best, {})
    first: dict[str, Trial] = {}
    for trial in sorted(trials.all, key=lambda trial: trial.rank):
        if trial.row.error is None:
            first.setdefault(meanings.kind_of(trial, roles), trial)
    own = meanings.kind_of(best, roles)
    others = [(trial.rank, KINDS.index(kind), kind, trial) for kind, trial in first.items()]
    for _, _, kind, trial in sorted(others, key=lambda each: each[:2]):
        if kind != own:
            yield _alternative(kind, trial, best, trials.edit(trial.shardings))


def _alternative(kind: str, trial: Trial, best: Trial, specs: dict[str, str]) -> Alternative:
    return Alternative(kind, trial.mesh, specs, trial.row, _reason(trial, best))


def _reason(trial: Trial, best: Trial) -> str:
    """Why ``trial`` was not chosen."""
    row, other = trial.row, best.row
    if row.error is not None:
        return f"refused: {row.error.message}"
    if not trial.fits:
        return f"does not fit: {format_bytes(trial.rank[0])} too much"
    if trial.rank[1] == best.rank[1]:
        if trial.rank[:3] == best.rank[:3]:
            return "as good"
        is_slower = (row.serial_seconds or 0.0) > (other.serial_seconds or 0.0)
        return "the step is longer" if is_slower else "sends more bytes"
    if trial.rank[1] < best.rank[1]:
        if trial.mesh.num_devices != best.mesh.num_devices:
            return f"better, over {plural(trial.mesh.num_devices, 'device')}"
        return "better: it has annotations that are not tried"
    ops = (row.compute_seconds or 0.0) - (other.compute_seconds or 0.0)
    sent = (row.comm_seconds or 0.0) - (other.comm_seconds or 0.0)
    parts = [("ops", ops), ("collectives", sent)]
    least = _NOISE * (other.serial_seconds or 0.0)
    longer = [f"{what} {format_seconds(more)} longer" for what, more in parts if more > least]
    if longer and trial.rank[1] > best.rank[1]:
        return ", ".join(longer)
    if trial.step() > best.step() and (row.peak_bytes or 0) <= (other.peak_bytes or 0):
        return f"the step is {trial.step() / best.step() - 1:.1%} longer"
    return f"peak {format_bytes((row.peak_bytes or 0) - (other.peak_bytes or 0))} higher"
