"""Combines the collectives of a compiled module with the planned ones."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from shardcore.errors import Diagnostic, LocationError
from shardcore.explain.collectives import collectives
from shardcore.explain.compiled import Origin, by_part
from shardcore.explain.explained import Explained, ExplainedCollective, ExplainedPart, Fate
from shardcore.explain.matching import Match, Matches, Site, match, short_place
from shardcore.explain.planned import planned

if TYPE_CHECKING:
    from shardcore._core import Result
    from shardcore.costs.program import Cost
    from shardcore.explain.hlo_text import HloModule
    from shardcore.explain.planned import Planned
    from shardcore.profiles.profile import Profile

__all__ = ["attributed", "check_same_program", "platform_of"]

_LEAST_SHARE = 0.5
"""The least share of a dump's ops that must be found in the program."""
_TILED = re.compile(r"\{[\d,]*:T\(")
_GPU = re.compile(r'"(?:operation_queue_id|device_type|fusion_backend_config)"|__cublas|__triton')


def platform_of(text: str) -> str:
    """Return the platform of the compiler that wrote ``text``: ``tpu``, ``gpu`` or ``cpu``."""
    if _TILED.search(text):
        return "tpu"
    return "gpu" if _GPU.search(text) else "cpu"


def check_same_program(modules: Sequence[HloModule], result: Result) -> frozenset[str]:
    """Return the source lines of the program, ``file:line``, if it matches the dump.

    Raises:
        LocationError: the ops of ``modules`` are not those of ``result`` (``other-program``).
    """
    named = result.module.ops()
    places = frozenset(short_place(op.location) for op in named if op.location)
    found = {
        (row.op_name, short_place(at))
        for module in modules
        for computation in module.computations.values()
        for row in computation.instructions.values()
        if row.op_name and (at := module.location(row))
    }
    if places and found:
        known = sum(place in places for _, place in found)
        if known < _LEAST_SHARE * len(found):
            some = f"only {known} {'is' if known == 1 else 'are'}" if known else "none is"
            raise _other(f"of {len(found)} ops {some} in this program")
    given = len(result.arguments())
    takes = [_num_arguments(module) for module in modules]
    if None not in takes and given not in takes:
        raise _other(f"it takes {takes[0]} arguments, and this program {given}")
    return places


def _num_arguments(module: HloModule) -> int | None:
    """The number of arguments; ``None`` if they are passed as one tuple."""
    rows = module.computations[module.entry].instructions.values()
    given = [row for row in rows if row.opcode == "parameter"]
    return None if any(row.shape.startswith("(") for row in given) else len(given)


def attributed(
    modules: Sequence[HloModule],
    platform: str,
    cost: Cost | None,
    places: Collection[str],
    profile: Profile | None,
) -> Explained:
    """Return the collectives of ``modules``, explained by those in ``cost``."""
    rows = [(module, row) for module in modules for row in collectives(module)]
    sites = [Site(row, part) for _, row in rows for part in row.parts]
    plan = [] if cost is None else planned(cost)
    found = match(sites, plan)
    changes = _changes(sites, plan, found)
    also: dict[int, list[Planned]] = defaultdict(list)
    for at, site in found.merged.items():
        also[site].append(plan[at])
    times: dict[str, float] = {}
    if profile is not None:
        for module in modules:
            times |= profile.seconds(module.name, (row for own, row in rows if own is module))
    explained = []
    number = 0
    for module, row in rows:
        seconds = times.get(row.name)
        total = sum(part.bytes for part in row.parts)
        parts = []
        for part in row.parts:
            share = part.bytes / total if total else 1 / len(row.parts)
            own = found.sites.get(number)
            best = _best(part.origins, own)
            lines = _locations(own, also[number], best)
            parts.append(
                ExplainedPart(
                    operand=part.operand,
                    argument=_argument(module, part.sources),
                    dtype=part.dtype,
                    dims=part.dims,
                    bytes=part.bytes,
                    op=_op(own, best),
                    op_name=max(_names(own, best), key=len),
                    location=next(iter(lines), None),
                    locations=lines,
                    planned=None if own is None else own.planned.row,
                    how=None if own is None else own.how,
                    among=1 if own is None else own.among,
                    changes=changes.get(number, ()),
                    reason=_reason(own, best, places, cost is not None),
                    seconds=None if seconds is None else seconds * share,
                )
            )
            number += 1
        explained.append(
            ExplainedCollective(
                name=row.name,
                kind=row.kind,
                computation=row.computation,
                line=row.line,
                groups=row.groups,
                runs=row.runs,
                is_async=row.is_async,
                parts=tuple(parts),
                seconds=seconds,
            )
        )
    return Explained(
        module=modules[0].name,
        platform=platform,
        num_devices=max(module.num_devices for module in modules),
        collectives=tuple(explained),
        plan=_fates(sites, plan, found, changes),
        has_program=cost is not None,
        trace=None if profile is None else profile.name,
        step_seconds=None if profile is None else profile.step_seconds(modules[0].name),
        notes=() if profile is None else profile.notes,
    )


