"""The time, memory and collectives on a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore.costs.sums import axes_texts
from shardcore.labels import LOCAL, is_inserted
from shardcore.report.host_table import host_lines
from shardcore.report.page.memory import memory_record
from shardcore.report.page.string_tables import Tables, short
from shardcore.why.changes import changes

if TYPE_CHECKING:
    from shardcore._core import Port
    from shardcore.costs import CollectiveCost, Cost
    from shardcore.costs.records import TimedStep
    from shardcore.report.page.whys import Whys
    from shardcore.why.remedy import Remedy

MAX_STEPS = 3000
"""How many steps the timeline shows; in a longer program neighbours are merged."""
MAX_WHYS = 5
"""How many of the longest collectives are explained; each takes 10 ms."""
MAX_NAMES = 200
"""How many of a group of equal collectives are named."""
MAX_LIVE = 200
"""How many values are listed at the peak."""


def cost_record(
    cost: Cost,
    tables: Tables,
    whys: Whys,
    row_of_value: Mapping[str, int],
    edits: int,
    known: Iterable[Remedy],
    arguments: Sequence[Port],
    *,
    is_large: bool = False,
) -> dict[str, Any]:
    """Return ``cost`` as plain data of a page.

    Args:
        cost: the cost.
        tables: collect the texts and locations.
        whys: collect the explanations of the longest collectives.
        row_of_value: the rows of values by name.
        edits: how many changes of annotations are sought.
        known: edits that were tried already.
        arguments: those of the program.
        is_large: whether what is made op by op is left out: the timeline, memory over time, and why
            collectives are there.
    """
    rows, row_of = _collectives(cost.collectives, tables)
    tried = changes(cost, edits, known)
    removing = {row_of[at]: edit for at, edit in tried.removing.items()}
    ranked = sorted(range(len(rows)), key=lambda row: -rows[row]["seconds"])
    for row in {*(() if is_large else ranked[:MAX_WHYS]), *removing}:
        first = cost.collectives[row_of.index(row)]
        rows[row]["why"] = whys.of_collective(first, removing.get(row))
    usage = cost.usage
    missing = cost.not_in_step
    steps = () if is_large else cost.rows.steps
    times = _times(cost, tables)
    live = sorted(cost.live_at_peak, key=lambda row: -row.bytes)
    return {
        "hardware": cost.hardware.name,
        "hbm_bytes": cost.hardware.hbm_bytes,
        "policy": cost.policy,
        "fits": cost.fits,
        "step": cost.step_seconds,
        "low": cost.confidence.low,
        "upper": cost.step_seconds_upper,
        "confidence": cost.confidence.source,
        "exposed": cost.exposed_seconds,
        "copied": sum(each.exposed_seconds or 0 for each in cost.host.transfers),
        "mfu": usage.mfu,
        "hfu": usage.hfu,
        "tokens": usage.tokens_per_second,
        "examples": usage.examples_per_second,
        "counted_in": usage.counted_in,
        "best": [{**each.record(), "place": tables.place(each.location)} for each in tried.best],
        "tried": tried.tried,
        "compute": cost.compute_seconds,
        "comm": cost.comm_seconds,
        "flops": cost.flops,
        "argument_bytes": cost.argument_bytes,
        "output_bytes": cost.output_bytes,
        "peak_bytes": cost.peak_bytes,
        "not_timed": [missing.compute_ops, missing.communication_ops],
        "notes": [*map(str.strip, host_lines(cost)), *cost.notes],
        "collectives": rows,
        "before": _before(steps, row_of, row_of_value),
        "times": [[place, seconds] for place, seconds in times.items() if seconds and place >= 0],
        **_steps(steps, cost.argument_bytes + cost.hole_bytes, row_of, tables),
        "live": [
            [
                row.name,
                row.op,
                "x".join([*("?" if n is None else str(n) for n in row.shape), row.dtype or ""]),
                LOCAL if row.sharding is None and is_inserted(row.name) else short(row.sharding),
                row.bytes,
                tables.place(row.location),
            ]
            for row in live[:MAX_LIVE]
        ],
        "num_live": len(live),
        "memory": memory_record(cost, arguments, tables, is_large=is_large),
        "scopes": [
            {
                "scope": row.scope,
                "pass": row.direction,
                "layers": row.layers,
                "seconds": row.step_seconds,
                "collectives": row.collectives,
                "bytes": row.wire_bytes,
            }
            for row in cost.by_scope()
        ],
    }


def _collectives(
    collectives: Sequence[CollectiveCost], tables: Tables
) -> tuple[list[dict[str, Any]], list[int]]:
    """Rows of equal collectives, and the row of each collective."""
    rows: list[dict[str, Any]] = []
    known: dict[tuple[Any, ...], int] = {}
    as_shown: dict[tuple[str | None, str | None, str | None], tuple[str, ...]] = {}
    texts = axes_texts(collectives)
    row_of = []
    for each in collectives:
        place = tables.place(each.cause_location or each.location)
        sides = (each.operand_sharding, each.result_sharding, each.cause)
        moved = as_shown.get(sides)
        if moved is None:
            moved = as_shown[sides] = tuple(text and short(text) for text in each.sides)
        axes = texts[id(each.axis_refs)]
        key = (each.kind, axes, each.cause, place, moved, each.bytes)
        row = known.setdefault(key, len(rows))
        row_of.append(row)
        if row == len(rows):
            rows.append(
                {
                    "kind": each.kind,
                    "axes": list(axes),
                    "names": [axis.name for axis in each.axis_refs],
                    "cause": each.cause,
                    "place": place,
                    "from": moved[0],
                    "to": moved[1],
                    "bytes": each.bytes,
                    "count": 0,
                    "sent": 0,
                    "seconds": 0.0,
                    "ops": [],
                }
            )
        found = rows[row]
        found["count"] += each.count
        found["sent"] += each.total_wire_bytes
        found["seconds"] += each.total_seconds
        if len(found["ops"]) < MAX_NAMES:
            found["ops"].append(each.op or "")
    return rows, row_of


def _before(
    steps: Iterable[TimedStep], row_of: list[int], row_of_value: Mapping[str, int]
) -> dict[int, list[int]]:
    """For each row's op, the rows of the collectives without a line that run before it."""
    found: dict[int, list[int]] = {}
    waiting: dict[int, None] = {}
    for step in steps:
        if step.collective is not None and step.location is None:
            waiting[row_of[step.collective]] = None
        elif waiting and step.value is not None and step.value in row_of_value:
            before = found.setdefault(row_of_value[step.value], [])
            before += [row for row in waiting if row not in before]
            waiting.clear()
    return found


