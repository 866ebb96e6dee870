"""Finds the arguments, results and values that users' names denote."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shardcore.errors import Diagnostic, LocationError
from shardcore.session.paths import Pattern, is_pattern, near_paths, steps

if TYPE_CHECKING:
    from shardcore._core import SessionProgram, TensorSharding

Target = tuple[int, int]
"""The kind of a target (0: an argument, 1: a result of the entry function, 2: a value; larger: a
result of another function) and its index."""

_MAX_CLOSE = 3
_FUNCTION = r"@[A-Za-z0-9_$.-]+ "
_WAY = r"((%[A-Za-z0-9_$.-]+|[a-z_]+\.[a-z0-9_.]+)(#\d+)?( cond| do| region \d+)? )*"
_EXACT = re.compile(rf"({_FUNCTION})?({_WAY}%[A-Za-z0-9_$.-]+(#\d+)?|result \d+)")
"""A name in the module, such as ``"%12"``, ``"@helper %0 do %12"`` or ``"result 0"``."""


def listed(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list, ``"%arg1, %arg13"``; another text stays whole."""
    parts = tuple(part.strip() for part in text.split(",")) if "," in text else ()
    return parts if parts and all(map(_EXACT.fullmatch, parts)) else (text,)


class Targets:
    """The targets of a program by name."""

    def __init__(self, program: SessionProgram) -> None:
        self._program = program
        self._names: dict[Target, str] = {}
        """The unique name by which each target is found and listed."""
        self._ranks: dict[Target, int | None] = {}
        self._by_name: dict[str, Target] = {}
        self._by_steps: dict[tuple[str, ...], Target] = {}
        self._found: dict[str, tuple[Target, ...]] = {}
        self._annotated: list[tuple[Target, TensorSharding]] | None = None
        self._given: frozenset[Target] | None = None
        arguments, results = program.ports()
        ports = [*(((0, port.index), port) for port in arguments)]
        ports += [((1, port.index), port) for port in results]
        self._paths = {target: port.label or port.name for target, port in ports}
        self._exact = {target: port.name for target, port in ports}
        for target, path in self._paths.items():
            # If several targets have one path, it denotes the first.
            self._by_name.setdefault(path, target)
            self._by_steps.setdefault(steps(path), target)
        for target, name in self._exact.items():
            self._by_name.setdefault(name, target)
            path = self._paths[target]
            self._names[target] = path if self._by_name[path] == target else name

    def annotated(self) -> list[tuple[Target, TensorSharding]]:
        """The targets that the original program annotates, arguments and results first."""
        if self._annotated is None:
            targets = [*self._exact, *self._program.annotated_values()]
            given = ((target, self._program.annotation(target)) for target in targets)
            self._annotated = [(target, sharding) for target, sharding in given if sharding]
        return self._annotated

    def is_annotated(self, target: Target) -> bool:
        """Whether the original program annotates ``target``."""
        if self._given is None:
            self._given = frozenset(found for found, _ in self.annotated())
        return target in self._given

    def rank(self, target: Target) -> int | None:
        """The number of dims of ``target``; ``None`` if it is not a ranked tensor."""
        if target not in self._ranks:
            self._ranks[target] = self._program.rank(target)
        return self._ranks[target]

    def name(self, target: Target) -> str:
        """The user's name of ``target``, as :meth:`find` takes it."""
        found = self._names.get(target)
        if found is None:
            found = self._names[target] = self._program.name(target)
        return found

    def exact_name(self, target: Target) -> str:
        """The unique name of ``target`` in the module."""
        return self._exact.get(target) or self.name(target)

    def find(self, text: str) -> tuple[Target, ...]:
        """Return the targets that ``text`` denotes, in order: one for a name, all matches of a
        pattern, all names of a comma-separated list.

        Raises:
            LocationError: there is no such target, or several values have the name
                (``unknown-location``); the hint lists similar paths, or unique names of these
                values.
        """
        if not isinstance(text, str):
            raise TypeError(f"a target is a text, not a {type(text).__name__}")
        found = self._found.get(text)
        if found is None:
            found = self._look_up(text)
            if not found:
                raise LocationError(Diagnostic("unknown-location", *self._unknown(text)))
            self._found[text] = found
        return found

    def _look_up(self, text: str) -> tuple[Target, ...]:
        known = self._by_name.get(text)
        if known is None and not text.startswith(("%", "@")):
            known = self._by_steps.get(steps(text))
        if known is not None:
            return (known,)
        names = listed(text)
        if len(names) > 1:
            return tuple(dict.fromkeys(found for name in names for found in self.find(name)))
        if is_pattern(text):
            pattern = Pattern(text)
            return tuple(
                target for target, path in self._paths.items() if pattern.matches(steps(path))
            )
        found = self._program.find(text)
        return () if found is None else (found,)

    def _unknown(self, text: str) -> tuple[str, str]:
        if text.startswith(("%", "@")):
            is_one_of_several = "#" not in text and self._look_up(f"{text}#0")
            return (
                f"the program has no value {text}",
                f"did you mean {text}#0?"
                if is_one_of_several
                else "values are called as the program before propagation prints them",
            )
        names = list(dict.fromkeys(self._paths.values()))
        close = near_paths(text.replace("*", ""), names, cutoff=0.4)
        what = "matches" if is_pattern(text) else "is called"
        message = f"no argument or result {what} {text}"
        if not names:
            return message, "the program has neither arguments nor results"
        listed = ", ".join(f'"{name}"' for name in close or names[:_MAX_CLOSE])
        return message, f"did you mean {listed}?" if close else f"there is {listed}, ..."
