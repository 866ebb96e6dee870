"""Does the work of tools in the main thread, in which Python runs what signals ask for.

The engine looks for signals while it works, as for Ctrl-C. A call that its client cancels, or that
takes too long, is interrupted by the same signal, from the thread that talks to the client.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """A job is interrupted."""


class Job:
    """Work to do, and its outcome."""

    def __init__(self, work: Callable[[], str]) -> None:
        self.work = work
        self.outcome: Future[str] = Future()
        self.is_stopped = False
        """Whether it shall be interrupted, or not be started."""


class Worker:
    """Does jobs one after the other, in the thread that calls :meth:`run`."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._current: Job | None = None
        self._is_interrupting = False

    def submit(self, work: Callable[[], str]) -> Job:
        """Hand in a job."""
        job = Job(work)
        self._jobs.put(job)
        return job

    def stop(self, job: Job) -> None:
        """Interrupt ``job``, or drop it if it did not start."""
        job.is_stopped = True
        if self._current is job:
            self._is_interrupting = True
            if hasattr(signal, "pthread_kill"):
                # Ends waiting for other processes, too.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                _thread.interrupt_main()

    def close(self) -> None:
        """Let :meth:`run` return once all jobs are done."""
        self._jobs.put(None)

    def run(self) -> None:
        """Do jobs until :meth:`close`.

        Raises:
            KeyboardInterrupt: somebody pressed Ctrl-C.
        """
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            while (job := self._jobs.get()) is not None:
                try:
                    self._do(job)
                except Interrupted as late:
                    # The work was done when the signal came.
                    if not job.outcome.done():
                        job.outcome.set_exception(late)
        finally:
            signal.signal(signal.SIGINT, before)

    def _do(self, job: Job) -> None:
        if job.is_stopped or not job.outcome.set_running_or_notify_cancel():
            return
        self._current = job
        try:
            outcome = job.work()
        except BaseException as error:
            self._current = None
            job.outcome.set_exception(error)
            if isinstance(error, KeyboardInterrupt) and not isinstance(error, Interrupted):
                raise
        else:
            self._current = None
            job.outcome.set_result(outcome)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self._is_interrupting:
            raise KeyboardInterrupt
        self._is_interrupting = False
        # What was to be interrupted may be done.
        if self._current is not None and self._current.is_stopped:
            raise Interrupted
