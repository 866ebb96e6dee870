"""Reads the events of an ``XSpace``, the protocol buffer of XProf traces."""

from __future__ import annotations

from collections.abc import Iterator

from shardcore.errors import Diagnostic, ParseError
from shardcore.profiles.event import Event
from shardcore.protobuf import Message, WireError

__all__ = ["xplane_events"]

_STATS = ("hlo_op", "hlo_module", "run_id")


def xplane_events(data: bytes, name: str) -> Iterator[Event]:
    """Yield the events of ``data``.

    Raises:
        ParseError: the data are no ``XSpace``, or are cut off (``invalid-trace``); the message has
            the byte position.
    """
    try:
        for field, value in Message(data).fields():
            if field == 1 and isinstance(value, Message):
                yield from _plane(value)
    except WireError as error:
        message = f"{name} is no trace of XProf, or was cut off: {error}"
        hint = "give a trace that jax.profiler wrote, whole"
        raise ParseError(Diagnostic("invalid-trace", message, hint, name)) from None


def _plane(plane: Message) -> Iterator[Event]:
    title, lines = "", []
    events: dict[int, tuple[str, list[Message]]] = {}
    stats: dict[int, str] = {}
    for field, value in plane.fields():
        if not isinstance(value, Message):
            continue
        if field == 2:
            title = value.text()
        elif field == 3:
            lines.append(value)
        elif field in (4, 5):
            key, inner = _entry(value)
            if inner is not None:
                known, shown, own = _metadata(inner)
                if field == 4:
                    events[key] = (shown or known, own)
                else:
                    stats[key] = known
    wanted = {key: text for key, text in stats.items() if text in _STATS}
    of_metadata = {key: _stats(own, wanted, stats) for key, (_, own) in events.items()}
    for line in lines:
        label, begin, rows = "", 0, []
        for field, value in line.fields():
            if not isinstance(value, Message):
                begin = value if field == 3 else begin
            elif field == 2:
                label = value.text()
            elif field == 4:
                rows.append(value)
        for row in rows:
            key, offset, duration, own = 0, 0, 0, []
            for field, value in row.fields():
                if isinstance(value, Message):
                    if field == 4:
                        own.append(value)
                elif field == 1:
                    key = value
                elif field == 2:
                    offset = value
                elif field == 3:
                    duration = value
            found = of_metadata.get(key, {}) | _stats(own, wanted, stats)
            yield Event(
                name=found.get("hlo_op") or events.get(key, ("", []))[0],
                module=found.get("hlo_module"),
                line=f"{title} {label}",
                # Lines begin at nanoseconds; the rest is in picoseconds.
                start=begin * 1000 + offset,
                seconds=duration / 1e12,
                run=found.get("run_id"),
            )


def _entry(entry: Message) -> tuple[int, Message | None]:
    """The key and value of a map entry."""
    key, inner = 0, None
    for field, value in entry.fields():
        if field == 1 and isinstance(value, int):
            key = value
        elif field == 2 and isinstance(value, Message):
            inner = value
    return key, inner


def _metadata(message: Message) -> tuple[str, str, list[Message]]:
    """The name, display name and stats of metadata."""
    name, shown, stats = "", "", []
    for field, value in message.fields():
        if isinstance(value, Message):
            if field == 2:
                name = value.text()
            elif field == 4:
                shown = value.text()
            elif field == 5:
                stats.append(value)
    return name, shown, stats


def _stats(rows: list[Message], wanted: dict[int, str], names: dict[int, str]) -> dict[str, str]:
    """The ``wanted`` stats among ``rows``: strings, references into ``names``, or numbers."""
    found = {}
    for row in rows:
        key, text = 0, ""
        for field, value in row.fields():
            if field == 1 and isinstance(value, int):
                key = value
            elif field == 5 and isinstance(value, Message):
                text = value.text()
            elif field == 7 and isinstance(value, int):
                text = names.get(value, "")
            elif field in (3, 4):
                text = str(value)
        if key in wanted and text:
            found[wanted[key]] = text
    return found
