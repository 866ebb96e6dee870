"""Groups of arguments that get one annotation: those of repeated layers, and optimizer states.

A role is the arguments whose paths differ only in numbers, ``params['layers'][3]['q']``, and their
counterparts in trees of the same form, such as the moments of Adam, if their dims have the same
classes. It is written as patterns that match exactly these arguments. Arguments without paths form
a role if their shapes and classes are equal; it is written as a list of their names.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from shardcore._core import Port
from shardcore.session.paths import Pattern, steps
from shardcore.session.targets import listed

_INDEX = re.compile(r"(?<=\[)\d+(?=\])|(?<=[_.])\d+(?=['\"\].]|$)")
"""The numbers in a path that count layers: indices, and numbers at the end of names."""
_RESULT = re.compile(r"^result(\[\d+\])?")
"""The prefix that JAX puts before the path of a result."""
_MOST_STARS = 6
VALUES = ("begun", "sent", "returned", "cut")
"""What roles of values inside the program are."""


@dataclass(frozen=True)
class Role:
    """Arguments that are annotated alike."""

    patterns: tuple[str, ...]
    """Patterns that together match exactly the arguments of the role."""
    members: tuple[str, ...]
    """The paths of its arguments, or their names if they have none; empty for values."""
    shape: tuple[int, ...]
    classes: tuple[int, ...]
    """The class of each dim."""
    bytes: int
    """Bytes of all its arguments together."""
    is_integer: bool
    """Whether the elements are integers, such as token ids."""
    what: str = "argument"
    """``"argument"``; ``"states"``: those arguments of a role that are optimizer states;
    ``"result"``; ``"next"``: results that are the next state of arguments; or for values
    ``"begun"``: first activations, ``"sent"`` and ``"returned"``: values sent to experts and coming
    back, ``"cut"``: results of products that sum over the width of the residual stream. Unless they
    are annotated, results and values are left to propagation, and states are annotated like the
    role that they are of."""
    donor: int | None = None
    """For donated arguments: the number of the role whose buffers these results reuse; they are
    sharded alike."""

    @property
    def is_value(self) -> bool:
        """Whether its members are values inside the program."""
        return self.what in VALUES

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of its members, or of its values."""
        return self.members or tuple(name for each in self.patterns for name in listed(each))

    @property
    def name(self) -> str:
        """The first pattern, which stands for the role in tables."""
        return self.patterns[0]


def bytes_of(roles: Iterable[Role]) -> int:
    """Return the bytes of all of ``roles`` except next states, which reuse the memory of
    arguments, and states, which are arguments of another role."""
    return sum(role.bytes for role in roles if role.what not in ("next", "states"))


def is_within(role: Role, roles: Sequence[Role]) -> bool:
    """Return whether the members of ``role`` are states, or next states, of another role."""
    return role.what == "states" or (role.donor is not None and roles[role.donor].what == "states")


def wholes(roles: Sequence[Role]) -> list[int | None]:
    """Return for each role the number of the one that its members are states, or next states, of;
    ``None`` if there is none."""
    of = {
        name: number
        for number, role in enumerate(roles)
        if not is_within(role, roles)
        for name in role.members
    }
    return [of[role.members[0]] if is_within(role, roles) else None for role in roles]


def layers(ports: Sequence[Port]) -> list[list[int]]:
    """Return groups of arguments whose paths differ only in numbers and whose types are equal."""
    found: dict[tuple[str, str], list[int]] = {}
    for port in ports:
        if port.label:
            found.setdefault((_INDEX.sub("*", port.label), port.type), []).append(port.index)
    return list(found.values())


@dataclass(frozen=True)
class _Key:
    """What the arguments or results of a role have in common."""

    path: tuple[str, ...]
    """The shared part of their paths; empty if they have none."""
    shape: tuple[int | None, ...]
    classes: tuple[int, ...]
    is_integer: bool


@dataclass(frozen=True)
class Ports:
    """The arguments or the results of a program."""

    every: Sequence[Port]
    kept: frozenset[int]
    """The numbers of those that may not be annotated."""
    classes: Sequence[tuple[int, ...]]
    """The classes of the dims of each."""

    def by_role(self) -> dict[_Key, list[Port]]:
        """Return the ports that may be annotated, grouped into roles.

        Scalars, and ports of unknown shape, are left out.
        """
        found: dict[_Key, list[Port]] = {}
        for port in self.every:
            if port.index in self.kept or not port.shape or None in port.shape:
                continue
            path = _tail(_INDEX.sub("*", _RESULT.sub("", port.label))) if port.label else ()
            key = _Key(path, port.shape, self.classes[port.index], _is_integer(port))
            found.setdefault(key, []).append(port)
        return found

    def next_states(self) -> dict[int, int]:
        """Return, for each donated argument, the number of the result that reuses its memory."""
        return {port.index: number for port in self.every if (number := donated(port)) is not None}


def donated(port: Port) -> int | None:
    """Return the number of the result that reuses the memory of an argument, if there is one."""
    text = port.attributes.get("tf.aliasing_output", "")
    return int(text.split()[0]) if text else None


def of_arguments(arguments: Ports, results: Ports) -> list[Role]:
    """Return the roles of the arguments, in order."""
    names = _Names(arguments.every, results.every)
    members = arguments.by_role().values()
    return [_role(each, arguments.classes, names) for each in members]


