"""The exceptions for mistakes of users.

Every mistake in a program, a pipeline, a mesh or a sharding raises a :class:`ShardcoreError`. It
holds all mistakes that were found, as :class:`Diagnostic` objects, and its text shows each with its
place::

    error[axis-overlap]: duplicate axis ref: "x"
      --> model.mlir:4:38
      4 |   %0 = ... [{"x"}, {"x"}]
        |              ---    ^^^ first used here
      help: drop one, or split it, e.g. "x":(1)2 and "x":(2)4
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from shardcore.controls import one_line, visible

MOST_DIAGNOSTICS = 1 << 14
"""The most diagnostics that one error has."""

MOST_CHARACTERS = 1000
"""The largest length of a message, a hint or a note; these may quote the user's text."""

MOST_SHOWN = 200
"""The most characters that an error shows of a source line."""

MOST_FOLDED = 5
"""The most warnings that are shown below the one that they follow from."""

LEAD = 80
"""How many characters of a longer line are shown before the place."""

__all__ = [
    "BusyError",
    "CalculusError",
    "CompilerError",
    "Diagnostic",
    "ExpectationError",
    "LocationError",
    "LoweringError",
    "ParseError",
    "PartitionError",
    "PipelineError",
    "Place",
    "PlanError",
    "ProgramTooLargeError",
    "PropagationError",
    "ShardcoreError",
    "SimulationError",
    "VerificationError",
]


class Place(NamedTuple):
    """A place in a text. Lines and columns count from 1; columns are in characters."""

    line: int
    column: int
    end_column: int
    """The column after the last character, at most one after the end of the line."""
    source_line: str
    """The line, or the part of a very long line around the place."""
    source_column: int = 1
    """The column of the first character of ``source_line``."""

    def bounded(self) -> Place:
        """Return the place with a very long line cut to the part around it."""
        if len(self.source_line) <= MOST_SHOWN:
            return self
        at = self.column - self.source_column
        first = max(0, at - LEAD)
        part = self.source_line[first : at + MOST_SHOWN - LEAD]
        return self._replace(source_line=part, source_column=self.source_column + first)

    def underline(self, mark: str) -> str:
        """Return a line that underlines the place in ``source_line`` with ``mark``."""
        start = self.column - self.source_column
        width = min(self.end_column - self.column, max(len(self.source_line) - start, 1))
        lead = "".join("\t" if char == "\t" else " " for char in self.source_line[:start])
        return lead.ljust(start) + mark * max(width, 1)


