"""Replaces control characters, so that a program's text cannot send commands to a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_STEERING = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
)
"""Control characters except tabs and newlines, characters that change the text direction, other
line and paragraph separators, and lone surrogates."""
_SHOWN = re.compile(f"[\r{_STEERING}]")
_ESCAPED = re.compile(f"[{_STEERING}]")


def visible(text: str) -> str:
    """Return ``text`` with control characters replaced by visible ones, such as ``␛`` for ESC.

    Those without a visible counterpart become U+FFFD. The number of characters stays the same.
    """
    return text if text.isprintable() else _SHOWN.sub(_picture, text)


def one_line(text: str) -> str:
    """Return ``text``, such as a name, as one line: newlines become visible too, so that it cannot
    imitate another line of a report."""
    return text if text.isprintable() else visible(text).replace("\n", "\N{SYMBOL FOR LINE FEED}")


def in_lines(record: Any) -> Any:
    """Return ``record``, plain data, with each text in it made one line."""
    if isinstance(record, str):
        return one_line(record)
    if isinstance(record, dict):
        return {key: in_lines(value) for key, value in record.items()}
    if isinstance(record, (list, tuple)):
        return [in_lines(item) for item in record]
    return record


def _picture(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{SYMBOL FOR DELETE}" if code == 0x7F else "\N{REPLACEMENT CHARACTER}"


def escaped(text: str, escape: Callable[[str], str]) -> str:
    """Return ``text`` with ``escape`` applied to each control character except line ends."""
    return _ESCAPED.sub(lambda found: escape(found.group()), text)


def mlir_escape(char: str) -> str:
    r"""Return ``char`` as MLIR's strings escape it: ``\1B`` for ESC, two digits for each byte."""
    return "".join(f"\\{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def json_escape(char: str) -> str:
    r"""Return ``char`` as JSON's strings escape it: ``\u001b`` for ESC."""
    return f"\\u{ord(char):04x}"
