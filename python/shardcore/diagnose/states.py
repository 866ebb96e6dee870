"""Gradients and optimizer states that lack an axis of their parameter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from shardcore._core import ops_named
from shardcore.diagnose.findings import Finding, first_of
from shardcore.diagnose.places import LARGE_BYTES, warning
from shardcore.labels import REPLICATED, named_together, sharding_text
from shardcore.session.paths import steps
from shardcore.units import format_bytes
from shardcore.why.layouts import best

if TYPE_CHECKING:
    from shardcore._core import Port, Result, TensorSharding, Value

_Value = TypeVar("_Value", "Port", "Value")


def state_findings(result: Result) -> list[Finding]:
    """Return findings about values that are sharded over fewer axes than the argument whose
    gradient, optimizer state or next value they seem to be.

    Such a value has the shape of the argument and, on each dim, some of its axes. Results of the
    program and of loops are compared with all arguments; arguments are compared with those whose
    paths end alike, such as ``opt_state.mu['w']`` and ``params['w']``.
    """
    found = first_of(sorted(_lacking(result), key=lambda each: -each.size))
    named = {each.diagnostic.value for each in found}
    return [*found, *_moved(result, named)]


def _moved(result: Result, named: set[str | None]) -> Iterator[Finding]:
    """Findings about results that are sharded otherwise than the arguments that they replace or are
    the gradients of, but for those ``named`` already."""
    arguments = _Arguments(port for port in result.arguments() if port.shape)
    alike: dict[tuple[tuple[tuple[str, ...], ...], ...], list[tuple[Port, Port]]] = {}
    for port in result.results():
        before = _before(port, arguments)
        own = _axes(port.sharding)
        if before is None or _axes(before.sharding) == own or port.label in named:
            continue
        alike.setdefault((_axes(before.sharding), own), []).append((before, port))
    for pairs in alike.values():
        before, port = pairs[0]
        sharding = before.sharding
        old, new = (sharding_text(str(each.sharding or "")) for each in (before, port))
        inputs, outputs = (
            named_together([each.label or each.name for each in ports])
            for ports in zip(*pairs, strict=True)
        )
        message = (
            f"{outputs} {'are' if pairs[1:] else 'is'} sharded as {new or REPLICATED}, and "
            f"{inputs} of the same {'paths' if pairs[1:] else 'path'} as {old or REPLICATED}: what "
            "takes both reshards one of them, and a next step is compiled again"
        )
        hint = "give jax.jit out_shardings like its in_shardings"
        name = port.label or port.name
        target = ", ".join(each.name for _, each in pairs) if pairs[1:] else name
        edits = [(target, sharding)] if sharding else []
        found = warning("output-moved", message, hint, name, None)
        yield Finding(found, partial(best, edits))


def _before(port: Port, arguments: _Arguments) -> Port | None:
    """The argument whose next value ``port``, a result, is: the one whose memory it takes, or that
    of the same shape whose path ends as its own does, but for the first step."""
    donated = arguments.donated.get(str(port.index))
    if donated is not None and _is_alike(donated, port):
        return donated
    named = (each for each in arguments.of_state(port) if _is_alike(each, port) and _is_named(each))
    return max(named, key=lambda each: len(steps(each.label or "")), default=None)


def _is_alike(port: Port, other: Port) -> bool:
    return (port.shape, port.dtype) == (other.shape, other.dtype)


class _Arguments:
    """The arguments of a program by the ends of their paths."""

    def __init__(self, ports: Iterable[Port]) -> None:
        self._of_tail: dict[tuple[str, ...], list[tuple[int, Port]]] = {}
        self.donated: dict[str, Port] = {}
        """Those whose memory a result takes, by the number of the result; the first of several."""
        for at, port in enumerate(ports):
            result = port.attributes.get("tf.aliasing_output", "").partition(" ")[0]
            if result:
                self.donated.setdefault(result, port)
            if port.label:
                path = steps(port.label)
                self._of_tail.setdefault(path[1:] or path, []).append((at, port))

    def of_state(self, port: Port) -> list[Port]:
        """Return, in order, those whose path without its first step ends that of ``port``."""
        path = steps(port.label or "")
        tails = (self._of_tail.get(path[start:], ()) for start in range(1, len(path)))
        found = sorted((each for tail in tails for each in tail), key=lambda each: each[0])
        return [each for _, each in found if each.name != port.name]


def _lacking(result: Result) -> Iterator[Finding]:
    arguments = [port for port in result.arguments() if port.shape and _axes(port.sharding)]
    parameters = _Arguments(arguments)
    by_shape: dict[tuple[int | None, ...], list[Port]] = {}
    for port in arguments:
        by_shape.setdefault(port.shape or (), []).append(port)
    returned = set[str]()
    loops: list[Value] = []
    for op in ops_named(result._legalized(), ["stablehlo.while", "func.return"]):
        if op.name == "stablehlo.while":
            loops += [value for value in op.results if not value.manual_axes]
        elif op.function == "main":
            returned.update(value.qualified_name for value in op.operands)
    values: list[tuple[str, Port | Value, list[Port], str | None]] = []
    for port in _large(result.arguments()):
        twins = [each for each in parameters.of_state(port) if each.shape == port.shape]
        values.append((port.label or port.name, port, twins, None))
    for port in _large(result.results()):
        named = [each for each in parameters.of_state(port) if each.shape == port.shape]
        # Of results that are replicated it is said where that begins.
        is_sharded = _axes(port.sharding)
        twins = named or (by_shape.get(port.shape or (), []) if is_sharded else [])
        values.append((port.label or port.name, port, twins, None))
    for value in _large(loops):
        if value.qualified_name not in returned:
            same = by_shape.get(value.shape or (), [])
            values.append((value.qualified_name, value, same, value.location))
    for name, each, twins, location in values:
        parameter = _parameter(each, twins)
        if parameter is not None:
            yield _finding(name, each, parameter, location)


def _large(values: Iterable[_Value]) -> list[_Value]:
    return [value for value in values if (value.bytes_per_device or 0) >= LARGE_BYTES]


def _is_named(port: Port) -> bool:
    """Whether the path of ``port`` has more than numbers after its first step."""
    return any(not step.strip("[]").isdecimal() for step in steps(port.label or "")[1:])


def _axes(sharding: TensorSharding | None) -> tuple[tuple[str, ...], ...]:
    """The axes of each dim; empty if no dim has any."""
    if sharding is None:
        return ()
    dims = tuple(tuple(map(str, dim.axes)) for dim in sharding.dims)
    return dims if any(dims) else ()


def _parameter(value: Port | Value, twins: list[Port]) -> Port | None:
    """Which of ``twins`` has all axes of ``value`` and more; ``None`` if one is like it."""
    if not twins:
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
