"""Finds a small set of annotations from which propagation gives the same plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from shardcore.plan.layouts import spec
from shardcore.plan.roles import Role, is_within, wholes
from shardcore.plan.settled import open_ports
from shardcore.plan.trials import Shardings, Stop, Trial, Trials
from shardcore.session.paths import MANY, Pattern, steps

Accepts = Callable[[Trial, Trial], bool]
"""Whether a trial may take the place of another."""


def fewest(
    trials: Trials,
    best: Trial,
    roles: Sequence[Role],
    accepts: Accepts = Trial.is_as_good_as,
) -> Trial:
    """Remove annotations of roles that propagation implies, the smallest arguments first.

    When the time is up, the remaining annotations stay.
    """
    current = _without_next_states(trials, best, roles, accepts)
    if any(each is not None for each in wholes(roles)):
        current = _with_states(trials, current, roles, accepts)
    for index in sorted(range(len(roles)), key=lambda index: roles[index].bytes):
        if current.shardings[index] is None:
            continue
        fewer = (*current.shardings[:index], None, *current.shardings[index + 1 :])
        try:
            [trial] = trials.run(current.mesh, [fewer])
            if accepts(trial, current):
                trial = trials.confirmed(trial)
        except Stop:
            break
        if accepts(trial, current):
            current = trial
    return current


def _with_states(trials: Trials, best: Trial, roles: Sequence[Role], accepts: Accepts) -> Trial:
    """``best`` with parameters sharded as their states are, if that is as good."""
    fewer = list(best.shardings)
    for number, whole in enumerate(wholes(roles)):
        if whole is not None and fewer[number] is not None:
            fewer[whole], fewer[number] = fewer[number], None
    trial = _confirmed(trials, best, tuple(fewer), accepts)
    return trial if accepts(trial, best) else best


def _without_next_states(
    trials: Trials, best: Trial, roles: Sequence[Role], accepts: Accepts
) -> Trial:
    """``best`` without the annotations of next states, if these cost nothing and save nothing."""
    fewer = tuple(
        None if role.donor is not None else dims
        for role, dims in zip(roles, best.shardings, strict=True)
    )
    trial = _confirmed(trials, best, fewer, accepts)
    return trial if accepts(trial, best) and accepts(best, trial) else best


def _confirmed(trials: Trials, best: Trial, fewer: Shardings, accepts: Accepts) -> Trial:
    """The evaluation of ``fewer``, on the whole program if it may be accepted; ``best`` when the
    time is up."""
    try:
        [trial] = trials.run(best.mesh, [fewer])
        return trials.confirmed(trial) if accepts(trial, best) else trial
    except Stop:
        return best


def patterns(
    trials: Trials, best: Trial, roles: Sequence[Role], names: Sequence[str]
) -> dict[str, str]:
    """Return the annotations of ``best`` by pattern: one pattern for each role if that suffices,
    otherwise as many as are needed.

    Args:
        trials: evaluates other patterns.
        best: the plan.
        roles: the plan's roles.
        names: the paths of all arguments and results, which a pattern may match.
    """
    found = trials.edit(best.shardings)
    apart = {
        pattern
        for role, dims in zip(roles, best.shardings, strict=True)
        if dims is not None and is_within(role, roles)
        for pattern in role.patterns
    }
    own = (
        role
        if is_within(role, roles)
        else replace(role, patterns=tuple(each for each in role.patterns if each not in apart))
        for role in roles
    )
    several = [
        (role, spec(dims))
        for role, dims in zip(own, best.shardings, strict=True)
        if dims is not None and len(role.patterns) > 1
    ]
    if not several:
        return found

    is_same = same_as(trials, best, found)
    short = dict(found)
    for role, text in several:
        short = _replaced(short, role, next(_shorter(role, names)), text)
    if is_same(short):
        return short
    for role, text in several:
        for pattern in _shorter(role, names):
            if trials.fraction >= 1:
                return found
            fewer = _replaced(found, role, pattern, text)
            if is_same(fewer):
                found = fewer
                break
        else:
            for pattern in role.patterns:
                fewer = {name: other for name, other in found.items() if name != pattern}
                if trials.fraction < 1 and is_same(fewer):
                    found = fewer
    return found


def same_as(
    trials: Trials, best: Trial, found: Mapping[str, str]
) -> Callable[[Mapping[str, str]], bool]:
    """Return a test of whether other patterns give the plan of ``found``, and leave XLA no more
    freedom."""
    base = trials.with_patterns(best, found)
    base_ports = open_ports(trials.session(best, found), trials.compiler)

    def is_same(other: Mapping[str, str]) -> bool:
        return (
            trials.with_patterns(best, other).is_as_good_as(base)
            and open_ports(trials.session(best, other), trials.compiler) <= base_ports
        )

    return is_same


def _replaced(found: dict[str, str], role: Role, pattern: str, text: str) -> dict[str, str]:
    """``found`` with one pattern in place of the patterns of ``role``."""
    fewer = {name: other for name, other in found.items() if name not in role.patterns}
    return {**fewer, pattern: text}


def _shorter(role: Role, names: Sequence[str]) -> Iterator[str]:
    """Candidate patterns: each pattern of ``role``, the shortest first; then one that matches as
    much as all of them together."""
    yield from sorted(role.patterns, key=lambda pattern: (len(steps(pattern)), len(pattern)))[:2]
    joined = _joined(role.patterns)
    if joined is not None:
        mine = [Pattern(pattern) for pattern in role.patterns]
        both = Pattern(joined)
        paths = [steps(name) for name in names]
        if all(both.matches(path) == any(p.matches(path) for p in mine) for path in paths):
            yield joined


def _joined(texts: Sequence[str]) -> str | None:
    """The common first and last steps of ``texts``, with ``**`` between them."""
    parts = [steps(text) for text in texts]
    shortest = min(map(len, parts))
    first = 0
    while first < shortest and len({path[first] for path in parts}) == 1:
        first += 1
    last = 0
    while last < shortest - first and len({path[-1 - last] for path in parts}) == 1:
        last += 1
    if not last:
        return None
    path = parts[0]
    return "/".join((*path[:first], MANY, *path[len(path) - last :]))
