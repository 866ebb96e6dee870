"""What a step works off: how many tokens or examples its arguments have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal

from shardcore.costs.kinds import argument_kinds

if TYPE_CHECKING:
    from shardcore._core import Port

_INTEGER = re.compile(r"u?i\d+")
_BYTE = re.compile(r"u?i8")
_KEY_SIZES = (2, 4)
"""How many integers a key of JAX's random numbers has."""
_RANK_OF_IMAGES = 3
"""Batches of images have more dims than this."""
_ROOT = re.compile(r"[\w%]+")


@dataclass(frozen=True)
class Batch:
    """The number of tokens or examples of a step, over all devices."""

    count: int
    unit: Literal["tokens", "examples"]
    argument: str
    """The path of the argument that has them."""


def batch_of(arguments: Sequence[Port]) -> Batch | None:
    """Return what a step with ``arguments`` works off; ``None`` if they do not tell.

    Tokens are the elements of the first argument of integers with two dims or more, a batch of
    sequences, or several if gradients are accumulated; but bytes with more than two dims are
    images, and integers with all leading dims of an image are labels. If there is no such argument,
    those beside the trees with parameters and states of optimizers tell, if paths say which these
    are and all others have equally many rows: rows are tokens if all of these arguments are lists
    of integers, packed sequences, and otherwise examples. If one of them has only leading dims that
    all have, it has an element an example.
    """
    known = [
        port
        for port in arguments
        if port.shape is not None and None not in port.shape and not _is_key(port)
    ]
    images = [_sizes(port) for port in known if len(_sizes(port)) > _RANK_OF_IMAGES]
    for port in known:
        sizes = _sizes(port)
        is_label = any(_begins(each, sizes) for each in images)
        if _is_sequences(port) and 0 not in sizes and not is_label:
            return Batch(prod(sizes), "tokens", port.label or port.name)
    kinds = argument_kinds(arguments)
    kept = {_root(port) for port in arguments if kinds[port.name] != "other arguments"}
    rest = [port for port in known if port.shape and _root(port) not in kept]
    if not kept or len({_sizes(port)[0] for port in rest}) != 1:
        return None
    shortest = min(map(_sizes, rest), key=len)
    others = [_sizes(port) for port in rest if _sizes(port) != shortest]
    is_shared = bool(others) and all(_begins(each, shortest) for each in others)
    count = prod(shortest) if is_shared else shortest[0]
    are_packed = all(_is_integer(port) and len(_sizes(port)) == 1 for port in rest)
    first = rest[0].label or rest[0].name
    return Batch(count, "tokens" if are_packed else "examples", first) if count else None


def _begins(sizes: Sequence[int], first: Sequence[int]) -> bool:
    return len(first) < len(sizes) and sizes[: len(first)] == first


def _is_sequences(port: Port) -> bool:
    rank = len(_sizes(port))
    return _is_integer(port) and (rank == 2 or (rank > 2 and not _BYTE.fullmatch(port.dtype or "")))


def _is_integer(port: Port) -> bool:
    # Booleans and integers of less than a byte are masks and weights.
    found = _INTEGER.fullmatch(port.dtype or "")
    return found is not None and int(found[0].lstrip("ui")) >= 8


def _is_key(port: Port) -> bool:
    return port.dtype == "ui32" and _sizes(port)[-1:] in [[size] for size in _KEY_SIZES]


def _sizes(port: Port) -> list[int]:
    return [size for size in port.shape or () if size is not None]


def _root(port: Port) -> str:
    """``state`` of ``state['params']['w']``."""
    found = _ROOT.match(port.label or port.name)
    return found[0] if found else ""
