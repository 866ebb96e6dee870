"""Finds the changes of annotations that help most; each one is evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from shardcore.labels import pattern_of, sharding_text
from shardcore.why.layouts import Layouts
from shardcore.why.remedy import Edit, Remedy, Search, edits_of, removal
from shardcore.why.text import without_mesh

if TYPE_CHECKING:
    from shardcore._core import Result
    from shardcore.costs import Cost
    from shardcore.costs.records import CollectiveCost

MOST_OPS_TRIED = 1 << 18
"""How many ops all evaluated programs may have together: 0.5 s."""

MOST_TRIALS = 24
"""How many edits are tried at most."""

MOST_SITES = 8
"""Edits are tried for this number of the longest collectives (by location), and for this number of
the largest kinds of arguments."""

LEAST_GAIN = 0.01
"""The least relative reduction of step time or peak that a change must bring to be reported."""


@dataclass(frozen=True)
class Change:
    """A change of one annotation, with its measured effects; negative values are savings."""

    target: str
    """The target to annotate, as :meth:`shardcore.Session.set` takes it."""
    sharding: str
    """The annotation, without its mesh."""
    count: int
    """How many arguments or results ``target`` denotes."""
    step_seconds: float
    """The change of :attr:`shardcore.Cost.step_seconds`."""
    peak_bytes: int
    """The change of a device's peak bytes."""
    wire_bytes: int
    """The change of the bytes that a device sends."""
    fits: bool
    """Whether the program then fits into memory."""
    location: str | None = None
    """The source location of the annotated constraint, if it is one, or of ``line``."""
    line: str | None = None
    """The code that constrains a value of the program, where it is none of the above."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass
class Changes:
    """The result of trying edits of a program."""

    best: list[Change] = field(default_factory=list)
    """The best changes, each on its own, the best first."""
    removing: dict[int, Remedy] = field(default_factory=dict)
    """The best edit that removes a collective, by the index in ``Cost.collectives``."""
    tried: int = 0


def changes(cost: Cost, most: int, known: Iterable[Remedy] = ()) -> Changes:
    """Return at most ``most`` changes, and all edits that were tried to find them.

    The edits are: those that are ``known``; annotations of arguments, results and constraints
    without the axes of the longest collectives; with these axes on one dim only; annotations left
    to propagation; and large unsharded arguments sharded over one axis. An edit applies to all
    layers. If the program fits, the best changes are those that shorten the step most and keep it
    fitting; otherwise those with the lowest peak, and if some fit only those.
    """
    found = Changes()
    trial = next((row.trial for row in cost.collectives if row.trial is not None), None)
    if not most or trial is None:
        return found
    result = trial.result
    tries = min(MOST_OPS_TRIED // max(result.module.num_ops, 1), MOST_TRIALS)
    if not tries:
        return found
    patterns = _Patterns(result)
    searches = dict(_searches(cost.collectives))
    queues = [(at, _settable(search)) for at, search in searches.items()]
    sources = (source for search in searches.values() for source in search.sources)
    places = {source.name: source.location for source in sources if source.kind == "constraint"}
    kept = {each.target: _known(each, cost) for each in known}
    kept = {target: change for target, change in kept.items() if _helps(change, cost)}
    found.tried = len(kept)
    seen: set[tuple[str, str]] = set()
    edits = _in_turns([*queues, (None, _arguments(result))])
    for at, edit in islice(_new(edits, patterns, seen), max(tries - found.tried, 0)):
        after = trial.after(*edit)
        found.tried += 1
        if after is None:
            continue
        if at is not None:
            remedy = removal(searches[at], edit, after)
            best = found.removing.get(at)
            if remedy is not None and (best is None or remedy.rank() < best.rank()):
                found.removing[at] = remedy
        change = _change(edit, patterns.count(edit[0]), cost, after, places.get(edit[0]))
        if _helps(change, cost):
            old = kept.get(change.target)
            if old is None or _rank(change) < _rank(old):
                kept[change.target] = change
    found.best = _best(kept.values(), most)
    return found


def _best(found: Iterable[Change], most: int) -> list[Change]:
    """The best, those that fit if there are any; of changes with the same effect one."""
    ranked = sorted(found, key=_rank)
    fitting = [change for change in ranked if change.fits] or ranked
    alike = {(each.step_seconds, each.peak_bytes): each for each in reversed(fitting)}
    return [each for each in fitting if alike[each.step_seconds, each.peak_bytes] is each][:most]


def _rank(change: Change) -> tuple[bool, float]:
    return not change.fits, change.step_seconds if change.fits else change.peak_bytes


def _helps(change: Change, before: Cost) -> bool:
    if before.fits:
        return change.fits and change.step_seconds <= -LEAST_GAIN * before.step_seconds
    return change.fits or change.peak_bytes <= -LEAST_GAIN * before.peak_bytes


def _change(edit: Edit, count: int, before: Cost, after: Cost, location: str | None) -> Change:
    return Change(
        edit[0],
        sharding_text(str(edit[1])),
        count,
        after.step_seconds - before.step_seconds,
        after.peak_bytes - before.peak_bytes,
        after.rows.sent_bytes - before.rows.sent_bytes,
        after.fits,
        location,
    )


def _known(edit: Remedy, before: Cost) -> Change:
    peak = before.peak_bytes + edit.peak_bytes
    return Change(
        edit.target,
        without_mesh(edit.sharding),
        1,
        edit.seconds,
        edit.peak_bytes,
        edit.wire_bytes,
        peak <= before.hardware.hbm_bytes,
        edit.place,
        edit.line,
    )


class _Patterns:
    """Paths that differ only in numbers, such as those of layers, and have one shape."""

    def __init__(self, result: Result) -> None:
        self._of: dict[str, str] = {}
        ports = [*result.arguments(), *result.results()]
        named = [(port.label, port) for port in ports if port.label]
        shapes: dict[str, set[Any]] = {}
        counts = Counter[str]()
        for label, port in named:
            name = pattern_of(label)
            shapes.setdefault(name, set()).add(port.shape)
            counts[name] += 1
        self._counts = counts
        for label, _ in named:
            name = pattern_of(label)
            if counts[name] > 1 and len(shapes[name]) == 1:
                self._of[label] = name

    def of(self, target: str) -> str:
        """Return the pattern for ``target`` and similar paths; ``target`` itself if there are
        none."""
        return self._of.get(target, target)

    def count(self, target: str) -> int:
        """Return how many paths a target from :meth:`of` denotes."""
        return max(self._counts[target], 1)


def _searches(collectives: Iterable[CollectiveCost]) -> Iterator[tuple[int, Search]]:
    """Yield a search for each of the longest sites of collectives, with the index of its first
    collective.
    """
    seconds: dict[Any, float] = {}
    first: dict[Any, tuple[int, CollectiveCost]] = {}
    for at, row in enumerate(collectives):
        if row.total_seconds:
            key = row.kind, row.axis_refs, row.cause, row.cause_location, row.bytes
            seconds[key] = seconds.get(key, 0.0) + row.total_seconds
            first.setdefault(key, (at, row))
    for key in sorted(seconds, key=lambda key: -seconds[key])[:MOST_SITES]:
        at, row = first[key]
        yield at, row.why.search


def _settable(search: Search) -> Iterator[Edit]:
    """Yield the edits that a user can make: all except those of unconstrained values."""
    written = {source.name for source in search.sources}
    return (
        edit
        for edit in edits_of(search)
        if not edit[0].startswith(("%", "@")) or edit[0] in written
    )


def _arguments(result: Result) -> Iterator[Edit]:
    """Yield edits that shard the largest unsharded arguments over one axis."""
    layouts = Layouts(result)
    ports = sorted(result.arguments(), key=lambda port: -(port.bytes_per_device or 0))
    for port in list({(port.shape, port.sharding): port for port in ports}.values())[:MOST_SITES]:
        known = port.sharding is not None and any(dim.axes for dim in port.sharding.dims)
        if port.shape and not known:
            for sharding in layouts.along_an_axis(port.shape, None):
                yield port.label or port.name, sharding


def _in_turns(
    queues: Iterable[tuple[int | None, Iterator[Edit]]],
) -> Iterator[tuple[int | None, Edit]]:
    """Yield the first edit of each queue, then the second of each, and so on."""
    left = list(queues)
    while left:
        for queue in list(left):
            edit = next(queue[1], None)
            if edit is None:
                left.remove(queue)
            else:
                yield queue[0], edit


def _new(
    edits: Iterable[tuple[int | None, Edit]], patterns: _Patterns, seen: set[tuple[str, str]]
) -> Iterator[tuple[int | None, Edit]]:
    """Yield the edits that a user can make, each only once and for all layers."""
    for at, (target, sharding) in edits:
        general = patterns.of(target)
        key = general, str(sharding)
        if key not in seen:
            seen.add(key)
            yield at, (general, sharding)
