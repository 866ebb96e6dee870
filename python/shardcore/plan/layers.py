"""Programs with fewer of their repeated layers, from which the cost of the whole is extrapolated.

In a program of equal unrolled layers the text repeats: runs of equal blocks of ops in the forward
pass, the backward pass and the optimizer. The middle blocks of each run are cut out, and users of
their values use those of the block before. Costs grow linearly in the number of layers, and so does
the memory at each op, so two such programs, the second with one layer more, give the cost of the
whole; this is checked against the whole program first. The figures of a plan are never
extrapolated: the best annotations are evaluated on the whole program at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from shardcore._core import Module
from shardcore.errors import ShardcoreError
from shardcore.pipeline.repeated_blocks import Run, runs

LEAST_LAYERS = 8
"""Programs with fewer layers are not cut."""
_KEPT = 2
"""The number of layers of the smaller program."""

_HEAD = re.compile(r"  func\.func public @")
_STATEMENT = re.compile(r"    [^\s}^]")
"""The start of a line with an op of a function body; other lines continue an op."""
_NAME = re.compile(r"%[A-Za-z0-9_$.-]+")
_LOCATION = re.compile(r"\s*loc\((?:[^()\"]|\"[^\"]*\"|\([^()]*\))*\)")
_USE = re.compile(r"(%[A-Za-z0-9_$.-]+)(#\d+)?")


@dataclass(frozen=True)
class _Statement:
    """An op of the entry function, as text."""

    text: str
    defined: tuple[str, ...]
    """The names of its results, without result numbers."""
    used: tuple[str, ...]


@dataclass(frozen=True)
class _Layers:
    """A run of blocks of ops, each of one layer."""

    run: Run
    first: int
    """The layer of the first block. Layers are counted from that of the first block of the first
    run."""
    step: int
    """1 if the layers ascend, -1 if they descend, as in a backward pass."""

    def number(self, layer: int) -> int:
        """The number of the block of ``layer``."""
        return (layer - self.first) * self.step

    @property
    def after_first(self) -> tuple[int, int]:
        """The least and the greatest layer of the blocks after the first one."""
        ends = self.first + self.step, self.first + self.step * (self.run.count - 1)
        return min(ends), max(ends)


def shallow(module: Module) -> tuple[Module, Module, int] | None:
    """Return two programs with fewer layers, and how many layers the whole has more than the first.

    The second program has one layer more than the first. ``None`` if there are fewer than
    :data:`LEAST_LAYERS` layers, or the text does not have the form needed for cutting.
    """
    try:
        text = _Text(str(module))
    except _Unreadable:
        return None
    found = list(runs([_canonical(each.text) for each in text.statements[:-1]], LEAST_LAYERS - 2))
    counts: Counter[int] = Counter()
    for run in found:
        counts[run.count] += run.period
    if not counts:
        return None
    layers = max(counts, key=lambda count: (counts[count], count))
    parts = text.layers([run for run in found if layers - 2 <= run.count <= layers])
    # The values of the block before those that are cut take the place of theirs.
    first = max(part.after_first[0] for part in parts)
    last = min(part.after_first[1] for part in parts)
    fewer = min(last - first + 1, *(part.run.count - _KEPT for part in parts))
    if layers < LEAST_LAYERS or fewer < 2:
        return None
    try:
        small, large = (
            Module.parse(text.without(parts, range(first, first + cut)), shardy=module.shardy)
            for cut in (fewer, fewer - 1)
        )
    except ShardcoreError:
        return None
    return small, large, fewer


def value_names(module: Module) -> frozenset[str]:
    """Return the names of the values of ``module``."""
    return frozenset(_NAME.findall(str(module)))


class _Unreadable(Exception):  # noqa: N818 - a program in another form is no error
    """The program text does not have one op after the other."""


def _canonical(text: str) -> str:
    return _NAME.sub("%", _LOCATION.sub("", text))


class _Text:
    """A module's text, with the entry function split into ops."""

    def __init__(self, text: str) -> None:
        lines = text.splitlines()
        heads = [place for place, line in enumerate(lines) if _HEAD.match(line)]
        if not heads:
            raise _Unreadable
        head = heads[0]
        end = next((at for at in range(head, len(lines)) if lines[at].startswith("  }")), head)
        starts = [at for at in range(head + 1, end) if _STATEMENT.match(lines[at])]
        if not starts or starts[0] != head + 1:
            raise _Unreadable
        self._before, self._after = lines[:head], lines[end:]
        bounds = [*starts, end]
        joined = ["\n".join(lines[a:b]) for a, b in pairwise(bounds)]
        self.statements = [_statement(each) for each in joined]
        """The ops; the last one is the return."""
        self._head = _Head(lines[head])

    def layers(self, runs: Sequence[Run]) -> list[_Layers]:
        """Return the layers of the blocks of ``runs``: those whose values they use most."""
        found: list[_Layers] = []
        layer_of: dict[str, int] = {}
        for run in sorted(runs, key=lambda run: run.start):
            votes = Counter({(0, 1): 0})
            for number in range(run.count):
                for op in run.block(number):
                    for layer in (layer_of[n] for n in self.statements[op].used if n in layer_of):
                        votes.update([(layer - number, 1), (layer + number, -1)])
            each = _Layers(run, *votes.most_common(1)[0][0])
            found.append(each)
            for number in range(run.count):
                for op in run.block(number):
                    layer = each.first + each.step * number
                    layer_of.update(dict.fromkeys(self.statements[op].defined, layer))
        return found

    def without(self, parts: Sequence[_Layers], cut: range) -> str:
        """Return the text without the blocks of the layers ``cut``."""
        renamed: dict[str, str] = {}
        removed: set[int] = set()
        for part in parts:
            numbers = [part.number(layer) for layer in cut]
            before = part.run.block(min(numbers) - 1)
            for number in numbers:
                for ours, kept in zip(part.run.block(number), before, strict=True):
                    removed.add(ours)
                    names = zip(
                        self.statements[ours].defined,
                        self.statements[kept].defined,
                        strict=True,
                    )
                    renamed.update(names)
        body = [each for place, each in enumerate(self.statements) if place not in removed]
        dropped = {name for place in removed for name in self.statements[place].defined}
        returned = _Return(body.pop().text)
        stays = [i for i, name in enumerate(returned.names) if name.split("#")[0] not in dropped]

        def rename(found: re.Match[str]) -> str:
            return renamed.get(found[1], found[1]) + (found[2] or "")

        texts = [_USE.sub(rename, each.text) for each in body]
        texts.append(returned.with_results(stays))
        used = set(_NAME.findall("\n".join(texts)))
        head = self._head.with_ports(used, stays)
        return "\n".join([*self._before, head, *texts, *self._after])


