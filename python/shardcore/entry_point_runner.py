"""Runs a Python file, calls a function of it, and writes the program that it returns as text.

It is run as a program by :mod:`shardcore.entry_point`: file, function, output, and a file with what
to ``make`` as JSON: the ``"program"``, with texts to run in place of ``sources``; the
``"signature"`` of the step; or by ``"remat"``, with its ``options``, what layers should keep. If it
fails the exit code is 1, and the output is JSON: the ``reason``, or the ``diagnostics`` of an error
of this package. Where the user's code raised, the traceback is on standard error.
"""

from __future__ import annotations

import difflib
import importlib.machinery
import importlib.util
import inspect
import json
import operator
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

_OWN = (os.path.dirname(__file__), os.path.dirname(importlib.util.__file__))
"""Folders whose stack frames are not the user's."""


class _NoProgramError(Exception):
    """The function returned nothing that is a program."""


def main(file: str, name: str, output: str, request: str) -> int:
    """Write what is made of what ``name`` of ``file`` returns to ``output``, and return the exit
    code."""
    with open(request, encoding="utf-8") as opened:
        wanted = json.load(opened)
    # As if the file were run: its folder comes first, not that of this one.
    sys.path[0] = os.path.dirname(file)
    sys.argv[:] = [file]
    try:
        _run_in_place_of(wanted.get("sources", {}))
        built = _built(_imported(file), name)
        if wanted["make"] == "remat":
            text = _remat(built, wanted["options"])
        else:
            text = _signature(built) if wanted["make"] == "signature" else _text(built)
    except _NoProgramError as error:
        return _fail(output, reason=str(error))
    except Exception as error:
        from shardcore import ShardcoreError

        if isinstance(error, ShardcoreError):
            return _fail(output, diagnostics=error.diagnostics)
        _say(error)
        return _fail(output, raised=f"{type(error).__name__}: {error}")
    with open(output, "w", encoding="utf-8") as written:
        written.write(text)
    return 0


def _run_in_place_of(sources: dict[str, str]) -> None:
    """Have ``sources`` run in place of the Python files with these real paths."""
    loader = importlib.machinery.SourceFileLoader
    own = loader.get_code

    def get_code(self: Any, name: str) -> Any:
        text = sources.get(os.path.realpath(self.path))
        return own(self, name) if text is None else compile(text, self.path, "exec")

    if sources:
        loader.get_code = get_code  # type: ignore[method-assign, assignment]


def _built(module: ModuleType, name: str) -> Any:
    """The return value of the function called ``name``.

    Raises:
        _NoProgramError: there is no such function, or it needs arguments.
    """
    build = getattr(module, name, None)
    if not callable(build):
        own = sorted(key for key, value in vars(module).items() if _is_of(module, value))
        near = difflib.get_close_matches(name, own, 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise _NoProgramError(
            f"it has no function {name}; it has {', '.join(own) or 'none'}{meant}"
        )
    try:
        inspect.signature(build).bind()
    except TypeError as error:
        raise _NoProgramError(f"calling it fails: {error}") from None
    except ValueError:
        # Some built-in functions have no signature.
        pass
    return build()


def _say(error: Exception) -> None:
    """Print the traceback of an exception of the user's code, without frames of this package."""
    shown = traceback.TracebackException.from_exception(error)
    kept = [frame for frame in shown.stack if not frame.filename.startswith(_OWN)]
    shown.stack = traceback.StackSummary.from_list(kept)
    print("".join(shown.format()), end="", file=sys.stderr)


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


def _fail(output: str, **found: Any) -> int:
    with open(output, "w", encoding="utf-8", errors="backslashreplace") as written:
        json.dump(found, written)
    return 1


def _text(found: Any) -> str:
    """The text of the program ``found``.

    Raises:
        _NoProgramError: ``found`` is no program.
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
    found, arguments, options = _parts(found, shardcore.jax.lower)
    return str(shardcore.jax.lower(found, *arguments, **options).module)


def _signature(found: Any) -> str:
    """The signature of the step in ``found`` as JSON; empty if ``found`` has no function."""
    import shardcore.jax

    if not isinstance(found, tuple):
        return ""
    step, arguments, options = _parts(found, shardcore.jax.lower)
    first = found[1] if len(found) > 1 and isinstance(found[1], (tuple, list)) else ()
    is_joined = len(first) == len(arguments) > 0 and all(map(operator.is_, first, arguments))
    made = shardcore.jax.lower(step, *arguments, **options).signature()
    return replace(made, is_joined=is_joined).to_json()


def _remat(found: Any, options: dict[str, Any]) -> str:
    """What the layers of the loss ``found`` should keep, as JSON.

    Raises:
        _NoProgramError: it is no function.
    """
    from shardcore.remat import remat

    loss, arguments, own = _parts(found, remat)
    made = remat(loss, *arguments, **{**own, **options})
    return json.dumps({"record": made.record(), "text": str(made)})


def _parts(found: Any, by: Callable[..., Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """A function, its arguments and the options of ``by`` in what was returned.

    Raises:
        _NoProgramError: there is no function.
    """
    options: dict[str, Any] = {}
    arguments: tuple[Any, ...] = ()
    if isinstance(found, tuple):
        if not found or not callable(found[0]):
            raise _NoProgramError("it returned a tuple that does not begin with a function")
        found, *given = found
        if (
            len(given) == 2
            and isinstance(given[0], (tuple, list))
            and _are_keywords(given[1], found, by)
        ):
            options = dict(given.pop())
        is_joined = len(given) == 1 and isinstance(given[0], (tuple, list))
        arguments = tuple(given[0] if is_joined else given)
    elif not callable(found) and not hasattr(found, "as_text"):
        raise _NoProgramError(f"it returned an object of type {type(found).__name__}")
    return found, arguments, options


def _are_keywords(given: object, function: object, by: object) -> bool:
    """Whether ``given`` are keywords of :func:`shardcore.jax.lower`, ``function`` or ``by``."""
    import shardcore.jax

    names: set[object] = set()
    for takes in (shardcore.jax.lower, function, by):
        try:
            own = inspect.signature(takes).parameters  # type: ignore[arg-type]
        except (TypeError, ValueError):
            continue
        names |= {
            name
            for name, each in own.items()
            if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)
        }
    # A single unknown key is taken for a misspelt keyword.
    return isinstance(given, dict) and (not given or bool(given.keys() & names))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
