"""Checks the types of arguments that are first used far from the call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from shardcore.bounded import items

T = TypeVar("T")


def expect(value: object, *kinds: type) -> None:
    """Check that ``value`` is of one of ``kinds``.

    Raises:
        TypeError: it is of another type; the message names the kinds.
    """
    if not isinstance(value, kinds):
        wanted = " or ".join(map(_with_article, kinds))
        raise TypeError(f"expected {wanted}, not {type(value).__name__}")


def expect_all(values: Iterable[T], kind: type[T], what: str) -> tuple[T, ...]:
    """Return all of ``values`` as a tuple; each has to be of type ``kind``.

    Raises:
        ProgramTooLargeError: there are too many; ``what`` names them in the message.
        TypeError: one is of another type.
    """
    found = items(values, what)
    for value in found:
        expect(value, kind)
    return found


def _with_article(kind: type) -> str:
    name = kind.__name__
    if kind is type(None):
        return "None"
    # "an HloSharding": the initial H is read as a letter.
    return f"an {name}" if name[0] in "AEIOU" or name.startswith("Hlo") else f"a {name}"
