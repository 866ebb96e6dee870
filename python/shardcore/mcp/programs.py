"""The open programs, each with a session, and the answers of tools."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from shardcore._core import Result
from shardcore.calculus.mistakes import choices
from shardcore.controls import visible
from shardcore.errors import Diagnostic, ShardcoreError
from shardcore.session import Session

MOST_PROGRAMS = 16
"""How many programs are open at once; opening another closes the least recently used one."""
MOST_UNDOS = 100
"""How many edits can be undone."""
MOST_LINES = 60
"""How many lines an answer has at most."""
MOST_CHARACTERS = 6000
"""How many characters an answer has at most."""


@dataclass
class Program:
    """An open program."""

    name: str
    """The name that calls use: ``p1``."""
    path: str
    """The path that it was opened from."""
    hardware: str
    """The chip of its figures."""
    session: Session
    opened: Session = field(repr=False)
    """The session when the program was opened."""
    planned: Session | None = field(default=None, repr=False)
    """The session with the annotations of the last plan."""
    _before: deque[Session] = field(default_factory=lambda: deque(maxlen=MOST_UNDOS), repr=False)

    @property
    def result(self) -> Result:
        """The propagation result."""
        found: Result = self.session.result
        return found

    def become(self, session: Session) -> None:
        """Take over the annotations of ``session``; can be undone."""
        self._before.append(self.session)
        self.session = session

    def before(self) -> Session:
        """The session before the last edit.

        Raises:
            ShardcoreError: there is none (``invalid-arguments``).
        """
        if not self._before:
            message = "there is nothing to undo"
            raise ShardcoreError(Diagnostic("invalid-arguments", message, "edit(set={...})"))
        return self._before[-1]

    def undo(self) -> None:
        """Undo the last edit."""
        self.session = self.before()
        self._before.pop()


@dataclass(frozen=True)
class Answer:
    """The answer of a tool: a few lines, and the call that is useful next."""

    text: str
    next: str

    def __str__(self) -> str:
        lines = visible(self.text).rstrip("\n").split("\n")
        shown = lines[:MOST_LINES]
        while len(shown) > 1 and sum(map(len, shown)) > MOST_CHARACTERS:
            shown.pop()
        shown[-1] = shown[-1][:MOST_CHARACTERS]
        if len(shown) < len(lines):
            shown.append(f"... {len(lines) - len(shown)} lines more; ask for less of it")
        return "\n".join([*shown, f"next: {visible(self.next)}"])


class Programs:
    """The open programs, the most recently used one last."""

    def __init__(self, hardware: str, seconds: float) -> None:
        self.hardware = hardware
        """The chip for programs without one."""
        self.seconds = seconds
        """The time limit of a call."""
        self._open: dict[str, Program] = {}
        self._opened = 0

    def add(self, path: str, session: Session, hardware: str | None) -> Program:
        """Keep a program open."""
        self._opened += 1
        name = f"p{self._opened}"
        program = Program(name, path, hardware or self.hardware, session, session.__copy__())
        self._open[name] = program
        if len(self._open) > MOST_PROGRAMS:
            del self._open[next(iter(self._open))]
        return program

    def get(self, name: str | None) -> Program:
        """Return the program ``name``, or the most recently used one.

        Raises:
            ShardcoreError: there is no such program (``no-program``).
        """
        known = list(self._open)
        if name is None and known:
            name = known[-1]
        if name not in self._open:
            message = "no program is open" if name is None else f"no program {name!r} is open"
            hint = choices(name or "", known) if known else 'call open(program="step.mlir") first'
            raise ShardcoreError(Diagnostic("no-program", message, hint))
        self._open[name] = found = self._open.pop(name)
        return found

    def is_open(self, name: str) -> bool:
        """Whether a program ``name`` is open."""
        return name in self._open


def call(name: str, **arguments: Any) -> str:
    """The text of a call; arguments that are ``None`` are left out."""
    given = (f"{key}={value!r}" for key, value in arguments.items() if value is not None)
    return f"{name}({', '.join(given)})"


def table_text(columns: Iterable[str], rows: Iterable[Iterable[str]], most: int) -> str:
    """A table of at most ``most`` rows, without colours."""
    from shardcore.report.console import paragraph, plain_text, table
    from shardcore.units import plural

    kept = [list(row) for row in rows]
    left = len(kept) - most
    parts = [table(list(columns), kept[:most])]
    if left > 0:
        parts.append(paragraph(f"... {plural(left, 'row')} more"))
    return plain_text(parts)