def _times(cost: Cost, tables: Tables) -> dict[int, float]:
    """The part of the step that each place takes, for ops and for collectives that are awaited."""
    found: dict[int, float] = {}
    ops = ((row.location, row.step_seconds) for row in cost.ops)
    sent = ((row.cause_location or row.location, row.exposed_seconds) for row in cost.collectives)
    for location, seconds in (*ops, *sent):
        place = tables.place(location)
        found[place] = found.get(place, 0.0) + seconds
    return found


@dataclass
class _Piece:
    """One step, or several neighbouring steps, in one lane of the timeline."""

    lane: int
    name: str
    place: int
    seconds: float
    live_bytes: int
    collective: int
    ops: int = 1


def _steps(
    steps: Sequence[TimedStep], fixed_bytes: int, row_of: list[int], tables: Tables
) -> dict[str, Any]:
    """The timeline's lanes and its pieces in order, as one list for each field."""
    lanes = ["compute"]
    pieces = list(_pieces(steps, row_of, lanes, tables))
    if len(pieces) > MAX_STEPS:
        pieces = list(_joined(pieces, lambda one, other: one.place == other.place))
    if len(pieces) > MAX_STEPS:
        most = -(-len(pieces) // MAX_STEPS) * 2
        pieces = list(_joined(pieces, lambda one, _: one.ops < most))
    return {
        "lanes": lanes,
        "steps": {
            "lane": [piece.lane for piece in pieces],
            "name": [tables.text(piece.name) for piece in pieces],
            "place": [piece.place for piece in pieces],
            # Times are in picoseconds.
            "time": [round(piece.seconds * 1e12) for piece in pieces],
            "live": [piece.live_bytes + fixed_bytes for piece in pieces],
            "collective": [piece.collective for piece in pieces],
            "ops": [piece.ops for piece in pieces],
        },
    }


def _pieces(
    steps: Iterable[TimedStep], row_of: list[int], lanes: list[str], tables: Tables
) -> Iterator[_Piece]:
    for step in steps:
        lane, row = 0, -1
        if step.collective is not None:
            row = row_of[step.collective]
            name = step.link or "unknown links"
            if name not in lanes:
                lanes.append(name)
            lane = lanes.index(name)
        place = tables.place(step.location)
        yield _Piece(lane, step.name, place, step.seconds, step.live_bytes, row)


def _joined(pieces: Iterable[_Piece], can_join: Any) -> Iterator[_Piece]:
    """Pieces of computation, each merged into the one before it if ``can_join``."""
    last: _Piece | None = None
    for piece in pieces:
        if last is not None and last.lane == piece.lane == 0 and can_join(last, piece):
            last.seconds += piece.seconds
            last.live_bytes = max(last.live_bytes, piece.live_bytes)
            last.ops += piece.ops
            continue
        if last is not None:
            yield last
        last = piece
    if last is not None:
        yield last
