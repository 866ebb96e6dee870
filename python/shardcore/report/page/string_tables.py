"""The tables of texts, shardings and locations of a page; rows refer to their numbers."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from shardcore._core import TensorSharding, is_installed
from shardcore.labels import REPLICATED, sharding_text

T = TypeVar("T", bound=Hashable)

ABSENT = -1
"""The number that stands for ``None``."""

_WHOLE = re.compile(r"(\[(\{\}(, \{\})*)?\])?")
"""The text of no sharding, or of one that shards no dim."""


class Numbered(Generic[T]):
    """Numbers things in order of first appearance."""

    def __init__(self) -> None:
        self.numbers: dict[T, int] = {}

    def number(self, thing: T | None) -> int:
        """Return the number of ``thing``; :data:`ABSENT` for ``None``."""
        if thing is None:
            return ABSENT
        return self.numbers.setdefault(thing, len(self.numbers))


class Tables:
    """The tables of a page."""

    def __init__(self) -> None:
        self.texts: Numbered[str] = Numbered()
        self.stacks: Numbered[tuple[str, ...]] = Numbered()
        """Call stacks, innermost line first."""
        self._shardings: Numbered[str] = Numbered()
        self._details: list[dict[str, Any]] = []

    def text(self, text: str | None) -> int:
        """Return the number of ``text``."""
        return self.texts.number(text)

    def place(self, location: str | None) -> int:
        """Return the number of the stack that consists of ``location``."""
        return self.stacks.number(None if location is None else (location,))

    def sharding(self, sharding: TensorSharding | None) -> int:
        """Return the number of ``sharding``."""
        if sharding is None:
            return ABSENT
        number = self._shardings.number(str(sharding))
        if number == len(self._details):
            self._details.append(_details(sharding))
        return number

    def places(self) -> Iterator[str]:
        """Yield the user's frames of all stacks; for a stack without any, all of its frames."""
        for stack in self.stacks.numbers:
            own = [place for place in stack if not is_installed(place)]
            yield from own or stack

    def record(self) -> dict[str, Any]:
        """Return the tables as plain data.

        ``tops`` has for each stack the number of the user's innermost frame.
        """
        return {
            "texts": list(self.texts.numbers),
            "stacks": [[split_place(place) for place in stack] for stack in self.stacks.numbers],
            "tops": [_own(stack) for stack in self.stacks.numbers],
            "shardings": self._details,
        }


def _own(stack: Sequence[str]) -> int:
    """The number of the innermost frame outside of installed packages; 0 if there is none."""
    return next((at for at, place in enumerate(stack) if not is_installed(place)), 0)


def split_place(place: str) -> tuple[str, int, int]:
    """Split ``file:line:column``; line and column are 0 if they are missing."""
    file, numbers = place, [0, 0]
    for at in (1, 0):
        rest, _, last = file.rpartition(":")
        if not rest or not last.isdecimal():
            return (place, 0, 0) if at == 1 else (file, numbers[1], 0)
        file, numbers[at] = rest, int(last)
    return file, numbers[0], numbers[1]


def short(sharding: str | None) -> str:
    """A sharding's text without its mesh; a word if every device holds the whole value."""
    text = sharding_text(sharding)
    return REPLICATED if _WHOLE.fullmatch(text) else text


def _details(sharding: TensorSharding) -> dict[str, Any]:
    """The data from which a picture of ``sharding`` is drawn."""
    mesh = sharding.mesh
    text = str(sharding)
    axes = {axis.name for dim in sharding.dims for axis in dim.axes}
    details: dict[str, Any] = {"text": text, "short": short(text), "axes": sorted(axes)}
    if mesh is None:
        return details
    details["unreduced"] = [str(axis) for axis in sharding.unreduced]
    details["mesh"] = [[axis.name, axis.size] for axis in mesh.axes]
    details["devices"] = mesh.device_ids
    names = list(mesh.axis_names)
    # For each dim a list of axes: number, pre-size and size.
    details["dims"] = [
        [[names.index(axis.name), axis.pre_size or 1, axis.size_in(mesh)] for axis in dim.axes]
        for dim in sharding.dims
    ]
    return details