def _statement(text: str) -> _Statement:
    head, equals, _ = text.partition(" = ")
    defined: tuple[str, ...] = ()
    if equals and head.strip().startswith("%"):
        defined = tuple(part.strip().split(":")[0] for part in head.split(","))
    used = tuple(dict.fromkeys(found[1] for found in _USE.finditer(text)))
    return _Statement(text, defined, tuple(name for name in used if name not in defined))


class _Head:
    """The line that begins a function, with its arguments and results."""

    def __init__(self, line: str) -> None:
        start = line.find("(")
        end = _closing(line, start)
        arrow = line.find("(", end + 1)
        if start < 0 or not line.rstrip().endswith("{") or not line[end + 1 :].startswith(" -> ("):
            raise _Unreadable
        self._name, self._arguments = line[:start], _split(line[start + 1 : end])
        last = _closing(line, arrow)
        self._results, self._rest = _split(line[arrow + 1 : last]), line[last + 1 :]

    def with_ports(self, used: set[str], results: Sequence[int]) -> str:
        """Return the line with the arguments in ``used`` and the ``results``."""
        places = {old: new for new, old in enumerate(results)}

        def aliased(found: re.Match[str]) -> str:
            new = places.get(int(found[1]))
            return f"jax.none = {found[1]}" if new is None else f"tf.aliasing_output = {new}"

        kept = [each for each in self._arguments if each.split(":")[0].strip() in used]
        kept = [re.sub(r"tf\.aliasing_output = (\d+)", aliased, each) for each in kept]
        listed = [_called(self._results[place], f"result {place}") for place in results]
        return f"{self._name}({', '.join(kept)}) -> ({', '.join(listed)}){self._rest}"


def _called(result: str, name: str) -> str:
    """A result's type and attributes, with ``name`` as its path if it has none."""
    if "jax.result_info" in result:
        return result
    info = f'jax.result_info = "{name}"'
    head, brace, rest = result.partition(" {")
    return f"{head} {{{info}, {rest}" if brace else f"{head} {{{info}}}"


class _Return:
    """The line that ends a function."""

    def __init__(self, line: str) -> None:
        found = re.match(r"\s*(?:func\.)?return (.*?) : (.*)$", _LOCATION.sub("", line))
        if found is None:
            raise _Unreadable
        self.names, self._types = _split(found[1]), _split(found[2])

    def with_results(self, places: Sequence[int]) -> str:
        """Return the line with only the results at ``places``."""
        names = ", ".join(self.names[place] for place in places)
        types = ", ".join(self._types[place] for place in places)
        return f"    return {names} : {types}" if places else "    return"


_MARK = re.compile(r'"(?:[^"\\]|\\.)*"|->|[()\[\]{}<>,]')


def _marks(text: str, start: int) -> Iterator[tuple[int, int]]:
    """The positions from ``start`` on of brackets, with their change of depth, and of commas, with
    0; those in strings are left out."""
    for found in _MARK.finditer(text, start):
        mark = found[0]
        if len(mark) == 1 and mark != '"':
            yield found.start(), 0 if mark == "," else 1 if mark in "([{<" else -1


def _closing(text: str, start: int) -> int:
    """The position of the bracket that closes the one at ``start``."""
    depth = 0
    for place, change in _marks(text, max(start, 0)):
        depth += change
        if change and depth == 0:
            return place
    raise _Unreadable


def _split(text: str) -> list[str]:
    """The parts of ``text`` between commas that are outside of brackets and strings."""
    parts: list[str] = []
    last = depth = 0
    for place, change in _marks(text, 0):
        depth += change
        if change == 0 and depth == 0:
            parts.append(text[last:place].strip())
            last = place + 1
    tail = text[last:].strip()
    return [*parts, tail] if tail else parts
