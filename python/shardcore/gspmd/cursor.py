"""Reads a text from left to right; errors have the position in the text.

White space and ``/* comments */`` are allowed between any two tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from shardcore.bounded import MOST_ITEMS
from shardcore.errors import Diagnostic, ParseError, ShardcoreError, VerificationError, place_of

__all__ = ["FORMS", "Cursor", "invalid", "located"]

_BLANK = re.compile(r"(?:\s|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9.-]*")
_NUMBER = re.compile(r"-?[0-9]+")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MAX_DIGITS = 18
_MAX_PRODUCT = 2**63 - 1

FORMS = "forms are {replicated}, {maximal device=3}, {devices=[2,4]<=[8]}, ..."


def located(
    kind: type[ShardcoreError],
    code: str,
    message: str,
    text: str,
    span: tuple[int, int],
    hint: str | None = None,
) -> ShardcoreError:
    """Return the error for a mistake at ``span`` in ``text``."""
    return kind(Diagnostic(code, message, hint, "<string>", place_of(text, *span)))


def invalid(message: str, hint: str, *, text: str | None = None) -> ShardcoreError:
    """Return the error for a sharding that cannot be converted; ``text`` is the whole sharding."""
    if text is None:
        return VerificationError(Diagnostic("invalid-sharding", message, hint))
    return located(VerificationError, "invalid-sharding", message, text, (0, len(text)), hint)


class Cursor:
    """A position in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.skip()

    def skip(self) -> None:
        """Go to the next token."""
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def error(
        self, message: str, hint: str | None = None, span: tuple[int, int] | None = None
    ) -> ShardcoreError:
        """Return a syntax error here, or at ``span``."""
        here = span or (self.at, self.at + 1)
        return located(ParseError, "syntax", message, self.text, here, hint or FORMS)

    def bad(self, message: str, since: int, hint: str | None = None) -> ShardcoreError:
        """Return the error that the text from ``since`` to here parses, but is not valid."""
        end = len(self.text[: self.at].rstrip())
        span = (since, max(end, since + 1))
        return located(
            VerificationError, "invalid-sharding", message, self.text, span, hint or FORMS
        )

    def sees(self, token: str) -> bool:
        """Whether ``token`` comes next."""
        return self.text.startswith(token, self.at)

    def accept(self, token: str) -> bool:
        """Step over ``token`` if it comes next; return whether it did."""
        if not self.sees(token):
            return False
        self.at += len(token)
        self.skip()
        return True

    def expect(self, token: str, where: str) -> None:
        """Step over ``token``, or raise if it does not come next."""
        if not self.accept(token):
            found = repr(self.text[self.at]) if self.at < len(self.text) else "the end"
            raise self.error(f"expected {token!r} {where}, found {found}")

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        self.skip()
        return match.group()

    def word(self) -> str | None:
        """Step over a word if one comes next."""
        return self._match(_WORD)

    def attribute(self) -> str:
        """Step over ``name=``, without space between the two, and return the name."""
        start = self.at
        name = self.word() or ""
        if not name:
            found = repr(self.text[start]) if start < len(self.text) else "the end"
            raise self.error(f"expected the name of an attribute, found {found}")
        self.equals(start + len(name), name)
        return name

    def equals(self, at: int, name: str) -> None:
        """Step over the ``=`` after ``name``, which ends at ``at``."""
        if self.at != at or not self.accept("="):
            raise self.error(f"expected '=' right behind {name}", f"write {name}=", (at, at + 1))

    def string(self, what: str) -> str:
        """Step over a quoted string and return its value."""
        found = self._match(_STRING)
        if found is None:
            raise self.error(f"expected {what} in quotes", "names stand in quotes: 'x'")
        return _ESCAPE.sub(r"\1", found[1:-1])

    def number(self, what: str) -> int:
        """Step over a number."""
        start = self.at
        found = self._match(_NUMBER)
        if found is None:
            raise self.error(f"expected {what}, a number")
        if len(found) > _MAX_DIGITS:
            raise self.error(f"{what} is too large", span=(start, start + len(found)))
        return int(found)

    def numbers(self, what: str, most: int = MOST_ITEMS) -> list[int]:
        """Step over comma-separated numbers, at most ``most``."""
        start = self.at
        found = [self.number(what)]
        while self.accept(","):
            if len(found) == most:
                raise self.bad(f"there are more than {most} numbers", start)
            found.append(self.number(what))
        return found

    def product(self, sizes: Iterable[int], since: int) -> int:
        """Return the product of ``sizes``, which start at ``since`` and count devices."""
        total = 1
        for size in sizes:
            total *= size
            if abs(total) > _MAX_PRODUCT:
                raise self.bad("the product of the sizes is too large", since)
        return total

    def iota_order(self, reshape: tuple[int, ...]) -> tuple[int, ...]:
        """Step over ``T(1,0)``, which follows several dims, and never a single one."""
        if len(reshape) == 1:
            return (0,)
        self.expect("T", "and the order of the dims")
        self.expect("(", "to start the order of the dims")
        start = self.at
        perm = tuple(self.numbers("a dim"))
        if sorted(perm) != list(range(len(reshape))):
            dims = ", ".join(map(str, range(len(reshape))))
            raise self.bad(
                f"the order is no permutation of the dims {dims}", start, "name each of them once"
            )
        self.expect(")", "to end the order of the dims")
        return perm
