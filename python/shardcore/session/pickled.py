"""Sessions as bytes: the program as text, and the edits by name."""

from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from shardcore._core import Module, Result, TensorSharding

if TYPE_CHECKING:
    from shardcore.session.session import Session


def pickled(session: Session) -> tuple[Any, ...]:
    """What ``__reduce__`` returns: a function and arguments that rebuild ``session`` with its
    undos."""
    _, text, shardy, options = session._snapshot()
    edits, named = session._edits, session._by_exact_names
    steps = [(named(before), are_plain) for before, are_plain in edits.steps]
    now = (named(edits.now), edits.are_plain)
    program = (text, session.module.filename, shardy)
    return _unpickled, (program, session._wrap, options, steps, now)


def _unpickled(
    program: tuple[str, str, str],
    wrap: Callable[[Result], Any] | None,
    options: dict[str, Any],
    steps: list[tuple[dict[str, TensorSharding | EllipsisType | None], bool]],
    now: tuple[dict[str, TensorSharding | None], bool],
) -> Session:
    text, filename, shardy = program
    module = Module.parse(text, filename=filename, shardy=shardy)
    session = module.session(wrap=wrap, **options)
    edits = session._edits
    for before, are_plain in steps:
        absent = [session._targets.find(name)[0] for name, each in before.items() if each is ...]
        given = session._read({name: each for name, each in before.items() if each is not ...})
        edits.steps.append(({**dict.fromkeys(absent, ...), **given}, are_plain))
    named, edits.are_plain = now
    edits.now = session._read(named)
    edits.version += 1
    return session
