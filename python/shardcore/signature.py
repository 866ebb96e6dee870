"""The signature of a step: where it is defined, and the trees of its arguments and results.

It is plain data, because a step of a user's file is traced in another process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias

Tree: TypeAlias = int | dict[str, object] | None
"""A pytree. A number is a leaf: the argument or the result of the program that it is. ``None`` is a
leaf that JAX drops. A container is ``{"kind": ..., "items": [...]}``: of kind ``"list"``,
``"tuple"``, ``"none"`` or ``"other"`` with its children, or ``"dict"`` with pairs of key and child.
"""


@dataclass(frozen=True)
class Signature:
    """Where a step is defined, and what it takes and returns."""

    file: str | None
    """The file with the function's definition; ``None`` if the function is wrapped in another one,
    or is no Python function."""
    line: int
    """The line where the definition begins, with its decorators."""
    is_jitted: bool
    """Whether the step was jitted when it was given."""
    positional: tuple[Tree, ...]
    """The tree of each positional argument, without static ones."""
    keywords: Mapping[str, Tree]
    """The tree of each argument that is given by keyword."""
    results: Tree
    """The tree of what the function returns."""
    is_joined: bool = False
    """Whether the step was returned with a tuple of its arguments behind it, not with one argument
    after the other."""

    def to_json(self) -> str:
        """Return it as JSON, which :meth:`from_json` reads."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str | bytes) -> Signature:
        """Return what :meth:`to_json` wrote."""
        found = json.loads(text)
        return Signature(**{**found, "positional": tuple(found["positional"])})
