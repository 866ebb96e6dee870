"""What MLIR and shardcore say of programs, side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.shardy.messages import Message, missing
from tests.shardy.mutations import ask_reference, ask_shardcore

NUMBERED = re.compile(r"(?<=for key '\w)_\d+'")
"""A context numbers resources of one name, and the reference is asked all in one context."""
CPP = re.compile(r"::mlir::\w+::")
"""Enumerations are called by their names in C++."""
FOLLOWS = re.compile(
    r"(custom op '[\w.]+' )?"
    r"(failed to parse \w+ parameter|failed parsing .* attribute|expected a param)"
)
"""What the parser of a structure adds to what is wrong within it."""


@dataclass(frozen=True)
class Answer:
    """What both say of a program; of the reference ``None`` if it dies of it."""

    text: str
    theirs: list[Message] | None
    ours: list[Message]

    @property
    def verdict(self) -> str:
        """How the two compare."""
        if self.theirs is None:
            return "the reference dies"
        if not self.theirs:
            return "only shardcore refuses" if self.ours else "both accept"
        if not self.ours:
            return "only the reference refuses"
        lines = {line for line, _ in self.ours}
        if any(line is not None and line not in lines for line, _ in self.theirs):
            return "both refuse, another line"
        is_missing = missing(self.theirs, self.ours)
        return "both refuse, other words" if is_missing else "both refuse alike"


def compare(texts: Sequence[str]) -> Iterator[Answer]:
    """What both say of each of ``texts``."""
    for text, theirs in zip(texts, ask_reference(texts), strict=True):
        said = theirs and [
            (line, CPP.sub("", NUMBERED.sub("'", message)))
            for line, message in theirs
            if len(theirs) == 1 or not FOLLOWS.match(message)
        ]
        yield Answer(text, said, ask_shardcore(text))
