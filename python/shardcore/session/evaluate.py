"""Evaluates many edits of one program, in threads or by an executor."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from shardcore._core import Module, Result
from shardcore.errors import ShardcoreError
from shardcore.rules.given import Registered, registered_here
from shardcore.session.workers import Workers
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs import Cost
    from shardcore.costs.memory import LiveRanges
    from shardcore.session.session import Session

_MOST_PROGRAMS = 4
"""How many programs a worker keeps."""

_AHEAD = 4
"""How many chunks of edits per worker are submitted before the first result is awaited."""

_CHUNK = 8
"""How many edits one task of an executor has."""

_MANY = 8
"""From this number of edits on, the unedited program is propagated first, so that edits start
from its result."""


@dataclass(frozen=True)
class Evaluation:
    """The figures of one edit, for one device; without hardware, only those that need no chip."""

    edit: Mapping[str, object]
    """The edit: shardings by target."""
    argument_bytes: int | None = None
    """Bytes of the arguments on one device."""
    output_bytes: int | None = None
    """Bytes of the results on one device."""
    step_seconds: float | None = None
    """Estimated seconds of a step."""
    step_seconds_lower: float | None = None
    """A lower bound of the seconds of a step."""
    step_seconds_upper: float | None = None
    """An upper bound of the seconds of a step."""
    serial_seconds: float | None = None
    """Seconds of all ops and collectives one after the other, at the chip's peak rates."""
    compute_seconds: float | None = None
    """Seconds of all ops."""
    comm_seconds: float | None = None
    """Seconds of all collectives."""
    comm_bytes: int | None = None
    """Bytes that a device sends in a step."""
    slowest_link_bytes: int | None = None
    """Bytes that a device sends over the slowest kind of link of the mesh: between slices or nodes
    if the mesh spans several, else over all links."""
    collectives: int | None = None
    """The number of collectives that a step executes."""
    peak_bytes: int | None = None
    """The peak of live bytes on one device."""
    live_ranges: LiveRanges | None = field(default=None, repr=False, compare=False)
    """The values in memory over time, only where they are asked for."""
    error: ShardcoreError | None = None
    """The error, if the edit, or the program with it, is refused."""
    values: Result | int | None = field(default=None, repr=False, compare=False)
    """The result whose values :attr:`value_bytes` counts, or the count once it is known."""

    @property
    def value_bytes(self) -> int | None:
        """Bytes of all values of the propagated program together, computed when first read; only
        without hardware.
        """
        values = self.values
        if isinstance(values, Result):
            values = values.module.totals()["bytes_per_device"]
            object.__setattr__(self, "values", values)
        return values

    def record(self) -> dict[str, Any]:
        """Return the row as plain data."""
        edit = {name: None if value is None else str(value) for name, value in self.edit.items()}
        figures = {name: getattr(self, name) for name in _FIGURES}
        error = None if self.error is None else str(self.error)
        return {"edit": edit, **figures, "error": error}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "values": self.value_bytes}


_FIGURES = (
    "argument_bytes",
    "output_bytes",
    "value_bytes",
    "step_seconds",
    "step_seconds_lower",
    "step_seconds_upper",
    "serial_seconds",
    "compute_seconds",
    "comm_seconds",
    "comm_bytes",
    "slowest_link_bytes",
    "collectives",
    "peak_bytes",
)


def figures(
    session: Session,
    edit: Mapping[str, object],
    hardware: str | Hardware | None,
    options: Any,
    with_ranges: bool = False,
) -> Evaluation:
    """Return the row for ``edit``; ``with_ranges`` as for :func:`evaluate`."""
    try:
        edits = session._merged(edit)
        if hardware is None:
            result = session._propagate(edits)
            arguments, results = result._port_bytes()
            return Evaluation(edit, arguments, results, values=result)
        row = session._remembered.row(
            edits,
            hardware,
            {**options, "with_ranges": True} if with_ranges else options,
            lambda: _costed(session._propagate(edits).cost(hardware, **options), with_ranges),
        )
    except ShardcoreError as error:
        return Evaluation(edit, error=error)
    return replace(row, edit=edit)


