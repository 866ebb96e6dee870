"""One long string out of pieces, without a second copy of it in memory."""

from __future__ import annotations

from collections.abc import Generator


def joined() -> Generator[str, str | None, None]:
    """Append each piece that is sent, and yield the whole once ``None`` is.

    CPython lengthens a string in place where only a local variable has it: nothing is copied, and
    no list of pieces is kept. (``str.join`` and ``io.StringIO`` both hold all of it twice for a
    moment.)
    """
    text = ""
    piece = yield ""
    while piece is not None:
        text += piece
        piece = yield ""
    yield text
