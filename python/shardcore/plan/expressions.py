"""The values of a program that a line of the user's can constrain.

Many ops may be at the place of one expression. Code there can constrain what the expression gives
to others, each time that it runs, and the gradient of that, with which the ops of the gradient at
this place begin. What is computed on the way to the value has no code. Where a function is called
from several places, each call is an expression too, whose ops are those of the function.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
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
    is_call: bool = False
    """Whether ops of the functions that the expression calls count as its own."""


def role(lines: Iterable[Line], classes: Sequence[int], what: str) -> Role:
    """Return the role of the values of ``lines``, whose dims have ``classes``."""
    values = dict.fromkeys(value for line in lines for value in line.values)
    shapes = [[size or 1 for size in value.shape or ()] for value in values]
    # Axes have to divide the dims of all of them.
    shape = tuple(math.gcd(*sizes) for sizes in zip(*shapes, strict=True))
    name = ", ".join(value.qualified_name for value in values)
    return Role((name,), (), shape, tuple(classes), 0, False, what)


class _Expression:
    """The ops of an expression."""

    def __init__(self, place: str, ops: Sequence[Op], is_call: bool) -> None:
        self.place, self.ops, self.is_call = place, ops, is_call
        self._known = {*ops}

    def has(self, op: Op) -> bool:
        """Whether ``op`` is one of them."""
        return op in self._known


class Expressions:
    """The expressions of the user's that a program was made of."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._expressions: dict[tuple[str, bool], _Expression] = {}

    def line(self, value: Value) -> Line | None:
        """Return the line that constrains ``value``, a result of an op; ``None`` if none does."""
        maker = self._made_by.get(value)
        if maker is None:
            return None
        location = maker.location
        if location is None:
            return Line("", maker.name, (value,), False)
        if self._is_gradient(maker):
            places = {op.location for op in self._users[value]}
            place = places.pop() if len(places) == 1 else None
            if place is None or place == location:
                return None
            return self._gradient_line(value, self._expression(place))
        return self._value_line(value, self._expression(location))

    def again(self, line: Line) -> tuple[Value, ...]:
        """Return what ``line``, of another program of the same code, constrains in this one."""
        at = self._known_at(line.location, line.is_call)
        return self._gradients(at) if line.is_gradient else self._values(at)

    def own_line(
        self, value: Value, shapes: Container[tuple[int | None, ...] | None]
    ) -> Line | None:
        """Return the innermost line that constrains ``value`` and only values of ``shapes``, else
        :meth:`line`."""
        found = (
            each for each in self.lines(value) if all(its.shape in shapes for its in each.values)
        )
        return next(found, None) or self.line(value)

    def lines(self, value: Value) -> Iterator[Line]:
        """Yield the lines that constrain ``value``, first :meth:`line`, then calls around it, which
        constrain less."""
        first = self.line(value)
        if first is not None:
            yield first
        maker = self._made_by.get(value)
        if maker is None or maker.location is None:
            return
        is_gradient = self._is_gradient(maker)
        users = self._users[value] if is_gradient else [maker]
        own = self._frames(maker)
        for frame in self._frames(users[0])[1:] if users else ():
            if is_gradient and frame in own:
                return
            of = self._gradient_line if is_gradient else self._value_line
            found = of(value, self._call(frame))
            if found is not None:
                yield found

    def incoming(self, value: Value, classes: tuple[int, ...]) -> tuple[Value, tuple[int, ...]]:
        """Return the gradient that ``value``, of a gradient, is a transpose of, which comes from
        elsewhere, and ``classes`` in the order of its dims; both as they are for other values."""
        maker = self._made_by.get(value)
        if maker is None or maker.name != _TRANSPOSE or not self._is_gradient(maker):
            return value, classes
        given = maker.operands[0]
        if not self._comes_in(given, self._expression(maker.location or "")):
            return value, classes
        order = list(maker.attributes["permutation"])
        return given, tuple(classes[order.index(dim)] for dim in range(len(order)))

    def _value_line(self, value: Value, at: _Expression) -> Line | None:
        """The line at an expression that constrains ``value``, or where ``value`` is computed on
        the way to that of the expression and has its shape, this in its stead."""
        values = self._values(at)
        is_its = value in values or value.shape in [each.shape for each in values]
        if _ranks(values) != {_rank(value)} or not is_its:
            return None
        return Line(at.place, self._made_by[values[0]].name, values, False, at.is_call)

    def _gradient_line(self, value: Value, at: _Expression) -> Line | None:
        """The line at an expression that constrains ``value`` as the gradient of another one."""
        found = self._gradients(at)
        is_its = value in found and _ranks(self._values(at)) == {_rank(value)}
        if not is_its or not all(at.has(op) for each in found for op in self._users[each]):
            return None
        op = self._made_by[self._values(at)[0]].name
        return Line(at.place, op, found, True, at.is_call)

    def _gradients(self, at: _Expression) -> tuple[Value, ...]:
        """The gradients with which those of an expression begin; none where not all have makers."""
        values = self._values(at)
        shapes = _shapes(values)
        begun = dict.fromkeys(
            operand
            for op in at.ops
            if self._is_gradient(op)
            for operand in op.operands
            if operand.shape in shapes and self._comes_in(operand, at)
        )
        made = tuple(each for each in begun if each in self._made_by)
        # What the function of a backward pass takes is the gradient, or was kept for it.
        runs = sum(_AGAIN not in self._made_by[each].name_stack for each in values)
        return made if len(made) == len(begun) or len(made) >= runs else ()

    def _comes_in(self, operand: Value, at: _Expression) -> bool:
        """Whether ``operand``, of the gradient at an expression, is a gradient from elsewhere."""
        maker = self._made_by.get(operand)
        if maker is None:
            return self._is_backward(operand.function)
        return self._is_gradient(maker) and not at.has(maker)

    def _values(self, at: _Expression) -> tuple[Value, ...]:
        """The values of an expression, in order; those on the way are left out."""
        called = {str(op.attributes["callee"]).lstrip("@") for op in at.ops if op.name == _CALL}
        made = [
            value
            for op in at.ops
            if not self._is_gradient(op) and op.function not in called
            for value in op.results
        ]
        if any(_MAPPED in self._made_by[value].name_stack for value in made):
            return ()
        users = self._users
        used = [
            value
            for value in made
            if any(not at.has(op) and op.name not in _HANDS_ON for op in users[value])
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

    def _expression(self, place: str) -> _Expression:
        """The expression at ``place``, the location of its ops."""
        return self._known_at(place, False)

    def _call(self, place: str) -> _Expression:
        """The expression at ``place``, with the ops of the functions that it calls."""
        return self._known_at(place, True)

    def _known_at(self, place: str, is_call: bool) -> _Expression:
        known = self._expressions.get((place, is_call))
        if known is None:
            ops = self._under[place] if is_call else self._at[place]
            known = self._expressions[place, is_call] = _Expression(place, ops, is_call)
        return known

    def _frames(self, op: Op) -> tuple[str, ...]:
        """The location of ``op``, followed by those of the calls that it was made in."""
        if not op.location:
            return ()
        frames = op.results[0].traceback if op.results else ()
        inside = frames.index(op.location) if op.location in frames else 0
        return (op.location, *frames[inside + 1 :])

    @cached_property
    def _under(self) -> defaultdict[str, list[Op]]:
        """The ops of each expression, with those of the functions that it calls."""
        found: defaultdict[str, list[Op]] = defaultdict(list)
        for op in self._ops:
            for frame in dict.fromkeys(self._frames(op)):
                found[frame].append(op)
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


def _shapes(values: Iterable[Value]) -> set[tuple[int | None, ...] | None]:
    return {value.shape for value in values}


def _ranks(values: Iterable[Value]) -> set[int]:
    return {_rank(value) for value in values}
