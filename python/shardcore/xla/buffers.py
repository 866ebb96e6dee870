"""The bytes that XLA's buffer assignment reserves in HBM, read off a serialized TPU executable.

``memory_analysis()`` has other figures: its temporaries count the holes between buffers twice, or
nothing at all. The executable holds an ``HloProto``: its module (field 1) and its
``BufferAssignmentProto`` (field 3), whose allocations (field 3) have a size (2), a color (8: 0 for
HBM), and say what they are: of a thread (3), an argument (5), an output (7) or a constant (12).
"""

from __future__ import annotations

from collections.abc import Iterator

_MODULE, _BUFFERS = 1, 3
_ALLOCATIONS, _SIZE, _COLOR = 3, 2, 8
_ELSEWHERE = (3, 5, 7, 12)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _length(size: int) -> bytes:
    """``size`` as a varint."""
    parts = bytearray()
    while size > 127:
        parts.append(size & 127 | 128)
        size >>= 7
    return bytes([*parts, size])


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(data, at)
        elif kind in (1, 2, 5):
            size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            if at + size > len(data):
                raise ValueError("a field ends after its message")
            value, at = data[at : at + size], at + size
        else:
            raise ValueError(f"wire type {kind}")
        yield key >> 3, value


def _length_before(data: bytes, end: int) -> Iterator[tuple[int, int]]:
    """The lengths that may be written just before ``end``, with where they begin."""
    for start in range(max(end - 5, 0), end):
        value, after = _varint(data, start)
        if after == end:
            yield value, start


def _messages(data: bytes, name: str) -> Iterator[dict[int, int | bytes]]:
    """What may be an ``HloProto`` in ``data``: it begins with a module, and that with its name."""
    found = -1
    # The name is field 1 of the module, and its entry computation, field 2, follows.
    encoded = name.encode()
    first = b"\n" + _length(len(encoded)) + encoded + b"\x12"
    while (found := data.find(first, found + 1)) >= 0:
        for _, start in _length_before(data, found):
            begin = start - 1
            if data[begin] != _MODULE << 3 | 2:
                continue
            for size, _ in _length_before(data, begin):
                try:
                    yield dict(_fields(data[begin : begin + size]))
                except (ValueError, IndexError):
                    continue


def heap_bytes(executable: bytes, name: str) -> int | None:
    """Return the bytes of temporary buffers in HBM, with the holes between them; ``None`` if the
    executable of the module ``name`` has no buffer assignment."""
    found = [it[_BUFFERS] for it in _messages(executable, name) if _MODULE in it and _BUFFERS in it]
    buffers = max((it for it in found if isinstance(it, bytes)), key=len, default=None)
    if buffers is None:
        return None
    heap = 0
    for field, row in _fields(buffers):
        if field == _ALLOCATIONS and isinstance(row, bytes):
            allocation = dict(_fields(row))
            if not any(allocation.get(it) for it in (*_ELSEWHERE, _COLOR)):
                size = allocation.get(_SIZE, 0)
                heap += size if isinstance(size, int) else 0
    return heap