class Diagnostic(NamedTuple):
    """One mistake, or one warning."""

    code: str
    """What kind of mistake: a stable name like ``"axis-overlap"``."""
    message: str
    """What is wrong, in one sentence."""
    hint: str | None = None
    """What to do about it."""
    filename: str | None = None
    """The name of the text, such as a file name."""
    place: Place | None = None
    """The place of the mistake in the text."""
    related: tuple[Place, str] | None = None
    """A second place that the mistake involves, with a note."""
    detail: Place | None = None
    """The wrong part of the op, if it is on another line than ``place``, the start of the op."""
    severity: str = "error"
    """``"error"``, or ``"warning"`` in :meth:`shardcore.Result.diagnostics`."""
    value: str | None = None
    """The value that a warning is about, by its path in the user's program or its name."""
    location: str | None = None
    """The user's source line of a warning, as in :attr:`shardcore.Value.location`."""
    follows: tuple[Diagnostic, ...] = ()
    """The warnings that follow from this one, in :meth:`shardcore.Result.diagnostics`."""
    remedy: Any = None
    """The edit in the hint of a warning, which was tried, with its effects."""

    @property
    def line(self) -> int | None:
        """The line, from 1; ``None`` if the mistake has no place."""
        return self.place.line if self.place else None

    @property
    def column(self) -> int | None:
        """The column in characters, from 1; ``None`` if the mistake has no place."""
        return self.place.column if self.place else None

    @property
    def end_column(self) -> int | None:
        """The column after the last character; ``None`` if the mistake has no place."""
        return self.place.end_column if self.place else None

    @property
    def source_line(self) -> str | None:
        """The line of text that the mistake is in; ``None`` if it has no place."""
        return self.place.source_line if self.place else None

    def bounded(self) -> Diagnostic:
        """Return the diagnostic with the middle of very long texts left out."""
        related = self.related and (self.related[0].bounded(), bounded(self.related[1]))
        hint, filename = (
            self.hint and bounded(self.hint),
            self.filename and bounded(self.filename, 4096),
        )
        place, detail = (at and at.bounded() for at in (self.place, self.detail))
        return Diagnostic(
            self.code,
            bounded(self.message),
            hint,
            filename,
            place,
            related,
            detail,
            self.severity,
            self.value,
            self.location,
            self.follows,
            self.remedy,
        )

    def record(self) -> dict[str, Any]:
        """Return it as plain data.

        ``location`` is ``file:line:column``: for a mistake in a text, its place, with columns from
        1; for a warning, as in :attr:`shardcore.Value.location`.
        """
        at = None if self.place is None else f"{self.filename}:{self.line}:{self.column}"
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
            "value": self.value,
            "location": self.location or at or self.filename,
            "source_line": self.source_line or None,
            **({"follows": [each.record() for each in self.follows]} if self.follows else {}),
        }

    def __str__(self) -> str:
        return self._text(with_excerpt=True)

    def _text(self, with_excerpt: bool) -> str:
        # Continuation lines are indented, so that they cannot imitate another message.
        message = self.message.replace("\n", "\n    ")
        lines = [f"{self.severity}[{self.code}]: {message}"]
        at = f"{self.filename or '<string>'}:{self.line}:{self.column}" if self.place else None
        if self.location or at:
            lines.append(f"  --> {one_line(self.location or at or '')}")
        if self.place and with_excerpt:
            lines += self._excerpts(self.place)
        if self.hint:
            hint = self.hint.replace("\n", "\n    ")
            lines.append(f"  help: {hint}")
        shown, left = folded([each.code for each in self.follows])
        for each in (self.follows[index] for index in shown):
            at = f" at {one_line(each.location)}" if each.location else ""
            lines.append(f"  from it follows {each.code}{at}: {one_line(each.message)}")
        if left:
            lines.append(f"  from it follows {left}")
        return visible("\n".join(lines))

    def _excerpts(self, place: Place) -> list[str]:
        shown = [place, self.detail, self.related[0] if self.related else None]
        gutter = len(str(max(each.line for each in shown if each)))
        if self.detail is None:
            return self._excerpt(place, gutter)
        whole = self._replace(related=None)._excerpt(place, gutter)
        part = self._excerpt(self.detail, gutter)
        return [*whole, *part] if place.line < self.detail.line else [*part, *whole]

    def _excerpt(self, place: Place, gutter: int) -> list[str]:
        other, label = self.related or (None, "")

        def numbered(shown: Place) -> str:
            return f"  {shown.line:>{gutter}} | {shown.source_line}".rstrip()

        def below(text: str) -> str:
            return f"  {'':{gutter}} | {text}"

        if other is None:
            return [numbered(place), below(place.underline("^"))]
        if _share_an_excerpt(place, other):
            both = other.underline("-").ljust(len(place.source_line))
            marks = place.underline("^")
            merged = "".join(
                mark if mark == "^" else old
                for mark, old in zip(marks.ljust(len(both)), both, strict=False)
            ).rstrip()
            return [numbered(place), below(merged), below(f"--- {label}")]
        here = [numbered(place), below(place.underline("^"))]
        there = [numbered(other), below(f"{other.underline('-')} {label}")]
        return [*here, *there] if place.line < other.line else [*there, *here]


def folded(codes: Sequence[str]) -> tuple[list[int], str]:
    """Return which of many warnings with these codes to show, the first of each code before
    others, and the text about those left out, ``""`` if there are none."""
    seen: Counter[str] = Counter()
    turns = []
    for code in codes:
        turns.append(seen[code])
        seen[code] += 1
    order = sorted(range(len(codes)), key=turns.__getitem__)
    shown, left = sorted(order[:MOST_FOLDED]), Counter(codes[at] for at in order[MOST_FOLDED:])
    words = ", ".join(f"{count} {code}" for code, count in left.items())
    return shown, f"more: {words}" if left else ""


