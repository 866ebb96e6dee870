"""What has to be done after the process forks, and before it ends."""

import atexit
import contextlib
import os

from shardcore import _core


def _finish() -> None:
    """Wait until no thread runs in a user's function.

    In one that goes on after a second ``SystemExit`` is raised, as Ctrl-C raises an exception in
    the main thread. A function that sleeps does not notice, and does no harm.
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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_core.after_fork_in_child)
atexit.register(_finish)
