"""Properties that are worked out when somebody reads them first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  # As that of functools.
    """As that of ``functools``, which in Python 3.10 and 3.11 has one lock for all objects: threads
    wait for each other, and a process that is forked meanwhile for ever. Of two threads that work
    a property out at the same time, both get what the first one found.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        # Once it is there, Python finds it without asking here.
        return instance.__dict__.setdefault(self._name, self._function(instance))  # type: ignore[no-any-return]