def of_results(arguments: Ports, results: Ports, batch: int) -> list[Role]:
    """Return the roles of the results: first those that reuse the memory of arguments, by the role
    of these, then the others in order.

    A result is the next state of an argument if it reuses its memory, or has the same path, shape
    and classes; without paths, the same shape and classes and no ``batch``.
    """
    own = arguments.by_role()
    taken = arguments.next_states()
    open_ports = [port for ports in results.by_role().values() for port in ports]
    by_number = {port.index: port for port in open_ports}
    names = _Names(results.every, arguments.every)
    found: list[Role] = []
    for donor, members in enumerate(own.values()):
        after = [by_number[taken[p.index]] for p in members if taken.get(p.index) in by_number]
        if after:
            found.append(replace(_role(after, results.classes, names), what="next", donor=donor))
    rest = replace(results, kept=results.kept | frozenset(taken.values()))
    for key, members in rest.by_role().items():
        is_next = (key.path and key in own) or (
            batch not in key.classes and replace(key, path=()) in own
        )
        what = "next" if is_next else "result"
        found.append(replace(_role(members, results.classes, names), what=what))
    return found


def of_states(
    arguments: Ports, results: Ports, roles: Sequence[Role], states: Container[int]
) -> list[Role]:
    """Return the roles of optimizer states within ``roles``, those of :func:`of_arguments` followed
    by those of :func:`of_results`, each followed by that of the results that reuse its memory.

    ``states`` are the numbers of the arguments that are states. A role has one if it has a
    parameter, too, and the annotation of the role can be written without its states.
    """
    names = _Names(arguments.every, results.every), _Names(results.every, arguments.every)
    taken = arguments.next_states()
    own = {port.label or port.name: port for port in arguments.every if port.index in states}
    by_number = {port.index: port for port in results.every if port.index not in results.kept}
    found: list[Role] = []
    for role in roles:
        if role.what != "argument":
            continue
        members = [own[name] for name in role.members if name in own]
        if not 0 < len(members) < len(role.members):
            continue
        apart = replace(_role(members, arguments.classes, names[0]), what="states")
        if not {*apart.patterns} < {*role.patterns}:
            continue
        donor = len(roles) + len(found)
        found.append(apart)
        after = [by_number[taken[p.index]] for p in members if taken.get(p.index) in by_number]
        if after:
            its = _role(after, results.classes, names[1])
            found.append(replace(its, what="next", donor=donor))
    return found


def _tail(path: str) -> tuple[str, ...]:
    """The part of a path that counterparts in other trees share: from the first numbered name on,
    ``layers[3]`` or ``layer_3``, or the last step."""
    parts = steps(path)
    for place, step in enumerate(parts):
        if "*" in step:
            return parts[max(place - 1, 0) :] if step == "*" else parts[place:]
    return parts[-1:]


def _role(members: list[Port], classes: Sequence[tuple[int, ...]], names: _Names) -> Role:
    first = members[0]
    shape = tuple(size or 1 for size in first.shape or ())
    return Role(
        tuple(names.patterns([port.index for port in members])),
        tuple(port.label or port.name for port in members),
        shape,
        classes[first.index],
        sum(port.bytes or 0 for port in members),
        _is_integer(first),
    )


def _is_integer(port: Port) -> bool:
    return (port.dtype or "").startswith(("i", "ui"))


class _Names:
    """The names of the arguments and results of a program, to test patterns against."""

    def __init__(self, ports: Sequence[Port], others: Sequence[Port]) -> None:
        self._names = [port.label or port.name for port in ports]
        self._exact = [port.name for port in ports]
        self._labelled = [port.label is not None for port in ports]
        self._others = [steps(port.label or port.name) for port in others]
        self._count = Counter(self._names)
        self._form: dict[str, list[int]] = {}
        for index, name in enumerate(self._names):
            self._form.setdefault(_INDEX.sub("*", name), []).append(index)

    def patterns(self, members: Sequence[int]) -> Iterator[str]:
        """Yield patterns that together match exactly the ports ``members``."""
        wanted = set(members)
        left = [index for index in members if self._labelled[index]]
        if len(left) < len(members):
            yield ", ".join(self._exact[index] for index in members if index not in left)
        while left:
            name = self._names[left[0]]
            if self._count[name] > 1 or "*" in name:
                yield self._exact[left.pop(0)]
                continue
            text, matched = self._widest(name, wanted)
            yield text
            left = [index for index in left if index not in matched]

    def _widest(self, name: str, wanted: set[int]) -> tuple[str, set[int]]:
        """The pattern for ``name`` with the most numbers replaced by ``*`` that matches only
        ``wanted``."""
        form = self._form[_INDEX.sub("*", name)]
        numbers = list(_INDEX.finditer(name))[:_MOST_STARS]
        for count in range(len(numbers), 0, -1):
            for starred in itertools.combinations(numbers, count):
                text = _starred(name, starred)
                pattern = Pattern(text)
                matched = {index for index in form if pattern.matches(steps(self._names[index]))}
                if len(matched) < 2 or not matched <= wanted:
                    continue
                if not any(map(pattern.matches, self._others)):
                    return text, matched
        return name, {index for index in form if self._names[index] == name}


def _starred(name: str, numbers: Iterable[re.Match[str]]) -> str:
    """``name`` with ``*`` in place of each of ``numbers``."""
    found, last = [], 0
    for number in numbers:
        found += [name[last : number.start()], "*"]
        last = number.end()
    return "".join([*found, name[last:]])
