"""Annotations that XLA completes as Shardy does, with state that keeps its sharding.

Where an argument or a result has no annotation, propagation decides, and where axes conflict the
order of ops decides that. XLA inlines calls and gives ops another order before it propagates, so
that a port may be sharded otherwise there than the plan says. And a result that takes the memory of
an argument is refused by XLA if its shards have another size. Both are said by annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardcore._core import AxisRef, Port, Result
from shardcore.plan.layouts import Dims
from shardcore.plan.roles import Role, donated
from shardcore.plan.trials import Stop, Trial, Trials, dims_of

_ONE_BY_ONE = 4
"""The annotations that are added one after the other, as others may follow; then all at once."""
_ROUNDS = 8


def settled(trials: Trials, best: Trial, roles: Sequence[Role]) -> Trial:
    """Return ``best`` with the annotations of roles that are not settled without.

    What is not settled when the time is up stays.
    """
    current = best
    for count in range(_ROUNDS):
        wanted = dict(_unsettled(trials, current, roles))
        if not wanted:
            break
        if count < _ONE_BY_ONE:
            largest = max(wanted, key=lambda index: (roles[index].bytes, -index))
            wanted = {largest: wanted[largest]}
        more = (wanted.get(index, dims) for index, dims in enumerate(current.shardings))
        try:
            [current] = trials.run(current.mesh, [tuple(more)])
        except Stop:
            break
    return current if current.fits or not best.fits else best


def _unsettled(trials: Trials, trial: Trial, roles: Sequence[Role]) -> Iterator[tuple[int, Dims]]:
    """The roles that need an annotation, by number, and which."""
    completed = trials.session(trial).result
    result: Result = completed if isinstance(completed, Result) else completed.result
    in_xla = result._ports_as_xla()
    arguments, results = result.arguments(), result.results()
    numbers = {
        (name, role.what == "argument"): index
        for index, role in enumerate(roles)
        for name in role.members
    }

    def free(port: Port, is_argument: bool) -> int | None:
        """The role of ``port``, if it has no annotation."""
        index = numbers.get((port.label or port.name, is_argument))
        return index if index is not None and trial.shardings[index] is None else None

    for is_argument, ports, others in (
        (True, arguments, in_xla.arguments()),
        (False, results, in_xla.results()),
    ):
        for port, other in zip(ports, others, strict=True):
            index = free(port, is_argument)
            if index is not None and _axes(port) != _axes(other):
                yield index, dims_of(port, roles[index])
    for port in arguments:
        number = donated(port)
        if number is None or _axes(port) == _axes(results[number]):
            continue
        index = free(results[number], is_argument=False)
        if index is not None:
            yield index, dims_of(port, roles[index])
        elif (index := free(port, is_argument=True)) is not None:
            yield index, dims_of(results[number], roles[index])


def _axes(port: Port) -> list[tuple[AxisRef, ...]]:
    """The axes of each dim, without those dims at the end that have none."""
    dims = [dim.axes for dim in port.sharding.dims] if port.sharding else []
    while dims and not dims[-1]:
        dims.pop()
    return dims
