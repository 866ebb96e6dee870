"""Sessions as bytes: the program as text, and the edits by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shardcore._core import Module, Result, TensorSharding

if TYPE_CHECKING:
    from shardcore.session.session import Session


def pickled(session: Session) -> tuple[Any, ...]:
    """What makes ``session`` again, with what can be undone, as ``__reduce__`` returns it."""
    _, text, options = session._snapshot()
    steps = [session._by_exact_names(each) for each in (*session._history, session._edits)]
    return _unpickled, (text, session.module.filename, session._wrap, options, steps)


def _unpickled(
    text: str,
    filename: str,
    wrap: Callable[[Result], Any] | None,
    options: dict[str, Any],
    steps: list[dict[str, TensorSharding | None]],
) -> Session:
    from shardcore.session.session import Session

    session = Session(Module.parse(text, filename=filename), wrap=wrap, **options)
    *session._history, now = (session._read(each) for each in steps)
    session._move_to(now)
    return session
