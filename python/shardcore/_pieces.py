"""Joins pieces into one long string, without a second copy of it in memory."""

from __future__ import annotations

from collections.abc import Generator


def joined() -> Generator[str, str | None, None]:
    """Append each piece that is sent; after ``None`` is sent, yield the whole string.

    CPython appends to a string in place if a local variable has the only reference to it: nothing
    is copied, and no list of pieces is kept. (``str.join`` and ``io.StringIO`` both hold the text
    twice for a moment.)
    """
    text = ""
    piece = yield ""
    while piece is not None:
        text += piece
        piece = yield ""
    yield text
