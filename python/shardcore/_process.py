"""Hooks for a fork of the process, and for its end."""

import atexit
import contextlib
import importlib
import os

from shardcore import _core


def _finish() -> None:
    """Wait until no thread runs a user's function.

    A function that still runs after a second gets a ``SystemExit``, as Ctrl-C raises an exception
    in the main thread. A sleeping function does not notice it, and does no harm.
    """
    threads = _core.finish(1.0)
    if not threads:
        return
    with contextlib.suppress(ImportError, AttributeError):
        import ctypes

        for thread in threads:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread), ctypes.py_object(SystemExit)
            )
        _core.finish(0.2)


_MOST_IMPORTS = 1000
"""How many imports a fork waits for: a module that forks while it is imported never finishes."""


def _wait_for_imports() -> None:
    """Wait until no other thread imports a module of the package.

    Functions import what they need when they are called. A fork in the middle of that would leave
    a child whose own imports wait for a thread that exists in its parent alone.
    """
    # The locks of imports in progress; there is no public way to list them.
    locks = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    for _ in range(_MOST_IMPORTS):
        names = [name for name in list(locks) if name.startswith("shardcore.")]
        if not names:
            return
        for name in names:
            # Waits for the thread that imports the module; the import may fail.
            with contextlib.suppress(Exception):
                importlib.import_module(name)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_child=_core.after_fork_in_child)
atexit.register(_finish)