def _costed(cost: Cost, with_ranges: bool) -> Evaluation:
    """The row for ``cost``, with an empty edit."""
    ranges = cost.rows.live_ranges if with_ranges else None
    return Evaluation(
        {},
        argument_bytes=cost.argument_bytes,
        output_bytes=cost.output_bytes,
        step_seconds=cost.step_seconds,
        step_seconds_lower=cost.step_seconds_lower,
        step_seconds_upper=cost.step_seconds_upper,
        serial_seconds=cost.serial_seconds,
        compute_seconds=cost.compute_seconds,
        comm_seconds=cost.comm_seconds,
        comm_bytes=cost.rows.sent_bytes,
        slowest_link_bytes=cost.rows.slowest_link_bytes,
        collectives=cost.rows.num_collectives,
        peak_bytes=cost.peak_bytes if ranges is None else ranges.peak_bytes,
        live_ranges=ranges,
    )


def evaluate(
    session: Session,
    edits: Iterable[Mapping[str, object]],
    hardware: str | Hardware | None,
    executor: Executor | None,
    progress: Callable[[str, float], object] | None,
    options: Mapping[str, Any],
    *,
    with_ranges: bool = False,
) -> Iterator[Evaluation]:
    """Yield a row for each of ``edits``, with its live ranges if ``with_ranges`` says so; see
    :meth:`shardcore.Session.evaluate`."""
    work: _Work
    if executor is None:
        work = _Threads(session, hardware, options, with_ranges)
    else:
        work = _Remote(session, hardware, options, with_ranges, executor)
    # Later edits of the session have no effect on the rows, even on those not yet requested.
    return _rows(work, edits, progress)


def _rows(
    work: _Work,
    edits: Iterable[Mapping[str, object]],
    progress: Callable[[str, float], object] | None,
) -> Iterator[Evaluation]:
    total = len(edits) if isinstance(edits, Sized) else None
    done = 0
    try:
        if total is None or total >= _MANY:
            work.start()
        for row in _in_order(work, edits):
            done += 1
            if progress is not None:
                progress(plural(done, "edit"), done / total if total else 0.0)
            yield row
    finally:
        work.close()


def _in_order(work: _Work, edits: Iterable[Mapping[str, object]]) -> Iterator[Evaluation]:
    """The rows of ``edits`` in order; a few chunks are in progress at a time. An exception from the
    iterable ``edits`` is raised after the rows before it.
    """
    waiting: deque[tuple[list[Mapping[str, object]], Future[Any]]] = deque()
    given = iter(edits)
    failure: Exception | None = None
    try:
        while failure is None:
            chunk, failure = _chunk(given, work.chunk)
            if not chunk:
                break
            waiting.append((chunk, work.submit(chunk)))
            if len(waiting) > work.ahead:
                yield from work.rows(*waiting.popleft())
        while waiting:
            yield from work.rows(*waiting.popleft())
    finally:
        for _, future in waiting:
            future.cancel()
    if failure is not None:
        raise failure


def _chunk(
    edits: Iterator[Mapping[str, object]], size: int
) -> tuple[list[Mapping[str, object]], Exception | None]:
    """The next ``size`` of ``edits``, or fewer at the end, and the exception that they raised."""
    chunk: list[Mapping[str, object]] = []
    try:
        chunk.extend(islice(edits, size))
    # A user's iterator may raise any exception.
    except Exception as error:
        return chunk, error
    return chunk, None


class _Threads:
    """Threads of this process, which share the session's program."""

    chunk = 1

    def __init__(self, session: Session, hardware: Any, options: Any, with_ranges: bool) -> None:
        self._arguments = (hardware, dict(options), with_ranges)
        self._session, self._workers = session._copy(), Workers(os.cpu_count() or 1)
        self.ahead = _AHEAD * (os.cpu_count() or 1)

    def start(self) -> None:
        """Propagate the unedited program."""
        self._workers.submit(figures, self._session, {}, *self._arguments).result()

    def submit(self, chunk: list[Mapping[str, object]]) -> Future[Any]:
        return self._workers.submit(figures, self._session, chunk[0], *self._arguments)

    def rows(self, chunk: list[Mapping[str, object]], future: Future[Any]) -> Iterator[Evaluation]:
        yield future.result()

    def close(self) -> None:
        """Do not wait for running threads: one may be in a user's rule that does not return."""
        self._workers.close()


