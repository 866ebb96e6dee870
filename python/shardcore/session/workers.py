"""Threads that do not keep the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

_Task = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...]]


class Workers:
    """At most ``count`` threads, started when there is work for them.

    Unlike those of a ``ThreadPoolExecutor`` they are daemons: nothing waits for one that is in a
    rule that does not return, neither Ctrl-C nor the end of the process.
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
        """Have each thread end once it has returned from what it calls now."""
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
        # What they refer to is not kept while the thread waits.
        del task, future, function, args
