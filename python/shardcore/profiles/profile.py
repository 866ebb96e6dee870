"""Measured times of instructions, from XProf traces (``.xplane.pb``) or Perfetto traces (JSON)."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from shardcore import files
from shardcore.errors import Diagnostic, ParseError, place_of
from shardcore.profiles.event import Event
from shardcore.profiles.xplane import xplane_events

if TYPE_CHECKING:
    from shardcore.explain.compiled import Compiled

__all__ = ["Profile", "read_profile"]

_XPLANE = ".xplane.pb"
_JSON = (".trace.json.gz", ".trace.json", ".json.gz", ".json")
_ASYNC = re.compile("async", re.IGNORECASE)
_LONGEST = 1e18
"""A bound on times in traces, in microseconds."""
_MODULES = "XLA Modules"
"""The row of a device in which an event is a run of a module."""
_NAME = re.compile(r"%?([\w.\-]+)")


@dataclass
class Profile:
    """Durations by instruction."""

    name: str
    """The name of the file, or of the folder with several."""
    events: Mapping[tuple[str, str], tuple[float, int]]
    """Total seconds and number of events, by module and instruction; the module is empty if the
    trace does not have it."""
    steps: Mapping[str, tuple[float, ...]]
    """The seconds of each run of a module, by its name."""
    notes: tuple[str, ...] = ()

    def step_seconds(self, module: str) -> float | None:
        """Return the median of the seconds that ``module`` ran for, or ``None`` if the trace has
        no run of it. The first runs in a trace may be slower than others.
        """
        runs = self.steps.get(module)
        return median(runs) if runs else None

    def seconds(self, module: str, rows: Iterable[Compiled]) -> dict[str, float]:
        """Return the seconds of each collective of ``module`` in one run of the program, by name:
        the mean over its events times its executions; starts and dones of asynchronous ones are
        added.

        Computation that runs during an asynchronous collective is not included.
        """
        found = {}
        for row in rows:
            keys = [(own, name) for name in row.names for own in (module, "")]
            known = [self.events[key] for key in keys if key in self.events]
            if known:
                mean = sum(seconds / count for seconds, count in known)
                found[row.name] = mean * (row.runs or 1)
        return found


def read_profile(given: str | os.PathLike[str]) -> Profile:
    """Return the times in the trace at ``given``; for a folder those of its newest run.

    Raises:
        ParseError: there is no trace, or it is damaged (``invalid-trace``).
        OSError: the trace cannot be read.
    """
    path = Path(given)
    found = [path]
    if path.is_dir():
        found = _newest(path)
        if not found:
            raise _invalid(f"no trace is in {path}", "give a folder that jax.profiler wrote")
    sums: dict[bool, dict[tuple[str, str], list[float]]] = {False: {}, True: {}}
    runs: dict[str, list[float]] = defaultdict(list)
    # First and last picosecond of each run.
    spans: dict[tuple[str, str], tuple[int, int]] = {}
    for each in found:
        for event in _events(each):
            if (match := _NAME.match(event.name)) is None:
                continue
            end = event.start + round(event.seconds * 1e12)
            # Program numbers follow the module names.
            module = (event.module or "").split("(")[0]
            if event.line.endswith(_MODULES):
                runs[match[1]].append(event.seconds)
            elif module and event.run:
                first, last = spans.get((module, event.run), (event.start, end))
                spans[module, event.run] = min(first, event.start), max(last, end)
            is_async = _ASYNC.search(event.line) is not None
            sums[is_async].setdefault((module, match[1]), []).append(event.seconds)
    for module in {module for module, _ in spans} - runs.keys():
        runs[module] = [
            (last - first) / 1e12 for (own, _), (first, last) in spans.items() if own == module
        ]
    # Overlapping events have rows of their own; the device's row has the time spent waiting.
    durations = sums[True] | sums[False]
    events = {name: (sum(each), len(each)) for name, each in durations.items()}
    notes = () if events else (f"{path} has no events",)
    steps = {module: tuple(each) for module, each in runs.items()}
    return Profile(str(path), events, steps, notes)


def _newest(folder: Path) -> list[Path]:
    """The traces of the newest run in ``folder``, all in one format."""
    runs: dict[Path, list[Path]] = defaultdict(list)
    for root, _, names in os.walk(folder):
        for name in sorted(names):
            if name.endswith((_XPLANE, *_JSON)):
                runs[Path(root)].append(Path(root) / name)
    if not runs:
        return []
    newest = max(runs, key=lambda run: (max(each.stat().st_mtime_ns for each in runs[run]), run))
    planes = [each for each in runs[newest] if each.name.endswith(_XPLANE)]
    return planes or runs[newest][:1]


def _events(path: Path) -> Iterator[Event]:
    data = files.unzipped(files.read(path), str(path))
    if path.name.endswith(".pb") or (not data[:1].isspace() and data[:1] not in b"{["):
        yield from xplane_events(data, str(path))
    else:
        yield from _json_events(data, str(path))


def _json_events(data: bytes, name: str) -> Iterator[Event]:
    text = data.decode("utf-8", "replace")
    try:
        trace = json.loads(text)
    except ValueError as error:
        at = getattr(error, "pos", 0)
        place = place_of(text, min(at, len(text)), at + 1)
        message = f"no JSON: {getattr(error, 'msg', error)}"
        raise ParseError(Diagnostic("invalid-trace", message, _HINT, name, place)) from None
    except RecursionError:
        raise _invalid(f"{name} is nested too deeply") from None
    rows = trace.get("traceEvents") if isinstance(trace, dict) else trace
    if not isinstance(rows, list):
        raise _invalid(f"{name} has no traceEvents")
    lines: dict[Any, str] = {}
    for row in rows:
        if isinstance(row, dict) and row.get("ph") == "M" and row.get("name") == "thread_name":
            arguments = row.get("args")
            if isinstance(arguments, dict):
                lines[str(row.get("pid")), str(row.get("tid"))] = str(arguments.get("name"))
    for row in rows:
        if not isinstance(row, dict) or row.get("ph") != "X":
            continue
        duration, arguments = _number(row.get("dur")), row.get("args")
        begin = _number(row.get("ts", 0))
        if duration is None or begin is None:
            continue
        given = arguments if isinstance(arguments, dict) else {}
        line = lines.get((str(row.get("pid")), str(row.get("tid"))), "")
        own = str(given.get("hlo_op") or row.get("name") or "")
        module, run = given.get("hlo_module"), given.get("run_id")
        yield Event(
            name=own,
            module=None if module is None else str(module),
            line=line,
            start=round(begin * 1e6),
            seconds=duration / 1e6,
            run=None if run is None else str(run),
        )


def _number(value: object) -> float | None:
    """``value``, if it can be a number of microseconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LONGEST:
        return value
    return None


_HINT = "give a trace that jax.profiler wrote, whole"


def _invalid(message: str, hint: str = _HINT) -> ParseError:
    return ParseError(Diagnostic("invalid-trace", message, hint))