def _changes(
    sites: Sequence[Site], plan: Sequence[Planned], found: Matches
) -> dict[int, tuple[str, ...]]:
    """For each site, by number, what the compiler did to the planned collective."""
    if not plan:
        return {}
    merging = set(found.merged.values())
    first: dict[int, int] = {}
    changes: dict[int, tuple[str, ...]] = {}
    for number, site in enumerate(sites):
        own = found.sites.get(number)
        if own is None:
            changes[number] = ("added",)
            continue
        row, collective = own.planned, site.collective
        known = []
        is_part = site.part.elements < row.elements
        if len(collective.parts) > 1 or number in merging:
            known.append("merged")
        if collective.runs is not None and collective.runs != row.row.count:
            known.append("moved")
        if is_part:
            known.append("split")
        elif first.setdefault(id(row), number) != number:
            known.append("repeated")
        if collective.kind != row.kind:
            known.append("rewritten")
        changes[number] = tuple(known)
    return changes


def _fates(
    sites: Sequence[Site],
    plan: Sequence[Planned],
    found: Matches,
    changes: Mapping[int, tuple[str, ...]],
) -> tuple[Fate, ...]:
    numbers: dict[int, list[int]] = defaultdict(list)
    for number, own in found.sites.items():
        numbers[id(own.planned)].append(number)
    fates = []
    for at, row in enumerate(plan):
        at_work = numbers.get(id(row), [])
        if at_work:
            known = [change for number in at_work for change in changes.get(number, ())]
        elif at in found.merged:
            at_work, known = [found.merged[at]], ["merged"]
        else:
            known = ["dropped"]
        names = dict.fromkeys(sites[number].collective.name for number in sorted(at_work))
        fates.append(Fate(row.row, tuple(names), tuple(dict.fromkeys(known))))
    return tuple(fates)


def _best(origins: Sequence[Origin], own: Match | None) -> Origin | None:
    """The best metadata: for a planned collective the first with its line."""
    if own is not None and not own.is_again:
        lines = {short_place(at) for at in own.planned.locations}
        for one in origins:
            if one.location and short_place(one.location) in lines and one.op_name:
                return one
    return next((one for one in by_part(origins) if one.op_name or one.location), None)


def _names(own: Match | None, best: Origin | None) -> tuple[str, str]:
    """The name stacks of the op, in the dump and in the program."""
    own = _first(own, best)
    return best.op_name if best else "", own.planned.stack if own else ""


def _first(own: Match | None, best: Origin | None) -> Match | None:
    """``own``, unless it is a second transfer for another op, which metadata names."""
    is_other = own is not None and own.is_again and best is not None and best.location is not None
    return None if is_other else own


def _op(own: Match | None, best: Origin | None) -> str | None:
    own = _first(own, best)
    if own is not None and own.planned.row.cause:
        return own.planned.row.cause
    return best.op_name.rsplit("/", 1)[-1] or None if best else None


def _locations(own: Match | None, also: Sequence[Planned], best: Origin | None) -> tuple[str, ...]:
    own = _first(own, best)
    at = best.location if best else None
    if own is None or not own.planned.locations:
        return (at,) if at else ()
    places = [
        place for row in (own.planned, *also) for place in (*row.locations[:1], *row.summands)
    ]
    # Of several summands, that which XLA names comes first.
    named = [place for place in places if at and short_place(place) == short_place(at)]
    return tuple(dict.fromkeys([*named, *places]))


def _reason(
    own: Match | None, best: Origin | None, places: Collection[str], has_program: bool
) -> str | None:
    if own is not None:
        return None
    if not has_program:
        return "no-program"
    if best is None or best.location is None:
        return "no-metadata"
    if places and short_place(best.location) not in places:
        return "not-in-program"
    return "not-planned"


def _argument(module: HloModule, sources: int) -> str | None:
    """The path of the argument in ``sources``, if there is exactly one."""
    if sources.bit_count() != 1:
        return None
    number = str(sources.bit_length() - 1)
    rows = module.computations[module.entry].instructions.values()
    names = (row.op_name for row in rows if row.opcode == "parameter" and row.operands[0] == number)
    return next(names, None) or None


def _other(what: str) -> LocationError:
    message = f"the compiled program is not this one: {what}"
    hint = "give the program that was compiled, with its locations: as_text(debug_info=True)"
    return LocationError(Diagnostic("other-program", message, hint))
