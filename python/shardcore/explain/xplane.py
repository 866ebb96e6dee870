"""Reads the events of an ``XSpace``, the protocol buffer of XProf traces."""

from __future__ import annotations

from collections.abc import Iterator

from shardcore.errors import Diagnostic, ParseError

__all__ = ["xplane_events"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_STATS = ("hlo_op", "hlo_module")
_ENDLESS = 10
"""The largest length of a varint, in bytes."""


def xplane_events(data: bytes, name: str) -> Iterator[tuple[str, str, str, str | None, float]]:
    """Yield plane, line, instruction, module and seconds of each event of ``data``.

    Raises:
        ParseError: the data are no ``XSpace``, or are cut off (``invalid-trace``); the message has
            the byte position.
    """
    space = _Message(data, name)
    for field, value in space.fields():
        if field == 1 and isinstance(value, _Message):
            yield from _plane(value)


def _plane(plane: _Message) -> Iterator[tuple[str, str, str, str | None, float]]:
    title, lines = "", []
    events: dict[int, tuple[str, list[_Message]]] = {}
    stats: dict[int, str] = {}
    for field, value in plane.fields():
        if not isinstance(value, _Message):
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
        label, rows = "", []
        for field, value in line.fields():
            if isinstance(value, _Message):
                if field == 2:
                    label = value.text()
                elif field == 4:
                    rows.append(value)
        for row in rows:
            key, duration, own = 0, 0, []
            for field, value in row.fields():
                if field == 1 and isinstance(value, int):
                    key = value
                elif field == 3 and isinstance(value, int):
                    duration = value
                elif field == 4 and isinstance(value, _Message):
                    own.append(value)
            found = of_metadata.get(key, {}) | _stats(own, wanted, stats)
            name = found.get("hlo_op") or events.get(key, ("", []))[0]
            # Durations are in picoseconds.
            yield title, label, name, found.get("hlo_module"), duration / 1e12


def _entry(entry: _Message) -> tuple[int, _Message | None]:
    """The key and value of a map entry."""
    key, inner = 0, None
    for field, value in entry.fields():
        if field == 1 and isinstance(value, int):
            key = value
        elif field == 2 and isinstance(value, _Message):
            inner = value
    return key, inner


def _metadata(message: _Message) -> tuple[str, str, list[_Message]]:
    """The name, display name and stats of metadata."""
    name, shown, stats = "", "", []
    for field, value in message.fields():
        if isinstance(value, _Message):
            if field == 2:
                name = value.text()
            elif field == 4:
                shown = value.text()
            elif field == 5:
                stats.append(value)
    return name, shown, stats


def _stats(rows: list[_Message], wanted: dict[int, str], names: dict[int, str]) -> dict[str, str]:
    """The ``wanted`` stats among ``rows``: strings, or references into ``names``."""
    found = {}
    for row in rows:
        key, text = 0, ""
        for field, value in row.fields():
            if field == 1 and isinstance(value, int):
                key = value
            elif field == 5 and isinstance(value, _Message):
                text = value.text()
            elif field == 7 and isinstance(value, int):
                text = names.get(value, "")
        if key in wanted and text:
            found[wanted[key]] = text
    return found


class _Message:
    """The bytes of a message, or of a string."""

    __slots__ = ("data", "end", "name", "start")

    def __init__(self, data: bytes, name: str, start: int = 0, end: int | None = None) -> None:
        self.data, self.name = data, name
        self.start, self.end = start, len(data) if end is None else end

    def text(self) -> str:
        return self.data[self.start : self.end].decode("utf-8", "replace")

    def fields(self) -> Iterator[tuple[int, int | _Message]]:
        at = self.start
        while at < self.end:
            tag, at = self._number(at)
            kind = tag & 7
            if kind == _VARINT:
                value, at = self._number(at)
                yield tag >> 3, value
            elif kind == _BYTES:
                size, at = self._number(at)
                if size > self.end - at:
                    raise self._cut_off(at)
                yield tag >> 3, _Message(self.data, self.name, at, at + size)
                at += size
            elif kind in (_FIXED64, _FIXED32):
                at += 8 if kind == _FIXED64 else 4
            else:
                raise self._cut_off(at)

    def _number(self, at: int) -> tuple[int, int]:
        value = 0
        for shift in range(_ENDLESS):
            if at >= self.end:
                break
            byte = self.data[at]
            value |= (byte & 0x7F) << 7 * shift
            at += 1
            if byte < 0x80:
                return value, at
        raise self._cut_off(at)

    def _cut_off(self, at: int) -> ParseError:
        message = f"{self.name} is no trace of XProf, or was cut off: byte {at} of {len(self.data)}"
        hint = "give a trace that jax.profiler wrote, whole"
        return ParseError(Diagnostic("invalid-trace", message, hint, self.name))
