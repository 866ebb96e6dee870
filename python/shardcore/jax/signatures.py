"""The signatures of JAX functions: where they are defined, and their trees as plain data."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax

from shardcore._core import Module
from shardcore.jax.trees import Trees, input_leaves, output_leaves
from shardcore.signature import Signature, Tree

_KEYS = (str, int, bool)
"""The types of keys of dicts that can be written as code."""
_KINDS = {dict: "dict", list: "list", tuple: "tuple", type(None): "none"}


@dataclass(frozen=True)
class Definition:
    """Where a function that was given is defined."""

    file: str | None
    line: int
    is_jitted: bool


UNDEFINED = Definition(None, 0, False)
"""That of a program that was lowered from no function."""


def definition(fn: Any) -> Definition:
    """Return where ``fn`` is defined, a function, a method or a partial of one, jitted or not.

    The file is ``None`` for anything else, such as the gradient of a function.
    """
    is_jitted = isinstance(fn, jax.stages.Wrapped)
    inner = getattr(fn, "__wrapped__", None) if is_jitted else fn
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inner.__func__ if inspect.ismethod(inner) else inner
    if not inspect.isfunction(inner) or hasattr(inner, "__wrapped__"):
        return Definition(None, 0, is_jitted)
    return Definition(inner.__code__.co_filename, inner.__code__.co_firstlineno, is_jitted)


def signature(module: Module, trees: Trees, at: Definition) -> Signature:
    """Return the signature of the function that is defined ``at`` and was lowered to ``module``."""
    leaves: list[int | None] = [None] * trees.inputs.num_leaves
    for place, port in zip(trees.kept, input_leaves(module), strict=True):
        leaves[place] = port.index
    positional, keywords = trees.inputs.children()
    given = iter(leaves)
    return Signature(
        at.file,
        at.line,
        at.is_jitted,
        tuple(_tree(each, given) for each in positional.children()),
        {name: _tree(each, given) for name, each in _named(keywords)},
        _tree(trees.outputs, iter([port.index for port in output_leaves(module)])),
    )


def _named(structure: Any) -> list[tuple[Any, Any]]:
    """The keys of a dict with the structures of its values."""
    return list(zip(structure.node_data()[1], structure.children(), strict=True))


def _tree(structure: Any, leaves: Iterator[int | None]) -> Tree:
    """The tree of ``structure``, whose leaves are the next ones of ``leaves``."""
    data = structure.node_data()
    if data is None:
        return next(leaves)
    kind = _KINDS.get(data[0], "other")
    if kind == "dict" and all(type(key) in _KEYS for key, _ in _named(structure)):
        return {"kind": kind, "items": [[key, _tree(of, leaves)] for key, of in _named(structure)]}
    kind = "other" if kind == "dict" else kind
    return {"kind": kind, "items": [_tree(each, leaves) for each in structure.children()]}