class _Remote:
    """Workers of an executor, in other processes or on other machines."""

    chunk = _CHUNK

    def __init__(
        self,
        session: Session,
        hardware: Any,
        options: Any,
        with_ranges: bool,
        executor: Executor,
    ) -> None:
        self._session, self._executor = session._copy(), executor
        self._arguments = (hardware, dict(options), with_ranges)
        self._sent = (*_with_chip(hardware, dict(options)), with_ranges)
        self._key, *self._program = self._session._snapshot()
        self._base = self._session._edits_by_name()
        self._rules = registered_here()
        workers = getattr(executor, "_max_workers", None)
        count = workers if isinstance(workers, int) else os.cpu_count() or 1
        self.ahead = _AHEAD * count
        # One chunk for each worker carries the program, unless an earlier evaluation has sent it.
        self._unsent = 0
        if session._is_new_to(executor):
            self._unsent = count if isinstance(workers, int) else 1

    def start(self) -> None:
        """Each worker propagates the unedited program when it gets the program."""

    def close(self) -> None:
        """The executor belongs to the caller, so it stays open."""

    def submit(self, chunk: list[Mapping[str, object]]) -> Future[Any]:
        is_new = self._unsent > 0
        self._unsent -= is_new
        return self._submit(chunk, is_new)

    def _submit(self, chunk: list[Mapping[str, object]], is_new: bool) -> Future[Any]:
        program = self._program if is_new else None
        try:
            edits = [dict(edit) for edit in chunk]
            given = (self._key, program, self._base, edits, self._rules, *self._sent)
            return self._executor.submit(remote_figures, *given)
        # If the executor is broken or refuses a chunk, the chunk is computed in this process.
        except Exception as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed

    def rows(self, chunk: list[Mapping[str, object]], future: Future[Any]) -> Iterator[Evaluation]:
        found = self._answer(future)
        for is_new in (False, True):
            if found == MISSING:
                # The worker lacks the program; another worker may have received it.
                found = self._answer(self._submit(chunk, is_new))
        if not isinstance(found, list):
            yield from (figures(self._session, edit, *self._arguments) for edit in chunk)
            return
        for edit, row in zip(chunk, found, strict=True):
            yield Evaluation(edit, **row)

    def _answer(self, future: Future[Any]) -> Any:
        """The worker's answer; ``None`` if it failed with any exception."""
        try:
            return future.result()
        except (Exception, CancelledError):
            return None


_Work = _Threads | _Remote


def _with_chip(hardware: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """``hardware`` and ``options``, with chips that are read from a file of this machine replaced
    by their figures."""
    # The calculus is imported here, as the package does not import it.
    from shardcore.calculus.hardware import hardware as find

    if isinstance(hardware, str) and options.get("hardware_file") is not None:
        try:
            return find(hardware, options["hardware_file"]), {**options, "hardware_file": None}
        # The error is raised when a row is requested.
        except (ShardcoreError, OSError, TypeError):
            pass
    return hardware, options


MISSING = "the worker does not have the program"
"""The answer of a worker that was not sent the program, or has dropped it. Answers are pickled, so
compare with ``==``, not with ``is``."""

_sessions: OrderedDict[str, Session] = OrderedDict()
"""The programs of this worker, from the least to the most recently used."""


def remote_figures(
    key: str,
    program: list[Any] | None,
    base: dict[str, Any],
    edits: Sequence[Mapping[str, object]],
    rules: Registered,
    hardware: Any,
    options: Mapping[str, Any],
    with_ranges: bool,
) -> Any:
    """Return the figures of ``edits`` in a worker: :data:`MISSING` if it lacks the program,
    ``None`` if it lacks ``rules``.
    """
    if rules != registered_here():
        return None
    session = _sessions.get(key)
    if session is None:
        if program is None:
            return MISSING
        text, shardy, own = program
        session = Module.parse(text, shardy=shardy).session(**own)
        _sessions[key] = session
        while len(_sessions) > _MOST_PROGRAMS:
            _sessions.popitem(last=False)
    else:
        _sessions.move_to_end(key)
    session = session._copy(base)
    if program is not None and len(edits) >= _MANY:
        figures(session, {}, hardware, options, with_ranges)
    rows = (figures(session, edit, hardware, options, with_ranges) for edit in edits)
    states = (row.__getstate__().items() for row in rows)
    return [{name: value for name, value in state if name != "edit"} for state in states]
