"""Conversions of numbers and of bit patterns to another type."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardcore.simulate.dtypes import (
    bits_of,
    iinfo,
    in_type,
    is_complex,
    is_float,
    is_integer,
    wide,
)
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array

__all__ = ["converted"]


def converted(x: Array, dtype: np.dtype[Any]) -> Array:
    """``x`` in ``dtype`` as XLA converts it.

    Floats are truncated to integers and saturate, NaN becomes 0; integers keep their lowest bits,
    complex numbers their real part.
    """
    if is_complex(x.dtype) and not is_complex(dtype):
        x = x.real
    if dtype == np.bool_:
        return np.asarray(wide(x) != 0)
    if is_integer(dtype) and is_float(x.dtype):
        return _to_integer(wide(x).astype(np.float64), dtype)
    return in_type(wide(x), dtype)


def _to_integer(x: Array, dtype: np.dtype[Any]) -> Array:
    info = iinfo(dtype)
    low, high = int(info.min), int(info.max)
    whole = np.trunc(np.where(np.isnan(x), 0, x))
    # `high + 1` is a power of two and exact as a float; the largest integer may not be.
    over, under = whole >= float(high + 1), whole < float(low)
    safe = np.where(over | under, 0, whole)
    found = safe.astype(np.uint64 if low == 0 and high > 2**63 else np.int64)
    found = np.where(over, found.dtype.type(high), np.where(under, found.dtype.type(low), found))
    return in_type(found, dtype)


@op("stablehlo.convert")
def convert(site: Site) -> Kernel:
    """The number in another type."""
    dtype = site.results[0].dtype
    return arrays(lambda x: converted(x, dtype))


@op("stablehlo.bitcast_convert")
def bitcast_convert(site: Site) -> Kernel:
    """The bits read as another type; a wider type removes a dim, a narrower one adds one."""
    [source], [target] = site.operands, site.results
    shape = target.shape
    if min(bits_of(source.dtype), bits_of(target.dtype)) < 8 and bits_of(source.dtype) != bits_of(
        target.dtype
    ):
        return arrays(lambda x: _recast(x, source.dtype, target.dtype).reshape(len(x), *shape))
    return arrays(
        lambda x: (
            np.ascontiguousarray(x).view(target.dtype).reshape(len(x), *shape)
            if x.ndim > 1
            else np.ascontiguousarray(x).reshape(-1, 1).view(target.dtype).reshape(len(x), *shape)
        )
    )


def _recast(x: Array, source: np.dtype[Any], target: np.dtype[Any]) -> Array:
    """Bits read as another type, where one is narrower than a byte and stored one element to a
    byte; the first element has the lowest bits."""
    flat = np.ascontiguousarray(x).reshape(len(x), -1)
    if bits_of(source) < 8:
        bits = np.unpackbits(_bytes(flat), axis=-1, bitorder="little").reshape(len(x), -1, 8)
        packed = bits[..., : bits_of(source)].reshape(len(x), -1)
        whole = np.packbits(packed, axis=-1, bitorder="little")
        return whole.view(target)
    bits = np.unpackbits(flat.view(np.uint8), axis=-1, bitorder="little")
    fields = bits.reshape(len(x), -1, bits_of(target)).astype(np.uint8)
    numbers = (fields << np.arange(bits_of(target), dtype=np.uint8)).sum(-1, dtype=np.uint8)
    if is_integer(target):
        return in_type(numbers, target)
    return numbers.view(target)


def _bytes(x: Array) -> Array:
    return wide(x).view(np.uint8) if is_integer(x.dtype) else x.view(np.uint8)
