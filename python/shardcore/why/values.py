"""Finds the value that a user asks about."""

from __future__ import annotations

from dataclasses import dataclass

from shardcore._core import Result, TensorSharding, Value
from shardcore.errors import Diagnostic, LocationError
from shardcore.expected import expect


@dataclass(frozen=True)
class Found:
    """A value, or a result of the entry function, that a name denotes."""

    name: str
    """Its name in the original program."""
    label: str | None
    """Its path in the user's program."""
    sharding: TensorSharding | None
    number: int | None
    """The number of the value; ``None`` for a result."""
    rank: int | None
    """Its rank; ``None`` if it is no ranked tensor."""
    index: int = 0
    """The index of the result."""


def find(result: Result, asked: Value | str) -> Found:
    """Return the value or result that ``asked`` denotes in ``result``.

    Raises:
        LocationError: nothing has that name, or several values do (``unknown-location``).
        TypeError: ``asked`` is neither a value nor a name, or ``result`` is no result.
    """
    expect(result, Result)
    explainer = result._explainer
    if isinstance(asked, Value):
        number = explainer.number(asked)
        if number is None:
            message = f"{asked.name} is a value of another program"
            raise LocationError(Diagnostic("unknown-location", message, "give its name"))
        return value(result, asked.qualified_name, number)
    if not isinstance(asked, str):
        raise TypeError(f"a value is a Value or a name, not a {type(asked).__name__}")
    name = asked.strip()
    if not name.startswith(("%", "@")):
        port = result.module._ports.find(asked)
        number = None if port is None else explainer.find(port.name)
        if port is not None and number is not None and port.name.startswith("%"):
            return value(result, port.name, number)
        if port is not None:
            rank = None if port.shape is None else len(port.shape)
            return Found(port.name, port.label, port.sharding, None, rank, port.index)
    number = explainer.find(name)
    if number is None:
        hint = "give the path of an argument or result, or the name of a value, %12"
        if not name.startswith(("%", "@")):
            near = result.module._ports.near(name)
            hint = f"did you mean {', '.join(near)}?" if near else hint
        message = f"the completed program has no value {asked}"
        raise LocationError(Diagnostic("unknown-location", message, hint))
    return value(result, asked.strip(), number)


def value(result: Result, name: str, number: int) -> Found:
    """Return the value with the number ``number`` and the name ``name``."""
    found = result._explainer.describe(number)
    sharding, rank, label = found or (None, None, None)
    return Found(name, label, sharding, number, rank)
