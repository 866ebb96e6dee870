"""Runs the work of tools in the main thread, where Python handles signals.

The engine checks for signals while it works, as for Ctrl-C. If the client cancels a call, or it
takes too long, the thread that talks to the client interrupts it with the same signal.
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
    """The job was interrupted."""


class Job:
    """Work to do, and its outcome."""

    def __init__(self, work: Callable[[], str]) -> None:
        self.work = work
        self.outcome: Future[str] = Future()
        self.is_stopped = False
        """Whether it is to be interrupted, or not started at all."""


class Worker:
    """Runs jobs one after the other, in the thread that calls :meth:`run`."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._current: Job | None = None
        self._is_interrupting = False

    def submit(self, work: Callable[[], str]) -> Job:
        """Queue a job."""
        job = Job(work)
        self._jobs.put(job)
        return job

    def stop(self, job: Job) -> None:
        """Interrupt ``job``, or drop it if it has not started."""
        job.is_stopped = True
        if self._current is job:
            self._is_interrupting = True
            if hasattr(signal, "pthread_kill"):
                # Also interrupts waiting for other processes.
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                _thread.interrupt_main()

    def close(self) -> None:
        """Let :meth:`run` return after all jobs are done."""
        self._jobs.put(None)

    def run(self) -> None:
        """Run jobs until :meth:`close`.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        before = signal.signal(signal.SIGINT, self._interrupt)
        try:
            while (job := self._jobs.get()) is not None:
                try:
                    self._do(job)
                except Interrupted as late:
                    # The work was finished when the signal came.
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
        # The job to interrupt may already be done.
        if self._current is not None and self._current.is_stopped:
            raise Interrupted
