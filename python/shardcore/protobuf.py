"""Reads the wire format of protocol buffers, without their definitions."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["Message", "WireError"]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_ENDLESS = 10
"""The largest length of a varint, in bytes."""


class WireError(ValueError):
    """The data are no protocol buffer, or are cut off."""

    def __init__(self, at: int, size: int) -> None:
        self.at = at
        super().__init__(f"byte {at:,} of {size:,}")


class Message:
    """The bytes of a message, or of a string."""

    __slots__ = ("data", "end", "start")

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        self.data, self.start = data, start
        self.end = len(data) if end is None else end

    def text(self) -> str:
        """Return the string."""
        return self.data[self.start : self.end].decode("utf-8", "replace")

    def fields(self) -> Iterator[tuple[int, int | Message]]:
        """Yield number and value of each field: a number, or a message or string.

        Raises:
            WireError: a field is malformed, or longer than its message.
        """
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
                    raise self._error(at)
                yield tag >> 3, Message(self.data, at, at + size)
                at += size
            elif kind in (_FIXED64, _FIXED32):
                at += 8 if kind == _FIXED64 else 4
                if at > self.end:
                    raise self._error(self.end)
            else:
                raise self._error(at)

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
        raise self._error(at)

    def _error(self, at: int) -> WireError:
        return WireError(at, len(self.data))
