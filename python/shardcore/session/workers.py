"""Threads that do not keep the process alive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

_Task = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...]]


class Workers:
    """At most ``count`` threads, started when there is work for them.

    Unlike the threads of a ``ThreadPoolExecutor`` they are daemons: neither Ctrl-C nor the end of
    the process waits for a thread whose rule does not return.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads: list[threading.Thread] = []
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Have a thread call ``function``."""
        future: Future[Any] = Future()
        self._tasks.put((future, function, args))
        if len(self._threads) < self._count:
            thread = threading.Thread(target=_work, args=[self._tasks], daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def close(self) -> None:
        """End each thread after its current call."""
        for _ in self._threads:
            self._tasks.put(None)


def _work(tasks: SimpleQueue[_Task | None]) -> None:
    while (task := tasks.get()) is not None:
        future, function, args = task
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(function(*args))
        except BaseException as error:
            future.set_exception(error)
        # References are dropped while the thread waits.
        del task, future, function, args
