"""Finds the values that a name in the expectations denotes.

The possibilities are tried in this order: the name of an argument or result in the user's program,
``params['w']`` or ``result['loss']``; its name in the module, ``%arg0`` or ``result 0``; a pattern
of names in the user's program, ``params['layers'][*]['w']`` (see :mod:`shardcore.session.paths`); a
value of the entry function, ``%12``; a value of another function, ``@f %12``; the values of ops
with this location, ``loc("name")``; the values of a source line, ``model.py:42``; another spelling
of a path, ``params["w"]`` or ``params/w``.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from shardcore._core import Port, Result, Value
from shardcore.cached_property import cached_property
from shardcore.calculus.dtypes import canonical_dtype, is_dtype
from shardcore.calculus.mistakes import close_names
from shardcore.errors import LocationError
from shardcore.labels import line_of
from shardcore.session.paths import Pattern, is_pattern, steps

Subject = Port | Value

_PLACE = re.compile(r".+:\d+\Z")
_TYPE = re.compile(
    r"(?:(?P<file>[^/:]+)(?:/[^:]*)?:\s*)?(?P<dtype>\w+)\[(?P<sizes>[\d,\s]*)\]\s*\Z"
)
"""A type as JAX writes it, optionally after the file that computes the value, and the value's
name."""
_MAX_CLOSE = 3


class Subjects:
    """The names of one result."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._ports: dict[str, Port] = {}
        self._found: dict[str, list[Subject] | str] = {}
        ports = [*result.arguments(), *result.results()]
        # If several share a name, it denotes the first; the user's names have precedence.
        for port in ports:
            self._ports.setdefault(port.label or port.name, port)
        for port in ports:
            self._ports.setdefault(port.name, port)

    def find(self, name: str) -> list[Subject] | str:
        """The values that ``name`` denotes; a hint if there are none."""
        if name not in self._found:
            self._found[name] = self._look_up(name)
        return self._found[name]

    def _look_up(self, name: str) -> list[Subject] | str:
        if name in self._ports:
            return [self._ports[name]]
        if is_pattern(name):
            return list(self.matching(name)) or self._close(name)
        key: str | tuple[str, str] = name
        if name.startswith("@"):
            function, _, value = name.partition(" ")
            key = (function, value.strip())
        try:
            return [self._result[key]]
        except KeyError:
            pass
        named = [v for v in self._result.values() if v.location == name and not v.traceback]
        if named:
            return list(named)
        if _PLACE.match(name):
            try:
                found = [value for value in self._result.at(name) if value.shape is not None]
            except LocationError as error:
                return error.hint or error.message
            return list(found) or "the line made no tensor"
        same = [] if name.startswith(("%", "@")) else self.matching(name)
        if same:
            return list(same[:1])
        if name.startswith(("%", "@")):
            return "the program has no such value; values are numbered as it prints them"
        return self._close(name)

    def constrained(self, name: str) -> list[Value] | str:
        """The constrained values of the type at the end of ``name``, ``attentions/query:
        bfloat16[8,128]``; if the program has files, only those in a file with the name before the
        slash; a hint if there are none.
        """
        asked = _TYPE.match(name)
        if asked is None:
            return 'it is no type; write "bfloat16[8,128]" or "attentions/query: bfloat16[8,128]"'
        sizes = tuple(int(size) for size in asked["sizes"].split(",") if size.strip())
        of_type = [
            value
            for value in self._constraints
            if value.shape == sizes and _is_dtype(value.dtype, asked["dtype"])
        ]
        file = asked["file"]
        found = [value for value in of_type if file is None or _is_in(value, file)]
        if found:
            return found
        where = f" in {file}" if of_type else ""
        return f"no tensor of that type is constrained{where}"

    @cached_property
    def _constraints(self) -> list[Value]:
        """The results of the constraints in the original program."""
        ops = self._result._given().ops()
        return [op.results[0] for op in ops if op.name == "sdy.sharding_constraint" and op.results]

    def matching(self, pattern: str) -> list[Port]:
        """The arguments and results whose names in the user's program match ``pattern``."""
        compiled = Pattern(pattern)
        ports = [*self._result.arguments(), *self._result.results()]
        return [port for port in ports if port.label and compiled.matches(steps(port.label))]

    def _close(self, name: str) -> str:
        """A hint with names similar to ``name``, or with some of all names."""
        close = close_names(name, self._ports, _MAX_CLOSE)
        names = close or list(self._ports)[:_MAX_CLOSE]
        listed = ", ".join(f'"{known}"' for known in names)
        if close:
            return f"did you mean {listed}?"
        return (
            f"there is {listed}, ..." if names else "the program has neither arguments nor results"
        )


def _is_dtype(actual: str | None, asked: str) -> bool:
    if actual is None or not (is_dtype(actual) and is_dtype(asked)):
        return actual == asked
    return canonical_dtype(actual) == canonical_dtype(asked)


def _is_in(value: Value, file: str) -> bool:
    """Whether the call stack of ``value``, if it has one, contains a file called ``file``."""
    files = [line[0] for place in value.traceback if (line := line_of(place)) is not None]
    return not files or any(PurePath(name).stem == file for name in files)


def names_of(subject: Subject) -> set[str]:
    """All names that denote ``subject``."""
    if isinstance(subject, Port):
        return {subject.name} | ({subject.label} if subject.label else set())
    names = {subject.name, f"@{subject.function} {subject.name}"}
    return names | ({subject.location} if subject.location else set())


def title(subject: Subject) -> str:
    """The name of ``subject`` and its source location."""
    if isinstance(subject, Port):
        return f"{subject.label} ({subject.name})" if subject.label else subject.name
    where = f" at {subject.location}" if subject.location else ""
    return f"{subject.name}{where}"