def place_of(text: str, start: int, end: int) -> Place:
    """Return the place of ``text[start:end]``, up to the end of its first line."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    last = len(text) if last < 0 else last
    column = start - first + 1
    end_column = max(min(end, last) - first + 1, column + 1)
    return Place(text.count("\n", 0, start) + 1, column, end_column, text[first:last])


def bounded(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return ``text``; if it has more than ``most`` characters, only its start and its end."""
    if len(text) <= most:
        return text
    last = most // 4
    return f"{text[: most - last - 5]} ... {text[-last:]}"


def _share_an_excerpt(place: Place, other: Place) -> bool:
    """Whether both places can be marked under the same line of text."""
    return (
        place.line == other.line
        and place.source_column == other.source_column
        and place.source_line == other.source_line
        and other.end_column <= place.source_column + len(place.source_line)
    )


class ShardcoreError(ValueError):
    """One or more mistakes of the user.

    ``diagnostics`` holds all of them, in program order; ``code``, ``message``, ``line``, ``column``
    and ``hint`` are those of the first.
    """

    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        given = tuple(islice(diagnostics, MOST_DIAGNOSTICS))
        if not given:
            raise ValueError("an error has at least one diagnostic")
        if not all(isinstance(each, Diagnostic) for each in given):
            raise TypeError("an error is made of diagnostics")
        self.diagnostics = tuple(each.bounded() for each in given)
        super().__init__(self.diagnostics)

    @property
    def code(self) -> str:
        """The first mistake's code, a stable name like ``"axis-overlap"``."""
        return self.diagnostics[0].code

    @property
    def message(self) -> str:
        """What is wrong, in one sentence, for the first mistake."""
        return self.diagnostics[0].message

    @property
    def line(self) -> int | None:
        """The first mistake's line, from 1; ``None`` if it has no place."""
        return self.diagnostics[0].line

    @property
    def column(self) -> int | None:
        """The first mistake's column in characters, from 1; ``None`` if it has no place."""
        return self.diagnostics[0].column

    @property
    def hint(self) -> str | None:
        """What to do about the first mistake."""
        return self.diagnostics[0].hint

    def __str__(self) -> str:
        # Several diagnostics may share one place: its line is shown once.
        before = (None, *(diagnostic.place for diagnostic in self.diagnostics))
        return "\n".join(
            diagnostic._text(
                with_excerpt=bool(diagnostic.related or diagnostic.detail)
                or diagnostic.place != last
            )
            for diagnostic, last in zip(self.diagnostics, before, strict=False)
        )


class ParseError(ShardcoreError):
    """The text cannot be parsed: it is not MLIR, or it uses undefined names."""


class VerificationError(ShardcoreError):
    """A mesh, sharding, rule or op is not valid."""


class PropagationError(ShardcoreError):
    """A valid program cannot be propagated, because of recursion or unsupported types."""


class PipelineError(ShardcoreError):
    """A pass or a pipeline does not exist, or does not have the given options."""


class ProgramTooLargeError(ShardcoreError):
    """The program, or its flattened call graph, exceeds a size limit."""


class BusyError(ShardcoreError):
    """An operation conflicts with one in progress, or would wait for itself.

    For example, a second run on a module that a pass manager is running on; a rule that reads the
    result that is being computed; runs nested too deeply.
    """


class CalculusError(ShardcoreError):
    """A question about sharded arrays has no answer: unknown hardware, a missing size, ..."""


class CompilerError(ShardcoreError):
    """A compiler of XLA's is not installed, has no such chip, or does not compile the program."""


class LocationError(ShardcoreError):
    """No value has this name, or comes from this place in the user's program."""


class PartitionError(ShardcoreError):
    """An op, or a program, cannot be split over devices."""


class PlanError(ShardcoreError):
    """A program cannot be planned: there is no mesh, nothing to shard, or nothing fits."""


class LoweringError(ShardcoreError):
    """A function cannot be lowered with the given mesh and shardings."""


class ExpectationError(ShardcoreError):
    """Expectations of a result are malformed: unknown keys, values, or kinds of collectives."""


class SimulationError(ShardcoreError):
    """A program cannot be simulated, its arguments do not fit, or a collective hangs."""
