"""Custom calls that say themselves what one device computes: those of ``custom_partitioning``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from shardcore._core import Mesh, Module, TensorSharding

__all__ = ["TARGET", "Call", "DimAxes", "LocalProgram", "Partitioner", "Tensor"]

TARGET = "CustomSPMDPartitioning"
"""The target of the custom calls that JAX makes of all ``custom_partitioning`` functions."""

DimAxes = list[list[str]]
"""The axes along which each dim is sharded, major to minor."""


class Tensor(NamedTuple):
    """An operand or a result of a call."""

    shape: tuple[int, ...]
    """Its global shape; local along the axes that are manual around the call."""
    dtype: str
    """Its element type as MLIR writes it."""
    sharding: TensorSharding | None
    """Its sharding, complete; ``None`` if it is replicated."""


@dataclass(frozen=True)
class Call:
    """A custom call in a program whose shardings are complete."""

    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    mesh: Mesh
    manual_axes: frozenset[str]
    """The axes that are manual around the call."""
    place: str | None
    """Where it is in the user's program."""


class LocalProgram(NamedTuple):
    """What one device computes of a call."""

    module: Module
    """A program in MLIR's generic form, without aliases; the body of its one manual computation
    computes the results of the call on shards of its operands."""
    operands: list[DimAxes]
    """The shardings of the operands that it takes."""
    results: list[DimAxes]
    """The shardings of the results that it makes."""


class Partitioner(Protocol):
    """The partitioner of a custom call, as the user gave it."""

    def local_program(self, call: Call) -> LocalProgram:
        """Return what one device computes of ``call``."""

    def global_program(self) -> Module | None:
        """Return what the call computes as a whole; ``None`` if that is not known."""


_finders: list[Callable[[str], Partitioner | None]] = []
"""Functions that find the partitioner of a call by its key, the backend configuration."""


def register_finder(finder: Callable[[str], Partitioner | None]) -> None:
    """Add a function that finds partitioners by the backend configurations of calls."""
    _finders.append(finder)


def partitioner(key: str) -> Partitioner | None:
    """Return the partitioner that this process has for calls with this backend configuration.

    Keys are looked up as a whole; nothing is made of what a text says.
    """
    found = (finder(key) for finder in _finders)
    return next((each for each in found if each is not None), None)


_Row = tuple[Sequence[int], str, "TensorSharding | None"]


def local_program(
    key: str,
    operands: Sequence[_Row],
    results: Sequence[_Row],
    mesh: Mesh,
    manual_axes: Sequence[str],
    place: str | None,
) -> LocalProgram | None:
    """Return what one device computes of a call; ``None`` if this process has no partitioner of it.

    Raises:
        PartitionError: the user's function failed (``invalid-rule``).
    """
    known = partitioner(key)
    if known is None:
        return None
    call = Call(_tensors(operands), _tensors(results), mesh, frozenset(manual_axes), place)
    return known.local_program(call)


def _tensors(rows: Sequence[_Row]) -> tuple[Tensor, ...]:
    return tuple(Tensor(tuple(shape), dtype, sharding) for shape, dtype, sharding in rows)


_KEY = re.compile(r"(?P<name>.+)#[0-9a-f]+")


def key_of(name: str, number: int) -> str:
    """Return the key of call ``number`` of the function called ``name``."""
    return f"{name}#{number:x}"


def function_called(key: object) -> str | None:
    """Return the name of the function in a key; ``None`` if the key is not of this process's form,
    as the addresses are that JAX writes.
    """
    found = _KEY.fullmatch(key) if isinstance(key, str) else None
    return None if found is None else found["name"]
