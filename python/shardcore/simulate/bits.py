"""Ops on the bits of integers: counts and shifts."""

from __future__ import annotations

import numpy as np

from shardcore.simulate.dtypes import bits_of, in_type, wide
from shardcore.simulate.elementwise import of_rank
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array


def _bits(x: Array) -> Array:
    """The bits of integers as unsigned integers of a width that NumPy has."""
    mask = (1 << bits_of(x.dtype)) - 1
    plain = wide(x)
    unsigned = plain.view(plain.dtype.str.replace("i", "u"))
    return unsigned & unsigned.dtype.type(mask)


@op("stablehlo.popcnt")
def popcnt(site: Site) -> Kernel:
    """The number of set bits."""
    dtype = site.results[0].dtype
    return arrays(lambda x: in_type(np.bitwise_count(_bits(x)), dtype))


@op("stablehlo.count_leading_zeros")
def count_leading_zeros(site: Site) -> Kernel:
    """The number of leading zero bits."""
    dtype = site.results[0].dtype
    width = bits_of(dtype)

    def compute(x: Array) -> Array:
        bits = _bits(x)
        for distance in (1, 2, 4, 8, 16, 32):
            if distance < width:
                bits = bits | (bits >> distance)
        return in_type(width - np.bitwise_count(bits), dtype)

    return arrays(compute)


@op("stablehlo.shift_left", "stablehlo.shift_right_arithmetic", "stablehlo.shift_right_logical")
@op(
    "chlo.broadcast_shift_left",
    "chlo.broadcast_shift_right_arithmetic",
    "chlo.broadcast_shift_right_logical",
)
def shift(site: Site) -> Kernel:
    """Shifted bits; a shift by the width or more leaves zero, or the sign."""
    dtype, rank = site.results[0].dtype, len(site.results[0].shape)
    width, way = bits_of(dtype), site.name.split("shift_")[1]

    def compute(x: Array, by: Array) -> Array:
        x, by = of_rank(x, rank), _bits(of_rank(by, rank))
        far = by >= width
        if way == "right_arithmetic":
            by = np.where(far, width - 1, by)
            signed = wide(x) if wide(x).dtype.kind == "i" else wide(x).view(f"i{x.dtype.itemsize}")
            # Shifting up and down again extends the highest bit of a type narrower than a byte.
            unused = signed.dtype.type(8 * signed.dtype.itemsize - width)
            moved = (signed << unused >> unused) >> by.astype(signed.dtype)
            return in_type(moved.view(wide(x).dtype), dtype)
        bits, by = _bits(x), np.where(far, 0, by).astype(by.dtype)
        moved = bits << by if way == "left" else bits >> by
        return in_type(np.where(far, 0, moved).astype(bits.dtype).view(wide(x).dtype), dtype)

    return arrays(compute)
