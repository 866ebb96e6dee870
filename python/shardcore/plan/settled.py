"""Adds annotations where XLA would propagate differently, and where donated state needs them.

For an argument or result without annotation, propagation decides; where axes conflict, the order of
ops matters. XLA inlines calls and reorders ops before it propagates, so it may shard a port
differently from the plan. Also, XLA refuses a result that reuses the memory of a donated argument
if its shards have another size. Annotations fix both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardcore._core import AxisRef, Port, Result
from shardcore.plan.layouts import Dims
from shardcore.plan.roles import Role, donated, is_within
from shardcore.plan.trials import Trial, Trials, dims_of
from shardcore.session import Session

_ONE_BY_ONE = 4
"""This many annotations are added one at a time, as they may settle others; then all at once."""
_ROUNDS = 8


def settled(trials: Trials, best: Trial, roles: Sequence[Role]) -> Trial:
    """Return ``best`` with annotations for the roles that are not settled without them.

    The time being up does not end this: what is not settled is not what runs.
    """
    current = best
    for count in range(_ROUNDS):
        wanted = dict(_unsettled(trials, current, roles))
        if not wanted:
            break
        if count < _ONE_BY_ONE and trials.fraction < 1:
            largest = max(wanted, key=lambda index: (roles[index].bytes, -index))
            wanted = {largest: wanted[largest]}
        more = [wanted.get(index, dims) for index, dims in enumerate(current.shardings)]
        for index, role in enumerate(roles):
            # Several annotations at once may be of members that propagation shards differently.
            donor = None if role.donor is None else more[role.donor]
            if more[index] is not None and donor is not None:
                more[index] = donor
        [current] = trials.run(current.mesh, [tuple(more)], is_needed=True)
    return current if current.fits or not best.fits else best


@dataclass(frozen=True)
class Mismatch:
    """A port that XLA would shard differently, or a donated buffer with another sharding."""

    port: Port
    is_argument: bool
    like: Port
    """The port whose sharding the annotation should have."""


def mismatches(session: Session, compiler: str) -> Iterator[tuple[Mismatch, ...]]:
    """Yield, for each place that is unsettled for ``compiler``, the ports of which one has to be
    annotated."""
    completed = session.result
    result: Result = completed if isinstance(completed, Result) else completed.result
    in_xla = result._as_xla(keep_ports=False, compiler=compiler)[0]
    arguments, results = result.arguments(), result.results()
    for is_argument, ports, others in (
        (True, arguments, in_xla.arguments()),
        (False, results, in_xla.results()),
    ):
        for port, other in zip(ports, others, strict=True):
            if _axes(port) != _axes(other):
                yield (Mismatch(port, is_argument, port),)
    for port in arguments:
        number = donated(port)
        if number is not None and _axes(port) != _axes(results[number]):
            next_state = results[number]
            yield Mismatch(next_state, False, port), Mismatch(port, True, next_state)


def open_ports(session: Session, compiler: str) -> set[tuple[str, bool]]:
    """Return the ports that are unsettled for ``compiler``: names, whether each is an argument."""
    return {(each.port.name, each.is_argument) for each, *_ in mismatches(session, compiler)}


def _unsettled(trials: Trials, trial: Trial, roles: Sequence[Role]) -> Iterator[tuple[int, Dims]]:
    """The roles that lack a needed annotation, by number, and that annotation."""
    numbers = {
        (name, role.what in ("argument", "states")): index
        for index, (role, dims) in enumerate(zip(roles, trial.shardings, strict=True))
        if not is_within(role, roles) or dims is not None
        for name in role.members
    }
    for choices in mismatches(trials.session(trial), trials.compiler):
        for choice in choices:
            name = choice.port.label or choice.port.name
            index = numbers.get((name, choice.is_argument))
            if index is not None and trial.shardings[index] is None:
                yield index, dims_of(choice.like.sharding, roles[index])
                break


def _axes(port: Port) -> list[tuple[AxisRef, ...]]:
    """The axes of each dim, without trailing dims that have none."""
    dims = [dim.axes for dim in port.sharding.dims] if port.sharding else []
    while dims and not dims[-1]:
        dims.pop()
    return dims
