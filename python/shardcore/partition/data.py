"""The data on which a partitioned program is tested: small numbers that suit the program's ops.

Each round of data finds mistakes that the others miss. In one round, integers that are multiplied
are odd: a product of odd integers is odd in any width, so it never becomes zero and depends on
every factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from shardcore._core import Module, Port
from shardcore.partition.uses import Use, uses
from shardcore.simulate.dtypes import DTYPES, iinfo, in_type, is_integer
from shardcore.simulate.mistakes import mistake, of_elements

__all__ = ["SMALL", "kinds_of_data", "rounds"]

SMALL = "small"
"""Small integers including zero; some indices are out of range."""
UNITS = "units"
"""Odd integers and powers of two where elements are multiplied; mostly true booleans where all have
to be true (an all-reduction)."""
RARE = "rare"
"""Mostly false booleans where one has to be true (an any-reduction)."""

_MOST_RESULTS = 64
"""Programs with fewer boolean results than this run in several rounds, to reach this number."""
_MOST_REPEATS = 16

Array = np.ndarray[Any, np.dtype[Any]]


def kinds_of_data(found: list[Use]) -> list[str]:
    """Return the kind of data of each round, for a program with these uses of its arguments."""
    units = max((_repeats(use.all_of, use.all_results) for use in found), default=0)
    if any(use.is_factor for use in found):
        units = max(units, 1)
    rare = max((_repeats(use.any_of, use.any_results) for use in found), default=0)
    return [SMALL, *[UNITS] * units, *[RARE] * rare]


def _repeats(length: int, results: int) -> int:
    """How many rounds show a mistake in ``results`` reductions of ``length`` booleans each; one
    result in three depends on a single one of its booleans."""
    return min(-(-_MOST_RESULTS // max(results, 1)), _MOST_REPEATS) if length else 0


def rounds(
    module: Module,
    ports: list[Port],
    random: np.random.Generator,
    dtypes: Mapping[str, np.dtype[Any]] = DTYPES,
) -> Iterator[list[Array]]:
    """Yield the arguments of each run of ``module``, whose arguments are ``ports``: numbers of the
    arguments' own types, stored in arrays of the types in ``dtypes``.

    Raises:
        SimulationError: an argument has elements that cannot be simulated (``unsupported-op``).
    """
    found = uses(module)
    found += [Use()] * (len(ports) - len(found))
    for kind in kinds_of_data(found):
        drawn = [_data(port, use, kind, random) for port, use in zip(ports, found, strict=True)]
        yield [
            in_type(array, dtypes[port.dtype or "f32"])
            for array, port in zip(drawn, ports, strict=True)
        ]


def _data(port: Port, use: Use, kind: str, random: np.random.Generator) -> Array:
    """The elements of one argument in a round of ``kind``."""
    dtype = DTYPES.get(port.dtype or "f32")
    if dtype is None:
        message = f"{port.name} has elements of type {port.dtype}"
        raise mistake("unsupported-op", message, of_elements(str(port.dtype)), (), "")
    shape = tuple(size or 0 for size in port.shape or ())
    if dtype.kind == "b":
        return _booleans(shape, use, kind, random)
    if kind == UNITS and use.is_factor:
        return _units(shape, dtype, random)
    if is_integer(dtype) and use.index_of and not use.is_bound:
        return _indices(shape, dtype, use.index_of, random)
    low, high = -3, 3
    if is_integer(dtype):
        low, high = max(low, int(iinfo(dtype).min)), min(high, int(iinfo(dtype).max))
    elif dtype == DTYPES["f8E8M0FNU"]:
        # This type has positive numbers only.
        low = 1
    numbers = np.asarray(random.integers(low, high + 1, shape))
    if use.is_divisor:
        numbers = np.where(numbers == 0, 1, numbers)
    return numbers.astype(dtype)


def _booleans(shape: tuple[int, ...], use: Use, kind: str, random: np.random.Generator) -> Array:
    if kind == UNITS and use.all_of:
        return np.asarray(random.random(shape) >= 1 / use.all_of)
    if kind == RARE and use.any_of:
        return np.asarray(random.random(shape) < 1 / use.any_of)
    return np.asarray(random.integers(0, 2, shape)).astype(bool)


def _units(shape: tuple[int, ...], dtype: np.dtype[Any], random: np.random.Generator) -> Array:
    """Numbers whose products never become zero: odd integers; for floats powers of two, whose
    products are exact and neither overflow nor underflow."""
    if not is_integer(dtype):
        # Long products overflow less if as many factors are below one as above.
        signs = random.integers(0, 2, shape) * 2 - 1
        return np.asarray(signs * 2.0 ** random.integers(-1, 2, shape)).astype(dtype)
    info = iinfo(dtype)
    low, high = max(int(info.min), -7), min(int(info.max), 7)
    odd = [number for number in range(low, high + 1) if number % 2]
    return np.asarray(random.choice(odd, shape)).astype(dtype)


def _indices(
    shape: tuple[int, ...], dtype: np.dtype[Any], length: int, random: np.random.Generator
) -> Array:
    """Indices along a dim of ``length``; an eighth of them is out of range, at both ends."""
    inside = random.integers(0, length, shape)
    outside = random.choice([-3, -2, -1, length, length + 1, length + 2], shape)
    numbers = np.where(random.integers(0, 8, shape) == 0, outside, inside)
    info = iinfo(dtype)
    return np.clip(numbers, int(info.min), int(info.max)).astype(dtype)
