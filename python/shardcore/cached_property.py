"""Properties that are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  # As that of functools.
    """Like the one of ``functools``, which in Python 3.10 and 3.11 has one lock for all objects:
    there threads wait for each other, and a process forked in the meantime hangs. If two threads
    compute the property at the same time, both get the first value.
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
        # Once the value is stored, Python finds it without calling this.
        return instance.__dict__.setdefault(self._name, self._function(instance))  # type: ignore[no-any-return]
