"""The predicted step as a Chrome trace, for Perfetto and ``chrome://tracing``.

Computation and the links of each set of mesh axes are tracks; the parts of a step follow each other
in the order of the program, and end at ``Cost.step_seconds``: of a collective that is the time in
which the device waits for it. Live memory is a counter.

Source: "Trace Event Format" (Google, 2016): complete events (``X``), counters (``C``) and metadata
(``M``); times are in microseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardcore.costs.program import Cost
    from shardcore.costs.records import TimedStep

_PROCESS = 1
_COMPUTE = "compute (predicted)"


def trace(cost: Cost, title: str = "step") -> dict[str, Any]:
    """Return the predicted step as trace data; ``title`` names the program."""
    tracks = {_COMPUTE: 0}
    events: list[dict[str, Any]] = []
    now = 0.0
    fixed = cost.argument_bytes + cost.hole_bytes
    for step in cost.rows.steps:
        name = _COMPUTE if step.collective is None else f"{step.link or 'links'} (predicted)"
        track = tracks.setdefault(name, len(tracks))
        duration = step.seconds * 1e6
        events.append(
            {
                "name": step.name.removeprefix("stablehlo."),
                "ph": "X",
                "pid": _PROCESS,
                "tid": track,
                "ts": now,
                "dur": duration,
                "args": _details(cost, step),
            }
        )
        live = {"bytes": fixed + step.live_bytes}
        counter = {"name": "live memory (predicted)", "ph": "C", "pid": _PROCESS}
        events.append({**counter, "tid": 0, "ts": now, "args": live})
        now += duration
    process = f"{title} on {cost.hardware.name}, policy {cost.policy} (predicted by shardcore)"
    names = [_name("process_name", 0, process)]
    names += [_name("thread_name", track, name) for name, track in tracks.items()]
    return {"traceEvents": [*names, *events], "displayTimeUnit": "ns"}


def _name(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": _PROCESS, "tid": track, "args": {"name": name}}


def _details(cost: Cost, step: TimedStep) -> dict[str, Any]:
    details: dict[str, Any] = {"value": step.value, "source": step.location, "runs": step.count}
    if step.collective is None:
        return details
    row = cost.collectives[step.collective]
    return {
        **details,
        "axes": ", ".join(row.axes),
        "sent bytes": row.total_wire_bytes,
        "seconds at the peak": row.total_seconds,
        "because of": row.cause,
        "from": row.sides[0],
        "to": row.sides[1],
    }
