"""What the lines of a printed module say about shardings.

Ops are read a line each, results in front and attributes in braces; what is broken over several
lines is joined first. All that says no sharding stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from shardcore.errors import ShardcoreError
from shardcore.gspmd.cursor import located
from shardcore.gspmd.hlo_sharding import HloSharding

__all__ = [
    "SHARDING",
    "CustomCall",
    "Source",
    "custom_call",
    "depth",
    "logical_lines",
    "rank_of_type",
]

SHARDING = re.compile(r'mhlo\.sharding = "((?:[^"\\]|\\.)*)"')
_CALL = re.compile(
    r"\s*%(?P<result>[\w$.-]+) = stablehlo\.custom_call "
    r"@(?P<target>Sharding|SPMDFullToShardShape|SPMDShardToFullShape)"
    r"\(%(?P<operand>[\w$.#-]+)\) \{(?P<attributes>.*)\} : "
    r"\((?P<operand_type>.*)\) -> (?P<type>.*)$"
)
_OPEN_DIMS = re.compile(r"unspecified_dims=\[([0-9, ]*)\]")
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)")
_IN_QUOTES = re.compile(r'"(?:[^"\\]|\\.)*"')
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//.*')
_SHAPE = re.compile(r"tensor<((?:(?:[0-9]+|\?)x)*)")


def depth(line: str) -> int:
    """Return how many brackets ``line`` opens and does not close."""
    bare = _IN_QUOTES.sub("", line)
    return sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))


def logical_lines(text: str) -> list[str]:
    """Return the lines of a module without comments, an op or a function's head on one line."""
    lines: list[str] = []
    opened = 0
    for raw in text.split("\n"):
        line = _COMMENT.sub(lambda match: match[1] or "", raw).rstrip()
        if not line and raw.strip():
            continue
        last = lines[-1] if lines else ""
        is_open = opened > 0 and not last.endswith("{")
        if last and (is_open or line.lstrip().startswith((": ", "-> ", "attributes "))):
            lines[-1] = f"{last} {line.strip()}"
            opened += depth(line)
        else:
            lines.append(line)
            opened = depth(line)
    return lines


def unescaped(text: str) -> str:
    """Return what the MLIR string ``text``, without quotes, stands for."""
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else m[1], text)


def rank_of_type(written: str) -> int | None:
    """Return the number of dims of a tensor type; ``None`` for other types."""
    match = _SHAPE.match(written)
    return match[1].count("x") if match and not written.startswith("tensor<*") else None


class Source(NamedTuple):
    """The text that the module was read from, where errors point."""

    text: str
    filename: str

    def parse(self, written: str) -> HloSharding:
        """Read the string ``written``, with MLIR's escapes."""
        try:
            return HloSharding.parse(unescaped(written))
        except ShardcoreError as error:
            raise self.error(error, written) from None

    def error(self, error: ShardcoreError, written: str) -> ShardcoreError:
        """Return ``error``, of a sharding that is ``written`` so, with its place in the module."""
        at = self.text.find(f'"{written}"')
        if at < 0:
            return error
        first = error.diagnostics[0]
        span = (at + 1, at + 1 + len(written))
        if first.place is not None and first.line == 1 and "\\" not in written:
            until = min(at + first.place.end_column, span[1])
            # A canonical text is not the text that was written: then all of it is meant.
            if first.place.source_line in written:
                span = (at + first.place.column, max(until, at + first.place.column + 1))
        moved = located(type(error), first.code, first.message, self.text, span, first.hint)
        return type(error)([d._replace(filename=self.filename) for d in moved.diagnostics])


@dataclass(frozen=True)
class CustomCall:
    """A custom call that says a sharding or changes between whole tensors and shards."""

    result: str
    target: str
    operand: str
    operand_type: str
    type: str
    written: str
    open_dims: tuple[int, ...]


def custom_call(line: str) -> CustomCall | None:
    """Read a line; ``None`` if it is another op, or says no sharding."""
    match = _CALL.match(line)
    written = SHARDING.search(match["attributes"]) if match else None
    if match is None or written is None:
        return None
    dims = _OPEN_DIMS.search(match["attributes"])
    return CustomCall(
        match["result"],
        match["target"],
        match["operand"],
        match["operand_type"],
        match["type"],
        written[1],
        tuple(int(dim) for dim in dims[1].split(",") if dim.strip()) if dims else (),
    )
