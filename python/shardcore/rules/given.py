"""What is registered in this process, in a form that can be compared between processes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from types import CodeType, FunctionType
from typing import Any

from shardcore._core import __version__

Registered = tuple[Any, ...]
"""Registrations as plain data; equal if they have the same effect."""

_given: dict[tuple[str, str], object] = {}
"""The registered rules and data-flow edges of ops, and the rules of custom call targets, by kind
and name."""

_MOST_DEEP = 16


def note(kind: str, name: str, what: object) -> None:
    """Record ``what`` as the ``kind`` of the op or target ``name``; ``None`` removes it."""
    if what is None:
        _given.pop((kind, name), None)
    else:
        _given[kind, name] = what


def registered_here() -> Registered:
    """Return the version of this package and everything that is registered in this process.

    Functions are equal if their code and closures are. What cannot be compared is equal only within
    this process.
    """
    rows = ((kind, name, _told(what)) for (kind, name), what in _given.items())
    return (__version__, *sorted(rows, key=lambda row: row[:2]))


def _told(value: object, depth: int = 0) -> object:
    """``value`` as plain data."""
    if value is None or type(value) in (str, int, float, bool, bytes):
        return type(value).__name__, value
    if depth < _MOST_DEEP:
        deeper = depth + 1
        if isinstance(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)]
            parts = (value.__defaults__, value.__kwdefaults__, tuple(cells))
            return "function", _of_code(value.__code__, deeper), _told(parts, deeper)
        if isinstance(value, tuple):
            return type(value).__name__, *(_told(each, deeper) for each in value)
        if isinstance(value, (set, frozenset)):
            return type(value).__name__, *sorted(map(repr, value))
        if isinstance(value, Mapping):
            items = [(str(key), _told(each, deeper)) for key, each in value.items()]
            return "mapping", *sorted(items, key=lambda item: item[0])
    try:
        return "pickled", pickle.dumps(value)
    # Whatever a user's object raises.
    except Exception:
        return "here", os.getpid(), id(value)


def _is_full(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _of_code(code: CodeType, depth: int) -> object:
    """What ``code`` does, independent of the location of its file."""
    constants = tuple(
        _of_code(each, depth + 1)
        if isinstance(each, CodeType) and depth < _MOST_DEEP
        else _told(each, depth + 1)
        for each in code.co_consts
    )
    return code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants
