"""Gradients and states of optimizers that lack an axis of their parameter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from shardcore.diagnose.findings import Finding, first_of
from shardcore.diagnose.layouts import best
from shardcore.diagnose.places import LARGE_BYTES, warning
from shardcore.session.paths import steps
from shardcore.units import format_bytes

if TYPE_CHECKING:
    from shardcore._core import Op, Port, Result, TensorSharding, Value


def state_findings(result: Result, ops: Iterable[Op]) -> list[Finding]:
    """Return findings about values that are sharded over less than the argument whose gradient,
    state or next value they seem to be.

    Such a value has the shape of the argument and, on each dim, some of its axes. Results of the
    program and of loops are compared with all arguments, arguments with those that end with the
    same path, as ``opt_state.mu['w']`` and ``params['w']`` do.
    """
    found = sorted(_lacking(result, ops), key=lambda each: -each.size)
    return first_of(found)


def _lacking(result: Result, ops: Iterable[Op]) -> Iterator[Finding]:
    arguments = [port for port in result.arguments() if port.shape and _axes(port.sharding)]
    by_shape: dict[tuple[int | None, ...], list[Port]] = {}
    for port in arguments:
        by_shape.setdefault(port.shape or (), []).append(port)
    returned = set[str]()
    loops: list[Value] = []
    for op in ops:
        if op.name == "stablehlo.while":
            loops += [value for value in op.results if not value.manual_axes]
        elif op.name == "func.return" and op.function == "main":
            returned.update(value.qualified_name for value in op.operands)
    values: list[tuple[str, Port | Value, list[Port], str | None]] = []
    for port in result.arguments():
        twins = [each for each in by_shape.get(port.shape or (), ()) if _is_state(port, each)]
        values.append((port.label or port.name, port, twins, None))
    for port in result.results():
        same = by_shape.get(port.shape or (), [])
        named = [each for each in same if _is_state(port, each)]
        # Of results that are replicated it is said where that begins.
        twins = named or (same if _axes(port.sharding) else [])
        values.append((port.label or port.name, port, twins, None))
    for value in loops:
        if value.qualified_name not in returned:
            same = by_shape.get(value.shape or (), [])
            values.append((value.qualified_name, value, same, value.location))
    for name, each, twins, location in values:
        parameter = _parameter(each, twins)
        if parameter is not None:
            yield _finding(name, each, parameter, location)


def _is_state(port: Port, parameter: Port) -> bool:
    """Whether the path of ``port`` ends as that of ``parameter`` does after its first step."""
    if port.name == parameter.name or not port.label or not parameter.label:
        return False
    own, other = steps(port.label), steps(parameter.label)
    tail = other[1:] or other
    return own[-len(tail) :] == tail and len(own) > len(tail)


def _axes(sharding: TensorSharding | None) -> tuple[tuple[str, ...], ...]:
    """The axes of each dim; empty if no dim has any."""
    if sharding is None:
        return ()
    dims = tuple(tuple(map(str, dim.axes)) for dim in sharding.dims)
    return dims if any(dims) else ()


def _parameter(value: Port | Value, twins: list[Port]) -> Port | None:
    """Which of ``twins`` has all axes of a large ``value`` and more; ``None`` if one is like it."""
    if (value.bytes_per_device or 0) < LARGE_BYTES or not twins:
        return None
    own = _axes(value.sharding) or ((),) * len(value.shape or ())
    known = [(twin, _axes(twin.sharding)) for twin in twins]
    if any(axes == own for _, axes in known):
        return None
    more = [
        twin
        for twin, axes in known
        if all(set(some) <= set(all_) for some, all_ in zip(own, axes, strict=True))
    ]
    return min(more, key=lambda twin: twin.bytes_per_device or 0, default=None)


def _finding(name: str, value: Port | Value, parameter: Port, location: str | None) -> Finding:
    sharding = parameter.sharding
    assert sharding is not None
    own = {axis for axes in _axes(value.sharding) for axis in axes}
    missing = [axis for axes in _axes(sharding) for axis in axes if axis not in own]
    axes = " and ".join(missing)
    other = parameter.label or parameter.name
    size, less = value.bytes_per_device or 0, parameter.bytes_per_device or 0
    message = (
        f"{name} is not sharded over {axes} as {other} of the same shape is: a device holds "
        f"{format_bytes(size)} of it, and {format_bytes(less)} of {other}"
    )
    diagnostic = warning("lacks-axis", message, "", name, location)
    edits = [(name, sharding)]
    return Finding(diagnostic, lambda trial, most: best(edits, trial, most), size, needs_edit=True)
