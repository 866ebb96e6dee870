"""The data that a program is proven on: small numbers, chosen by what the program does with them.

Each round of data is for what the others cannot show. Integers that are multiplied are odd in a
round of their own: products of odd integers are odd, whatever their width, so that none vanishes
and each depends on every factor.
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
"""Small integers, zero included, and indices of which some are out of range."""
UNITS = "units"
"""Odd integers and powers of two where elements are multiplied; booleans of which few are false
where all have to be true."""
RARE = "rare"
"""Booleans of which few are true where one has to be."""

_MOST_RESULTS = 64
"""As many results of one bit are looked at, in several rounds if a program has fewer."""
_MOST_REPEATS = 16

Array = np.ndarray[Any, np.dtype[Any]]


def kinds_of_data(found: list[Use]) -> list[str]:
    """Return the kind of data of each round, for a program with these uses of arguments."""
    units = max((_repeats(use.all_of, use.all_results) for use in found), default=0)
    if any(use.is_factor for use in found):
        units = max(units, 1)
    rare = max((_repeats(use.any_of, use.any_results) for use in found), default=0)
    return [SMALL, *[UNITS] * units, *[RARE] * rare]


def _repeats(length: int, results: int) -> int:
    """How many rounds show mistakes in ``results`` of ``length`` booleans each, of which one in
    three depends on one of its booleans alone."""
    return min(-(-_MOST_RESULTS // max(results, 1)), _MOST_REPEATS) if length else 0


def rounds(
    module: Module,
    ports: list[Port],
    random: np.random.Generator,
    dtypes: Mapping[str, np.dtype[Any]] = DTYPES,
) -> Iterator[list[Array]]:
    """Yield the arguments of each run of ``module``, whose arguments are ``ports``: numbers of
    their own types, as arrays of those of ``dtypes``.

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
    """The elements of an argument."""
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
        # It has positive numbers only.
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
    """Numbers whose products never vanish: odd integers; floats that are powers of two, of which
    long products are exact and neither overflow nor vanish."""
    if not is_integer(dtype):
        # Long products of floats overflow less if as many factors are below one as above.
        signs = random.integers(0, 2, shape) * 2 - 1
        return np.asarray(signs * 2.0 ** random.integers(-1, 2, shape)).astype(dtype)
    info = iinfo(dtype)
    low, high = max(int(info.min), -7), min(int(info.max), 7)
    odd = [number for number in range(low, high + 1) if number % 2]
    return np.asarray(random.choice(odd, shape)).astype(dtype)


def _indices(
    shape: tuple[int, ...], dtype: np.dtype[Any], length: int, random: np.random.Generator
) -> Array:
    """Indices along a dim of ``length``: an eighth of them is out of range, on either side."""
    inside = random.integers(0, length, shape)
    outside = random.choice([-3, -2, -1, length, length + 1, length + 2], shape)
    numbers = np.where(random.integers(0, 8, shape) == 0, outside, inside)
    info = iinfo(dtype)
    return np.clip(numbers, int(info.min), int(info.max)).astype(dtype)
