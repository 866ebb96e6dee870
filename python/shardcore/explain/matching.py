"""Matches the parts of compiled collectives with planned collectives.

A part and a planned collective that send the same amount between the same devices are candidates.
Metadata decides between candidates: op names and locations, first those of the collective itself,
then those of neighbouring instructions. Candidates with equal metadata, such as those of equal
layers, are distinguished by the arguments that they are computed from and the results that they
lead to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass

from shardcore.explain.compiled import Compiled, Part, by_part
from shardcore.explain.device_groups import joined_groups
from shardcore.explain.planned import Planned
from shardcore.labels import file_line

__all__ = ["Match", "Matches", "Site", "agree", "match", "short_place"]

_MOST_PAIRS = 1 << 18
"""If one kind has more candidate pairs, only their order decides."""

_AS_SUM = {"reduce_scatter": "all_reduce"}
"""Another kind that a collective may be written as: a reduce-scatter as an all-reduce and a
slice."""


@dataclass(frozen=True)
class Site:
    """A part of a compiled collective."""

    collective: Compiled
    part: Part


@dataclass(frozen=True)
class Match:
    """A planned collective that a part was matched with."""

    planned: Planned
    how: str
    """How it was found: by ``metadata``, ``neighbours``, ``data-flow`` or ``shape``."""
    among: int = 1
    """How many planned collectives it may be; op and line are common to all of them."""
    is_again: bool = False
    """Whether it sends again what another site sends, possibly for another op."""


@dataclass(frozen=True)
class Matches:
    """The matches of the sites and the plan given to :func:`match`."""

    sites: dict[int, Match]
    """The match of each site, by number; several sites may match one planned collective that was
    split, or runs again."""
    merged: dict[int, int]
    """Planned collectives without a site of their own, with the site that does their work;
    collectives in neither dict were dropped."""


def match(sites: Iterable[Site], plan: Iterable[Planned]) -> Matches:
    """Return the matches of ``sites`` with ``plan``."""
    search = _Search(list(sites), list(plan))
    for sends in (_same, _as_sums):
        for places in (_exact_places, _lines):
            search.stage("metadata", sends, True, places, needs_names=False)
        for places in (_exact_places, _lines, _anywhere):
            search.stage("neighbours", sends, False, places, needs_names=True)
    search.joint()
    search.stage("neighbours", _as_sums, False, _exact_places, needs_names=False)
    search.flows()
    search.shapes()
    search.again()
    search.splits()
    search.merge()
    return Matches(search.found, search.merged)


class _Search:
    """The matches found so far."""

    def __init__(self, sites: list[Site], plan: list[Planned]) -> None:
        self.sites, self.plan = sites, plan
        self.found: dict[int, Match] = {}
        self.taken: set[int] = set()
        self.merged: dict[int, int] = {}
        self.sums: set[int] = set()

    def free_sites(self) -> Iterator[tuple[int, Site]]:
        return ((at, one) for at, one in enumerate(self.sites) if at not in self.found)

    def free_plan(self) -> Iterator[tuple[int, Planned]]:
        return ((at, one) for at, one in enumerate(self.plan) if at not in self.taken)

    def stage(
        self,
        how: str,
        sends: Callable[[str, Hashable, int], Hashable],
        is_own: bool,
        places: Callable[[Iterable[str]], Iterable[str]],
        needs_names: bool,
    ) -> None:
        """Match collectives that send the same and have a location in common."""
        rows: dict[Hashable, list[int]] = defaultdict(list)
        for at, row in self.free_plan():
            for place in places(row.locations):
                rows[sends(row.kind, row.groups, row.elements), place].append(at)
        sites: dict[Hashable, list[int]] = defaultdict(list)
        for number, site in self.free_sites():
            own = [one for one in site.part.origins if one.is_own or not is_own]
            found = [one.location for one in own if one.location]
            kind, groups = site.collective.kind, site.collective.groups
            for place in places(found):
                at_place = sends(kind, groups, site.part.elements), place
                if at_place in rows:
                    sites[at_place].append(number)
        for key, numbers in sites.items():
            self._pair(how, numbers, rows[key], is_own, needs_names)

    def _pair(
        self, how: str, numbers: list[int], rows: list[int], is_own: bool, needs_names: bool
    ) -> None:
        """Match candidates, those with the best agreement first."""
        numbers = [one for one in numbers if one not in self.found]
        rows = [one for one in rows if one not in self.taken]
        if len(numbers) * len(rows) > _MOST_PAIRS:
            for number, at in zip(numbers, rows, strict=False):
                self._take(number, at, how, len(rows))
            return
        pairs = []
        for order, number in enumerate(numbers):
            site = self.sites[number]
            for place, at in enumerate(rows):
                names = _names(site, self.plan[at], is_own)
                if _is_other_argument(site, self.plan[at]):
                    continue
                if not names and (needs_names or not _same_direction(site, self.plan[at])):
                    continue
                near = _similar(site.part.sources, self.plan[at].sources)
                near += _similar(site.part.targets, self.plan[at].targets)
                near += 2 * (site.collective.runs == self.plan[at].row.count)
                pairs.append((names, round(near, 6), -abs(order - place), number, at))
        pairs.sort(key=lambda pair: (-pair[0], -pair[1], -pair[2]))
        best: dict[int, int] = defaultdict(int)
        scores: dict[int, tuple[int, float]] = {}
        for names, near, _, number, _ in pairs:
            scores.setdefault(number, (names, near))
            best[number] += scores[number] == (names, near)
        # A compiler adds partial sums before it reduces: each sum gets one site before any gets
        # two.
        for is_shared in (False, True):
            for *_, number, at in pairs:
                is_free = number not in self.found and at not in self.taken
                if is_free and (is_shared or self._sum(at) not in self.sums):
                    self._take(number, at, how, best[number])

    def flows(self) -> None:
        """Match collectives that send the same, from the same arguments and to the same results."""
        self._unique("data-flow", lambda sources, targets: (sources, targets))

    def shapes(self) -> None:
        """Match collectives that are the only ones to send this much between these devices."""
        self._unique("shape", lambda sources, targets: None)

    def _unique(self, how: str, more: Callable[[int, int], Hashable]) -> None:
        rows: dict[Hashable, list[int]] = defaultdict(list)
        for at, row in self.free_plan():
            kind = _AS_SUM.get(row.kind, row.kind)
            rows[kind, row.groups, row.elements, more(row.sources, row.targets)].append(at)
        sites: dict[Hashable, list[int]] = defaultdict(list)
        for number, site in self.free_sites():
            groups, part = site.collective.groups, site.part
            kind = _AS_SUM.get(site.collective.kind, site.collective.kind)
            sites[kind, groups, part.elements, more(part.sources, part.targets)].append(number)
        for key, numbers in sites.items():
            found = rows.get(key, [])
            # If all candidates belong to one op at one line, it does not matter which is which.
            ops = {(self.plan[at].stack, self.plan[at].locations) for at in found}
            if len(ops) == 1 and len(numbers) <= len(found):
                for number, at in zip(numbers, found, strict=False):
                    if not _contradicts(self.sites[number], self.plan[at]):
                        self._take(number, at, how, len(found))

    def joint(self) -> None:
        """Match sums over several axes that were planned one after the other."""
        for number, site in list(self.free_sites()):
            kind, groups = site.collective.kind, site.collective.groups
            for at, row in list(self.free_plan()):
                chain = self._chain(at)
                if (
                    len(chain) > 1
                    and row.kind == kind
                    and row.elements == site.part.elements
                    and joined_groups(self.plan[one].groups for one in chain) == groups
                    and _names(site, row, False)
                ):
                    self._take(number, at, "metadata" if _is_own(site) else "neighbours", 1)
                    self.taken.update(chain)
                    self.merged.update(dict.fromkeys(chain[1:], number))
                    break

    def _chain(self, at: int) -> list[int]:
        """``at`` and the preceding collectives of its kind whose results it sends."""
        chain = [at]
        before = self.plan[at].after
        while before is not None and before not in self.taken and len(chain) < 8:
            if self.plan[before].kind != self.plan[at].kind:
                break
            chain.append(before)
            before = self.plan[before].after
        return chain

    def again(self) -> None:
        """Match sites that send again what another site sends, or an argument that another
        sends."""
        known: dict[Hashable, int] = {}
        for number in sorted(self.found):
            for key in self._sent(number):
                known.setdefault(key, number)
        for number, _ in list(self.free_sites()):
            for key in self._sent(number):
                if key in known:
                    row = self.found[known[key]].planned
                    self.found[number] = Match(row, "data-flow", is_again=True)
                    break

    def _sent(self, number: int) -> Iterator[Hashable]:
        site = self.sites[number]
        kind, groups, part = site.collective.kind, site.collective.groups, site.part
        yield kind, groups, part.elements, part.root
        if part.sources.bit_count() == 1:
            yield kind, groups, part.elements, part.sources

    def splits(self) -> None:
        """Match the parts of a split planned collective, and collectives that were planned inside a
        loop but run once after it.
        """
        rows: dict[Hashable, list[int]] = defaultdict(list)
        for at, row in self.free_plan():
            for place in map(file_line, row.locations):
                rows[row.kind, row.groups, place].append(at)
        filled: Counter[int] = Counter()
        for number, site in list(self.free_sites()):
            kind, groups = site.collective.kind, site.collective.groups
            for one in site.part.origins:
                near = rows.get((kind, groups, file_line(one.location)), ())
                named = [at for at in near if agree(one.op_name, self.plan[at].stack)]
                whole = [at for at in named if self._is_after_loop(site, self.plan[at])]
                whole = [at for at in whole if at not in self.taken]
                if whole:
                    self._take(number, whole[0], "metadata", len(whole))
                    break
                fits = [at for at in named if filled[at] < self._num_parts(site, self.plan[at])]
                if fits:
                    filled[fits[0]] += 1
                    self.found[number] = Match(self.plan[fits[0]], "metadata", len(fits))
                    break

    def _num_parts(self, site: Site, row: Planned) -> int:
        """How many such sites together send as much as ``row``; 0 if it is not split into such
        sites."""
        own, whole = site.part.elements, row.elements
        return whole // own if 0 < own < whole and whole % own == 0 else 0

    def _is_after_loop(self, site: Site, row: Planned) -> bool:
        runs = site.collective.runs
        return runs is not None and site.part.elements * runs == row.elements * row.row.count

    def merge(self) -> None:
        """Find the sites that do the work of planned collectives without a site of their own: they
        send the same values, or the sum of their operands.
        """
        sites = {id(found.planned): number for number, found in self.found.items()}
        known: dict[Hashable, int] = {}
        for at, row in enumerate(self.plan):
            if id(row) in sites:
                for key in _work(at, row):
                    known.setdefault(key, sites[id(row)])
        for at, row in self.free_plan():
            if id(row) not in sites:
                number = next((known[key] for key in _work(at, row) if key in known), None)
                if number is not None:
                    self.merged[at] = number

    def _sum(self, at: int) -> int:
        """A number that is shared by the planned collectives whose results are summed together."""
        found = self.plan[at].sum
        return at if found is None else found

    def _take(self, number: int, at: int, how: str, among: int) -> None:
        self.sums.add(self._sum(at))
        self.found[number] = Match(self.plan[at], how, among)
        self.taken.add(at)


def agree(op_name: str, stack: str) -> bool:
    """Whether an instruction's ``op_name`` may belong to an op with the name stack ``stack``.

    XLA puts the names of calls and loops before those of the ops in them; the plan may keep only
    one of the two, and a program may have lost outer names.
    """
    if not op_name or not stack:
        return False
    if len(op_name) < len(stack):
        return stack.endswith(f"/{op_name}")
    return op_name == stack or op_name.endswith(f"/{stack}") or op_name.startswith(f"{stack}/")


def short_place(location: str) -> str:
    """Return ``location`` without folders and column, ``model.py:12``."""
    name, line, *_ = [*file_line(location).split(":"), "0"]
    return f"{name}:{line}"


def _work(at: int, row: Planned) -> Iterator[Hashable]:
    """Keys that ``row`` shares with collectives that may do its work too."""
    yield row.kind, row.groups, row.elements, row.sent
    yield "sum", at if row.sum is None else row.sum


def _exact_places(locations: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(map(file_line, locations))


def _lines(locations: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys(map(short_place, locations))


def _anywhere(locations: Iterable[str]) -> Iterable[str]:
    return ("",)


def _same(kind: str, groups: Hashable, elements: int) -> Hashable:
    return kind, groups, elements


def _as_sums(kind: str, groups: Hashable, elements: int) -> Hashable:
    return _AS_SUM.get(kind, kind), groups, elements


def _names(site: Site, row: Planned, is_own: bool) -> int:
    """How well op names agree: by the first names, which metadata gets right most often."""
    origins = [one for one in by_part(site.part.origins) if one.is_own or not is_own]
    for place, one in enumerate(origins):
        if agree(one.op_name, row.stack):
            same = file_line(one.location) in map(file_line, row.locations)
            return 2 * (len(origins) - place) + same
    return 0


def _same_direction(site: Site, row: Planned) -> bool:
    """Whether the first metadata is of the same pass as ``row``, forward or backward."""
    if not site.part.origins:
        return True
    return ("transpose(" in site.part.origins[0].op_name) == ("transpose(" in row.stack)


def _is_own(site: Site) -> bool:
    return any(one.is_own for one in site.part.origins)


def _similar(one: int, other: int) -> float:
    either = (one | other).bit_count()
    return (one & other).bit_count() / either if either else 1.0


def _is_other_argument(site: Site, row: Planned) -> bool:
    """Whether both are computed from a single argument, and the arguments differ."""
    one, other = site.part.sources, row.sources
    return one != other and one.bit_count() == 1 and other.bit_count() == 1


def _contradicts(site: Site, row: Planned) -> bool:
    """Whether metadata of the collective itself names other ops than that of ``row``.

    Metadata of neighbours is not considered: a neighbour need not have caused the collective.
    """
    if _is_other_argument(site, row):
        return True
    own = [one for one in site.part.origins if one.is_own and one.location]
    if own:
        return not set(_lines(one.location or "" for one in own)) & set(_lines(row.locations))
    if (row.row.cause or "").removeprefix("stablehlo.") == row.kind:
        return False
    # XLA lists the names in no particular order, with the line of one of them.
    listed = [one.op_name for one in site.part.origins if one.source == "listed"]
    return bool(listed) and not any(agree(name, row.stack) for name in listed)
