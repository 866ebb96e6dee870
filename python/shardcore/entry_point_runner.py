"""Runs a Python file, calls a function of it, and writes the program that it returns as text.

It is run as a program by :mod:`shardcore.entry_point`: file, function, output. If it fails the exit
code is 1, and the reason is in the output or, where the user's code raised, on standard error.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType
from typing import Any


def main(file: str, name: str, output: str) -> int:
    """Write the program that ``name`` of ``file`` makes to ``output``; return the exit code."""
    # As if the file were run: its folder comes first, not that of this one.
    sys.path[0] = os.path.dirname(file)
    sys.argv[:] = [file]
    module = _imported(file)
    build = getattr(module, name, None)
    if not callable(build):
        own = (key for key, value in vars(module).items() if _is_of(module, value))
        known = ", ".join(sorted(own))
        return _fail(output, f"it has no function {name}; it has {known or 'none'}")
    found = build()
    try:
        text = _text(found)
    except TypeError as error:
        return _fail(output, str(error))
    with open(output, "w", encoding="utf-8") as written:
        written.write(text)
    return 0


def _imported(file: str) -> ModuleType:
    name = os.path.splitext(os.path.basename(file))[0]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _is_of(module: ModuleType, value: Any) -> bool:
    return callable(value) and getattr(value, "__module__", None) == module.__name__


def _fail(output: str, reason: str) -> int:
    with open(output, "w", encoding="utf-8") as written:
        written.write(reason)
    return 1


def _text(found: Any) -> str:
    """The text of the program ``found``.

    Raises:
        TypeError: it is none.
    """
    from shardcore import Module, Result

    if isinstance(found, Module):
        return str(found)
    if isinstance(found, Result):
        return str(found._given())
    import shardcore.jax

    if isinstance(found, shardcore.jax.Lowered):
        return str(found.module)
    if isinstance(found, shardcore.jax.JaxResult):
        return str(found.result._given())
    options: dict[str, Any] = {}
    arguments: tuple[Any, ...] = ()
    if isinstance(found, tuple):
        if not 2 <= len(found) <= 3 or not isinstance(found[1], (tuple, list)):
            raise TypeError("it returned a tuple that is no function with its arguments")
        if len(found) == 3:
            options = dict(found[2])
        found, arguments = found[0], tuple(found[1])
    elif not callable(found) and not hasattr(found, "as_text"):
        raise TypeError(f"it returned an object of type {type(found).__name__}")
    return str(shardcore.jax.lower(found, *arguments, **options).module)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
