"""Trees of specs as Python expressions.

A part of the tree whose leaves all have one spec is written as that spec, which ``jax.jit`` takes
for the whole part; only containers whose leaves differ are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shardcore.signature import Tree

_WIDTH = 88
"""Longer lines are broken."""
_Code = str | tuple[str, list[tuple[str, Any]], str]
"""An expression, or a container: its opening bracket, prefixes and items, closing bracket."""


class UnwritableError(Exception):
    """A container of the tree is no dict, list or tuple."""


def written(tree: Tree, spec_of: Callable[[int], str], first: int = 0) -> str:
    """Return the code of ``tree`` with the text of the spec of each leaf.

    Args:
        tree: the tree; what JAX drops is written as ``None``.
        spec_of: the text of the spec of a leaf by its number.
        first: the column where the code begins.

    Raises:
        UnwritableError: leaves within a container of another type differ.
    """
    return _laid_out(_code(tree, spec_of), first, 0)


def written_tuple(trees: Sequence[Tree], spec_of: Callable[[int], str], first: int = 0) -> str:
    """Return the code of a tuple of ``trees``; otherwise as :func:`written`.

    Raises:
        UnwritableError: as for :func:`written`.
    """
    items = [("", _code(tree, spec_of)) for tree in trees]
    return _laid_out(("(", items, ",)" if len(items) == 1 else ")"), first, 0)


def _code(tree: Tree, spec_of: Callable[[int], str]) -> _Code:
    if not isinstance(tree, dict):
        return "None" if tree is None else spec_of(tree)
    specs = set(_leaves(tree, spec_of))
    if len(specs) == 1:
        return specs.pop()
    kind, items = tree["kind"], tree["items"]
    assert isinstance(items, list)
    if kind == "none" or (kind == "other" and not specs):
        return "None"
    if kind == "dict":
        return "{", [(f"{key!r}: ", _code(each, spec_of)) for key, each in items], "}"
    if kind == "other":
        raise UnwritableError
    inner = [_code(each, spec_of) for each in items]
    opening, closing = ("[", "]") if kind == "list" else ("(", ",)" if len(items) == 1 else ")")
    if len(inner) > 1 and all(each == inner[0] for each in inner):
        one = (opening, [("", inner[0])], ",)" if kind == "tuple" else closing)
        return "", [("", one)], f" * {len(inner)}"
    return opening, [("", each) for each in inner], closing


def _leaves(tree: Tree, spec_of: Callable[[int], str]) -> list[str]:
    if not isinstance(tree, dict):
        return ["None" if tree is None else spec_of(tree)]
    items = tree["items"]
    assert isinstance(items, list)
    parts = [each[1] for each in items] if tree["kind"] == "dict" else items
    return [leaf for each in parts for leaf in _leaves(each, spec_of)]


def _laid_out(code: _Code, column: int, indent: int) -> str:
    """``code`` on one line if it fits behind ``column``, else an item a line."""
    line = _on_a_line(code)
    if isinstance(code, str) or column + len(line) <= _WIDTH:
        return line
    opening, items, closing = code
    if not opening:
        [(_, inner)] = items
        return f"{_laid_out(inner, column, indent)}{closing}"
    deeper = indent + 4
    lines = [
        f"{' ' * deeper}{prefix}{_laid_out(item, deeper + len(prefix) + 1, deeper)},"
        for prefix, item in items
    ]
    return "\n".join([opening, *lines, " " * indent + closing.lstrip(",")])


def _on_a_line(code: _Code) -> str:
    if isinstance(code, str):
        return code
    opening, items, closing = code
    inside = ", ".join(f"{prefix}{_on_a_line(item)}" for prefix, item in items)
    return f"{opening}{inside}{closing}"
