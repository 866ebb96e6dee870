"""Where in the user's files a value can be constrained.

A line of a file produces values where it is traced, and again where its computation is repeated for
the gradient (rematerialization); a constraint in the line applies to all of them. A value of the
backward pass has no line of its own: it is constrained together with the value of the forward pass
whose gradient it is, which the op at the same location uses or produces.

Source: how JAX names transformations in locations; https://docs.jax.dev/en/latest/jaxpr.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from shardcore._core import TensorSharding, is_installed
from shardcore.cached_property import cached_property
from shardcore.labels import line_of, without_column
from shardcore.source_lines import constraint_line, site

if TYPE_CHECKING:
    from shardcore._core import Op, Result, Value

_BACKWARD = "transpose("
_REPEATED = "rematted_computation"

_MOST_STEPS = 8
"""The most ops between a value and the value of equal shape at whose line it is constrained."""


class _Made(NamedTuple):
    """A value, and the op that computes it."""

    op: Op
    value: Value


class Lines:
    """The lines of the user's files that produce values of a program; computed when needed."""

    def __init__(self, result: Result) -> None:
        """Start for the propagated ``result``."""
        self._result = result
        self._reached: dict[str, _Made] = {}

    def reach(self, name: str, location: str | None = None) -> str | None:
        """Return, as a target of :meth:`shardcore.Session.set`, the values that a constraint in the
        user's file would affect: the values of one line, comma-separated. ``None`` if no line
        produces ``name``.

        Args:
            name: the value to shard. Names without a location, and names of ports, are returned
                unchanged.
            location: for a value of the backward pass, the location where it is used.
        """
        made = self._made.get(name)
        if made is None or name in self._ports or made.op.location is None:
            return name
        for start in self._starts(made, location):
            group = self._nearest(start)
            if group:
                target = ", ".join(each.value.qualified_name for each in group)
                self._reached[target] = group[0]
                return target
        return None

    def code(self, target: str, sharding: TensorSharding) -> tuple[str | None, str | None]:
        """Return the line of code that constrains ``target``, and its file and line; ``None`` if it
        is no value with a location in the user's program."""
        made = self._reached.get(target)
        if made is None:
            own = None if target in self._ports else self._made.get(target)
            if own is None or not _is_users(own.op.location):
                return None, None
            made = own
        from shardcore.calculus.partition_spec import spec_of, spec_text

        location = made.op.location or ""
        spec = spec_of(sharding)
        if spec is None:
            return None, without_column(location)
        # A value that the user already constrains needs a different edit.
        is_constrained = made.op.name == "sdy.sharding_constraint"
        at = None if is_constrained else site(location, made.op.name)
        line = constraint_line(at, spec_text(spec))
        return " ".join(line.split()), without_column(location)

    def _starts(self, made: _Made, location: str | None) -> Iterator[_Made]:
        """The values of the forward pass that are constrained together with ``made``, nearest
        first."""
        if self._is_forward(made.op):
            yield made
            return
        for place in dict.fromkeys((made.op.location, location)):
            for op in self._at.get(place or "", ()):
                for value in (*op.operands, *op.results):
                    known = self._made.get(value.qualified_name)
                    if known is not None and value.shape == made.value.shape:
                        yield known

    def _nearest(self, made: _Made) -> list[_Made]:
        """The values of the line that produces ``made``, or from which ``made`` is computed by ops
        that keep the shape."""
        for _ in range(_MOST_STEPS):
            group = self._groups.get(_key(made), [])
            if made in group:
                return group
            after = self._after(made) if _is_users(made.op.location) else None
            same = (each for each in made.op.operands if each.shape == made.value.shape)
            before = (self._made.get(each.qualified_name) for each in same)
            following = after or next((each for each in before if each is not None), None)
            if following is None:
                return []
            made = following
        return []

    def _after(self, made: _Made) -> _Made | None:
        """The value of equal shape that the same line computes from ``made``."""
        for op in self._users[made.value.qualified_name]:
            for value in op.results:
                if op.location == made.op.location and value.shape == made.value.shape:
                    return _Made(op, value)
        return None

    @cached_property
    def _ops(self) -> list[Op]:
        return self._result._given().ops()

    @cached_property
    def _ports(self) -> frozenset[str]:
        ports = (*self._result.arguments(), *self._result.results())
        return frozenset(name for port in ports for name in (port.name, port.label) if name)

    @cached_property
    def _made(self) -> dict[str, _Made]:
        return {value.qualified_name: _Made(op, value) for op in self._ops for value in op.results}

    @cached_property
    def _users(self) -> dict[str, list[Op]]:
        users: dict[str, list[Op]] = defaultdict(list)
        for op in self._ops:
            for value in op.operands:
                users[value.qualified_name].append(op)
        return users

    @cached_property
    def _forward(self) -> dict[str, set[str | None]]:
        """The functions that the forward pass calls, with their call sites."""
        calls: dict[str, list[Op]] = defaultdict(list)
        for op in self._ops:
            if op.name == "func.call":
                calls[op.function].append(op)
        found: dict[str, set[str | None]] = {"main": set()}
        left = ["main"]
        while left:
            for op in calls[left.pop()]:
                name = str(op.attributes["callee"]).strip("@")
                if _REPEATED in op.name_stack or _BACKWARD not in op.name_stack:
                    if name not in found:
                        left.append(name)
                    found.setdefault(name, set()).add(op.location)
        return found

    def _is_forward(self, op: Op) -> bool:
        if _REPEATED in op.name_stack:
            return True
        return _BACKWARD not in op.name_stack and op.function in self._forward

    @cached_property
    def _at(self) -> dict[str, list[Op]]:
        """The ops of the forward pass, by location in the user's files."""
        found: dict[str, list[Op]] = defaultdict(list)
        for op in self._ops:
            if _is_users(op.location) and self._is_forward(op):
                found[op.location or ""].append(op)
        return found

    @cached_property
    def _groups(self) -> dict[tuple[object, ...], list[_Made]]:
        """For each expression in the user's files all values that it produces, wherever it is
        traced; empty if their shapes differ, as in a function that casts any parameter."""
        found: dict[tuple[object, ...], list[_Made]] = defaultdict(list)
        for place, ops in self._at.items():
            for made in self._ends(place, ops):
                found[_key(made)].append(made)
        return {
            key: group
            for key, group in found.items()
            if len({made.value.shape for made in group}) == 1
        }

    def _ends(self, place: str, ops: Iterable[Op]) -> Iterator[_Made]:
        """The values that ``place`` produces but does not use itself; others are subexpressions."""
        for op in ops:
            if place in self._forward.get(op.function, ()):
                continue
            for value in op.results:
                users = self._users[value.qualified_name]
                if value.shape and not any(user.location == place for user in users):
                    yield _Made(op, value)


def _key(made: _Made) -> tuple[object, ...]:
    return made.op.location, made.op.name, len(made.value.shape or ())


def _is_users(location: str | None) -> bool:
    """Whether ``location`` is in a file outside of installed packages."""
    return location is not None and line_of(location) is not None and not is_installed(location)
