"""Values of a layer that can be named, by where the user's program makes them.

A value can be named in the outermost call, within the layer, that it leaves: ``y`` of
``y = norm(x, scale)`` where the layer calls ``norm``, and a value inside of ``attention`` there.
What an expression makes on the way to its value, as the exponential in a softmax, cannot. Values
that one expression makes, in a loop or in a function that is called twice, have one name.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jax.extend.core import Literal

from shardcore.jax.private import Call, calls_of
from shardcore.remat.programs import size_of
from shardcore.source_lines import Site, site

_LIBRARIES = ("/site-packages/", "/dist-packages/")
"""Folders whose files are not the user's."""
INPUTS = -1
"""The place of the arguments of a layer, where others have an equation."""
_INPUT = "layer_input"
_SMALLEST = 1 << 12
"""Values of so many times fewer bytes than the largest are not worth a name."""


@dataclass(frozen=True)
class Value:
    """Values of a layer with one name."""

    name: str
    is_given: bool
    """Whether the user's program names it already."""
    places: tuple[tuple[int, int], ...]
    """Of each the equation, and which of its results it is."""
    bytes: int
    """Bytes of one layer, of all devices."""
    primitive: str
    shape: tuple[int, ...]
    """That of the first."""
    dtype: str
    location: str | None
    """Where the user's program makes it, ``file:line:column``."""
    site: Site | None
    """The expression that makes it, if the file can be read."""
    is_input: bool = False
    """Whether it comes from the layer before, which is kept in any case, if not on the host."""

    @property
    def line(self) -> str:
        """The line of code that names it: after the assignment to a variable, or in place of the
        expression."""
        found = self.site
        if found is None:
            return f'x = checkpoint_name(x, "{self.name}")'
        if found.name is None:
            return f'checkpoint_name({found.text}, "{self.name}")'
        return f'{found.name} = checkpoint_name({found.name}, "{self.name}")'

    @property
    def type(self) -> str:
        """Element type and sizes, ``bfloat16[16,1024]``."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "is_given": self.is_given,
            "bytes": self.bytes,
            "primitive": self.primitive,
            "type": self.type,
            "location": self.location,
            "line": None if self.is_given else self.line,
        }


def values_of(layer: Any, inputs: Iterable[int]) -> tuple[Value, ...]:
    """Return the values of a layer that can be named, those with names first.

    Args:
        layer: a jaxpr.
        inputs: those of its arguments that come from the layer before.
    """
    equations = layer.eqns
    results = {atom for atom in layer.outvars if not isinstance(atom, Literal)}
    given: dict[str, list[tuple[int, int]]] = defaultdict(list)
    covered = set(results)
    for place, equation in enumerate(equations):
        if equation.primitive.name == "name":
            given[equation.params["name"]].append((place, 0))
            covered |= {*equation.outvars, *equation.invars}
    made: dict[Call, list[tuple[int, int]]] = defaultdict(list)
    paths = [calls_of(equation)[::-1] for equation in equations]
    users = _users(equations)
    for place, equation in enumerate(equations):
        for at, variable in enumerate(equation.outvars):
            if variable in covered or not size_of(variable.aval):
                continue
            where = _left(paths[place], [paths[user] for user in users.get(variable, ())])
            if where is not None:
                made[where].append((place, at))
    found = [_value(layer, name, True, places) for name, places in given.items()]
    taken = set(given)
    for at in inputs:
        variable = layer.invars[at]
        if variable in users and variable not in covered - results and size_of(variable.aval):
            name = _free(_INPUT, taken)
            taken.add(name)
            found.append(_value(layer, name, False, [(INPUTS, at)]))
    for where, places in made.items():
        primitive = equations[places[0][0]].primitive.name
        name = _free(_name(where, primitive), taken)
        taken.add(name)
        found.append(_value(layer, name, False, places, where))
    least = max((value.bytes for value in found), default=0) // _SMALLEST
    return tuple(value for value in found if value.bytes > least)


def names_of(values: Iterable[Value]) -> dict[tuple[int, int], str]:
    """Return the names of values by their places."""
    return {place: value.name for value in values for place in value.places}


def _users(equations: Iterable[Any]) -> Mapping[Any, list[int]]:
    users: dict[Any, list[int]] = defaultdict(list)
    for place, equation in enumerate(equations):
        for atom in equation.invars:
            if not isinstance(atom, Literal):
                users[atom].append(place)
    return users


def _left(path: tuple[Call, ...], others: list[tuple[Call, ...]]) -> Call | None:
    """The outermost call of ``path`` that is not among those of some other, which uses the value,
    and that is an expression of the user's; ``None`` if there is none.
    """
    first = len(path)
    for other in others:
        depth = next((n for n, call in enumerate(path) if call not in other[n : n + 1]), first)
        first = min(first, depth)
    for call in path[first:]:
        if any(each in call.file for each in _LIBRARIES):
            continue
        known = _expression(call)
        if known is not None or not os.path.exists(call.file):
            return call
    return None


def _expression(call: Call) -> Site | None:
    return site(str(call), "", call.end)


def _value(
    layer: Any,
    name: str,
    is_given: bool,
    places: list[tuple[int, int]],
    where: Call | None = None,
) -> Value:
    is_input = places[0][0] == INPUTS
    if is_input:
        variables, primitive = [layer.invars[at] for _, at in places], ""
    else:
        variables = [layer.eqns[place].outvars[at] for place, at in places]
        equation = layer.eqns[places[0][0]]
        primitive = equation.primitive.name
        where = where or next(iter(calls_of(equation)), None)
    aval = variables[0].aval
    return Value(
        name,
        is_given,
        tuple(places),
        sum(size_of(each.aval) for each in variables),
        primitive,
        tuple(aval.shape),
        str(aval.dtype),
        None if where is None else str(where),
        None if where is None else _expression(where),
        is_input,
    )


def _name(where: Call, primitive: str) -> str:
    """A name for what is made at ``where``: the variable that it is assigned to, or the op and the
    line."""
    found = _expression(where)
    if found is not None and found.name is not None:
        return found.name
    return f"{primitive}_{where.line}"


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free
