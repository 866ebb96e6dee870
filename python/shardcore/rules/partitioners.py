"""Custom calls that define their own per-device computation: those of ``custom_partitioning``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from shardcore._core import Mesh, Module, TensorSharding

__all__ = ["TARGET", "Call", "DimAxes", "LocalProgram", "Partitioner", "Tensor"]

TARGET = "CustomSPMDPartitioning"
"""The custom call target that JAX uses for all ``custom_partitioning`` functions."""

DimAxes = list[list[str]]
"""The axes that shard each dim, major to minor."""


class Tensor(NamedTuple):
    """An operand or a result of a call."""

    shape: tuple[int, ...]
    """Its global shape; along axes that are manual at the call, the local shape."""
    dtype: str
    """Its element type as MLIR writes it."""
    sharding: TensorSharding | None
    """Its sharding after propagation; ``None`` if it is replicated."""


@dataclass(frozen=True)
class Call:
    """A custom call in a propagated program."""

    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    mesh: Mesh
    manual_axes: frozenset[str]
    """The axes that are manual at the call."""
    place: str | None
    """Its location in the user's program."""


class LocalProgram(NamedTuple):
    """The per-device computation of a call."""

    module: Module
    """A module in MLIR's generic form, without aliases; the body of its only manual computation
    computes the call's results from shards of its operands."""
    operands: list[DimAxes]
    """The shardings in which it takes the operands."""
    results: list[DimAxes]
    """The shardings in which it computes the results."""


class Partitioner(Protocol):
    """The user's partitioner of a custom call."""

    def local_program(self, call: Call) -> LocalProgram:
        """Return the per-device computation of ``call``."""

    def global_program(self) -> Module | None:
        """Return the global computation of the call; ``None`` if it is unknown."""


_finders: list[Callable[[str], Partitioner | None]] = []
"""Functions that find the partitioner of a call by its key, the backend configuration."""


def register_finder(finder: Callable[[str], Partitioner | None]) -> None:
    """Add a function that finds partitioners by the backend configurations of calls."""
    _finders.append(finder)


def partitioner(key: str) -> Partitioner | None:
    """Return this process's partitioner for calls with this backend configuration.

    Keys are only looked up, never interpreted.
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
    """Return the per-device computation of a call; ``None`` if this process has no partitioner for
    it.

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
    """Return the key of call ``number`` of the function ``name``."""
    return f"{name}#{number:x}"


def function_called(key: object) -> str | None:
    """Return the function's name in a key; ``None`` if the key was not made by :func:`key_of`, such
    as the addresses that JAX writes.
    """
    found = _KEY.fullmatch(key) if isinstance(key, str) else None
    return None if found is None else found["name"]
