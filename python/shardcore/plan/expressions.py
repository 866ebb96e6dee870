"""The values of a program that a line of the user's can constrain.

Many ops may be at the place of one expression. Code there can constrain what the expression gives
to others, each time that it runs, and the gradient of that, with which the ops of the gradient at
this place begin. What is computed on the way to the value has no code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shardcore._core import Module, Op, Value
from shardcore.cached_property import cached_property
from shardcore.plan.roles import Role

_TRANSPOSED, _AGAIN, _MAPPED = "transpose(", "rematted_computation", "vmap("
"""In a name stack, what JAX writes of the backward pass, of what this computes anew, and of code
that sees arrays with fewer dims than the program has."""
_TRANSPOSE = "stablehlo.transpose"
_CALL = "func.call"
_FUNCTION = "func.func"
_HANDS_ON = ("func.return", "stablehlo.return", "stablehlo.optimization_barrier")
"""Ops whose operands are values for others, or kept for the gradient."""


@dataclass(frozen=True)
class Line:
    """What code at the place of an expression constrains."""

    location: str
    """Where the expression begins, ``file:line:column``; empty if it is not known."""
    op: str
    """The op that computes its value."""
    values: tuple[Value, ...]
    """The values that are constrained together."""
    is_gradient: bool
    """Whether they are gradients of the value."""


def role(lines: Iterable[Line], classes: Sequence[int], what: str) -> Role:
    """Return the role of the values of ``lines``, whose dims have ``classes``."""
    values = dict.fromkeys(value for line in lines for value in line.values)
    shapes = [[size or 1 for size in value.shape or ()] for value in values]
    # Axes have to divide the dims of all of them.
    shape = tuple(math.gcd(*sizes) for sizes in zip(*shapes, strict=True))
    name = ", ".join(value.qualified_name for value in values)
    return Role((name,), (), shape, tuple(classes), 0, False, what)


class Expressions:
    """The expressions of the user's that a program was made of."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def line(self, value: Value) -> Line | None:
        """Return the line that constrains ``value``, a result of an op; ``None`` if none does."""
        maker = self._made_by.get(value)
        if maker is None:
            return None
        location = maker.location
        if location is None:
            return Line("", maker.name, (value,), False)
        if self._is_gradient(maker):
            return self._gradient_line(value, location)
        values = self._values(location)
        if _ranks(values) != {_rank(value)} or (value not in values and not self._is_like(value)):
            return None
        return Line(location, self._made_by[values[0]].name, values, False)

    def incoming(self, value: Value, classes: tuple[int, ...]) -> tuple[Value, tuple[int, ...]]:
        """Return the gradient that ``value``, of a gradient, is a transpose of, which comes from
        elsewhere, and ``classes`` in the order of its dims; both as they are for other values."""
        maker = self._made_by.get(value)
        if maker is None or maker.name != _TRANSPOSE or not self._is_gradient(maker):
            return value, classes
        given = maker.operands[0]
        if not self._comes_in(given, maker.location or ""):
            return value, classes
        order = list(maker.attributes["permutation"])
        return given, tuple(classes[order.index(dim)] for dim in range(len(order)))

    def _is_like(self, value: Value) -> bool:
        """Whether ``value``, which is computed on the way to that of an expression, has its shape,
        so that this can be constrained in its stead."""
        return value.shape in [each.shape for each in self._values(value.location or "")]

    def _gradient_line(self, value: Value, made_at: str) -> Line | None:
        """The line that constrains ``value`` as the gradient of another one."""
        places = {op.location for op in self._users[value]}
        location = places.pop() if len(places) == 1 else None
        if location is None or location == made_at:
            return None
        values = self._values(location)
        if _ranks(values) != {_rank(value)}:
            return None
        shapes = {each.shape for each in values}
        begun = dict.fromkeys(
            operand
            for op in self._at[location]
            if self._is_gradient(op)
            for operand in op.operands
            if operand.shape in shapes and self._comes_in(operand, location)
        )
        is_whole = all(
            each in self._made_by and {op.location for op in self._users[each]} == {location}
            for each in begun
        )
        if value not in begun or not is_whole:
            return None
        return Line(location, self._made_by[values[0]].name, tuple(begun), True)

    def _comes_in(self, operand: Value, location: str) -> bool:
        """Whether ``operand``, of the gradient at ``location``, is a gradient from elsewhere."""
        maker = self._made_by.get(operand)
        if maker is None:
            return self._is_backward(operand.function)
        return self._is_gradient(maker) and maker.location != location

    def _values(self, location: str) -> tuple[Value, ...]:
        """The values of the expression at ``location``, in order; those on the way are left out."""
        made = [
            value
            for op in self._at[location]
            if not self._is_gradient(op) and op.function not in self._called_at[location]
            for value in op.results
        ]
        if any(_MAPPED in self._made_by[value].name_stack for value in made):
            return ()
        users = self._users
        used = [
            value
            for value in made
            if any(op.location != location and op.name not in _HANDS_ON for op in users[value])
        ]
        if used:
            return tuple(used)
        # Derivatives, which are kept for the gradient, come behind the value.
        given = [value for value in made if any(op.name in _HANDS_ON for op in users[value])]
        like = given and self._made_by[given[0]]
        return tuple(
            value
            for value in given
            if like and self._made_by[value].name == like.name and value.shape == given[0].shape
        )

    def _is_gradient(self, op: Op) -> bool:
        """Whether ``op`` is of the backward pass, and not computed anew there."""
        if _AGAIN in op.name_stack:
            return False
        return _TRANSPOSED in op.name_stack or self._is_backward(op.function)

    def _is_backward(self, function: str) -> bool:
        """Whether the ops of ``function`` are of the backward pass."""
        if function not in self._known:
            calls = self._calls[function]
            # A function may call itself.
            self._known[function] = False
            self._known[function] = bool(calls) and all(map(self._is_gradient, calls))
        return self._known[function]

    @cached_property
    def _ops(self) -> list[Op]:
        return [op for op in self._module.ops() if op.name != _FUNCTION]

    @cached_property
    def _known(self) -> dict[str, bool]:
        """Functions of which it is known whether they are of the backward pass: those that compute
        anew are, and JAX does not write it of each op there."""
        again = (op for op in self._ops if _AGAIN in op.name_stack)
        return {op.function: True for op in again if _TRANSPOSED not in op.name_stack}

    @cached_property
    def _calls(self) -> defaultdict[str, list[Op]]:
        """The calls of each function."""
        found: defaultdict[str, list[Op]] = defaultdict(list)
        for op in self._ops:
            if op.name == _CALL:
                found[str(op.attributes["callee"]).lstrip("@")].append(op)
        return found

    @cached_property
    def _called_at(self) -> defaultdict[str, set[str]]:
        """The functions that are called at each location."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for function, calls in self._calls.items():
            for op in calls:
                found[op.location or ""].add(function)
        return found

    @cached_property
    def _at(self) -> defaultdict[str, list[Op]]:
        """The ops at each location."""
        found: defaultdict[str, list[Op]] = defaultdict(list)
        for op in self._ops:
            found[op.location or ""].append(op)
        return found

    @cached_property
    def _made_by(self) -> dict[Value, Op]:
        """The op that makes each value."""
        return {value: op for op in self._ops for value in op.results}

    @cached_property
    def _users(self) -> defaultdict[Value, list[Op]]:
        """The ops that use each value."""
        found: defaultdict[Value, list[Op]] = defaultdict(list)
        for op in self._ops:
            for value in op.operands:
                found[value].append(op)
        return found


def _rank(value: Value) -> int:
    return len(value.shape or ())


def _ranks(values: Iterable[Value]) -> set[int]:
    return {_rank(value) for value in values}
