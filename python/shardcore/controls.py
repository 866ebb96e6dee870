"""Control characters made visible: what a program's text holds must not steer a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable

_STEERING = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
"""Control characters but tabs and line ends, what changes the direction of text, and halves of
characters."""
_SHOWN = re.compile(f"[\r{_STEERING}]")
_ESCAPED = re.compile(f"[{_STEERING}]")


def visible(text: str) -> str:
    """Return ``text`` with ``␛`` for ESC, and likewise for other characters that steer a terminal.

    Those without a picture are U+FFFD. The number of characters stays.
    """
    return text if text.isprintable() else _SHOWN.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{SYMBOL FOR DELETE}" if code == 0x7F else "\N{REPLACEMENT CHARACTER}"


def escaped(text: str, escape: Callable[[str], str]) -> str:
    """Return ``text`` with ``escape`` of what steers a terminal, but for line ends."""
    return _ESCAPED.sub(lambda found: escape(found.group()), text)


def mlir_escape(char: str) -> str:
    r"""Return ``char`` as a string of MLIR has it: ``\1B`` for ESC, two digits for each byte."""
    return "".join(f"\\{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def json_escape(char: str) -> str:
    r"""Return ``char`` as a string of JSON has it: ``\u001b`` for ESC."""
    return f"\\u{ord(char):04x}"
