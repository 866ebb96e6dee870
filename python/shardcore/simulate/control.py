"""Control flow and calls. If predicates differ between devices, branches run separately."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from shardcore.simulate.registry import op
from shardcore.simulate.run import Run
from shardcore.simulate.site import Body, Kernel, Site
from shardcore.simulate.values import Array, Value, fitted, merged, rows

Captured = Mapping[int, Value]

MOST_STEPS = 1 << 16
"""How many iterations of a loop are simulated at most."""


def _on(captured: Captured, index: Array) -> dict[int, Value]:
    return {place: rows(value, index) for place, value in captured.items()}


def _returned(found: Sequence[Value], site: Site) -> Value:
    return found[0] if len(site.op.results) == 1 else found


@op("stablehlo.while")
def while_(site: Site) -> Kernel:
    """A body that runs while a condition holds."""
    condition, body = site.bodies

    def loop(run: Run, state: list[Value], captured: Captured) -> list[Value]:
        steps = 0
        while True:
            steps += 1
            if steps > MOST_STEPS:
                raise site.unsupported(
                    f"{site.name} has not ended after {MOST_STEPS} steps",
                    "loops with more steps, and endless ones, are not simulated",
                )
            [goes_on] = run.call(condition, state, captured)
            if goes_on.all():
                state = run.call(body, state, captured)
                continue
            if not goes_on.any():
                return state
            active, done = np.flatnonzero(goes_on), np.flatnonzero(~goes_on)
            inner, own = run.subset(active), _on(captured, active)
            left = loop(inner, inner.call(body, [rows(value, active) for value in state], own), own)
            return [
                merged([(done, rows(old, done)), (active, new)], len(run.devices))
                for old, new in zip(state, left, strict=True)
            ]

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        return _returned(loop(run, list(operands), captured), site)

    return kernel


def _branches(site: Site, pick: Callable[[Array], Array]) -> Kernel:
    """The kernel of an op whose branch index ``pick`` computes from its first operand."""
    bodies: list[Body] = site.bodies

    def kernel(run: Run, *values: Value) -> Value:
        (predicate, *_), captured = site.split(values)
        chosen = pick(predicate)
        first = int(chosen[0])
        if (chosen == first).all():
            return _returned(run.call(bodies[first], [], captured), site)
        found = []
        for branch in np.unique(chosen):
            index = np.flatnonzero(chosen == branch)
            results = run.subset(index).call(bodies[branch], [], _on(captured, index))
            found.append([(index, result) for result in results])
        columns = zip(*found, strict=True)
        return _returned([merged(list(column), len(run.devices)) for column in columns], site)

    return kernel


@op("stablehlo.if")
def if_(site: Site) -> Kernel:
    """One of two branches."""
    return _branches(site, lambda predicate: np.where(predicate, 0, 1))


@op("stablehlo.case")
def case(site: Site) -> Kernel:
    """One of several branches; the last one if the index is out of range."""
    last = len(site.bodies) - 1

    def pick(index: Array) -> Array:
        return np.where((index < 0) | (index > last), last, index)

    return _branches(site, pick)


def call_function(site: Site, name: str) -> Kernel:
    """A call of function ``name``; its body is prepared at the first call."""

    def kernel(run: Run, *operands: Value) -> Value:
        body = site.function(name)
        if body is None:
            message = f"there is no function @{name} with a body"
            raise site.error("unknown-symbol", message, None)
        return _returned(run.call(body, operands), site)

    return kernel


@op("func.call")
def call(site: Site) -> Kernel:
    """A call."""
    return call_function(site, site.attributes["callee"])


@op("stablehlo.composite")
def composite(site: Site) -> Kernel:
    """The decomposition of a composite op."""
    return call_function(site, site.attributes["decomposition"])


@op("chlo.scan")
def scan(site: Site) -> Kernel:
    """A body that runs for each index along a dim, on a slice of each input and on carried
    values."""
    dim = site.integer("dimension")
    is_reverse = bool(site.attributes.get("is_reverse", False))
    [body] = site.bodies
    count, carried = site.integers("operandSegmentSizes")
    outputs = site.results[: len(site.results) - carried]
    length = [*site.operands[:count], *outputs][0].shape[dim]

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        inputs, state = operands[:count], list(operands[count:])
        found: list[list[Array]] = []
        for at in reversed(range(length)) if is_reverse else range(length):
            slices = [x.take(at, axis=dim + 1) for x in inputs]
            returned = run.call(body, [*slices, *state], captured)
            found.append(returned[: len(returned) - len(state)])
            state = returned[len(returned) - len(state) :]
        columns = zip(*(found[::-1] if is_reverse else found), strict=True)
        stacked = [np.stack(fitted(column), axis=dim + 1) for column in columns]
        empty = [np.empty((1, *kind.shape), kind.dtype) for kind in outputs]
        return _returned([*(stacked if length else empty), *state], site)

    return kernel


@op("sdy.named_computation")
def named_computation(site: Site) -> Kernel:
    """A body that runs once."""
    [body] = site.bodies

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        return _returned(run.call(body, operands, captured), site)

    return kernel
