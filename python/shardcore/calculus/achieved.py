"""The shares of a chip's figures that programs achieve, used for estimates of time.

``[NAME.achieved]`` in ``hardware.toml`` has them for each chip, calibrated on published runs;
a user's file overrides single ones, and ``shardcore calibrate`` writes such a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from shardcore.calculus.dtypes import canonical_dtype, element_bytes, is_dtype

ALIGNMENT = 16
"""Bytes that GPUs load at a time."""

SPLIT_TILES = 8
"""A product is split along its contracting dim only if each part has at least this many tiles of
depth."""

SHARES = (
    "kernels",
    "memory",
    "scattered",
    "links",
    "network",
    "sustained",
    "misaligned",
    "convolutions",
    "grouped",
    "switch_reductions",
)
"""The figures that are shares, above 0 and at most 1."""

_FLAGS = (
    "splits_collectives",
    "steps_in_products",
    "gathers_by_sums",
    "overlaps_network",
    "cache_persists",
)
_TIMES = (
    "op_seconds",
    "group_seconds",
    "collective_seconds",
    "link_step_seconds",
    "network_step_seconds",
    "step_seconds",
    "column_seconds",
)


@dataclass(frozen=True)
class Achieved:
    """The shares of a chip's figures that are reached, and fixed overheads."""

    products: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """The share of FLOP/s that large products reach, by element type; other types use that of
    bf16."""
    sustained: float = 1.0
    """The further share in steps of many chips, which draw more power for hours, and wait for the
    slowest chip."""
    tile: tuple[int, int, int] = (1, 1, 1)
    """Rows, columns and depth of the block that a matrix unit computes; a part counts as a
    whole."""
    units: int = 1
    """The number of matrix units, each of which computes one tile at a time."""
    depth_overhead: float = 0.0
    """The overhead of starting and ending a tile, in units of the contracting size in bf16."""
    group_tile: float = 0.0
    """The tile of kernels of grouped products, in rows: each group takes one tile more than its
    rows fill, as groups do not begin at multiples of it."""
    grouped: float = 1.0
    """The further share for kernels of grouped products."""
    misaligned: float = 1.0
    """The further share for products whose rows do not begin at multiples of :data:`ALIGNMENT`
    bytes."""
    convolutions: float = 1.0
    """The further share for convolutions."""
    kernels: float = 1.0
    """The share of FLOP/s that custom calls reach, such as attention kernels."""
    vector_flops: float = math.inf
    """FLOP/s of ops other than products."""
    transcendental_flops: float = 1.0
    """How many FLOPs of ``vector_flops`` a transcendental counts as."""
    sort_flops: float = math.inf
    """Comparisons per second in sorts; on GPUs those of a sorting network."""
    column_seconds: float = 0.0
    """Seconds of each column of a factorization, one after the other, on GPUs."""
    memory: float = 1.0
    """The share of the memory bandwidth for data in order."""
    scattered: float = 1.0
    """The share of the memory bandwidth for gathers, scatters, transposes and sorts."""
    links: float = 1.0
    """The share of the bandwidth of links that long messages reach."""
    network: float = 1.0
    """The share of the bandwidth between slices or nodes that long messages reach."""
    contention: float = 0.0
    """The part of an overlapped collective's time by which the overlapping ops get longer."""
    overlaps_network: bool = True
    """Whether computation continues while slices or nodes exchange data."""
    switch_reductions: float = 1.0
    """The share of :attr:`links` that remains if the switches of a node reduce."""
    message_bytes: float = 0.0
    """The sent bytes of a device at which a collective reaches half of ``links`` or ``network``."""
    chunk_bytes: float = 0.0
    """The bytes that a device sends per step at which a collective reaches half of ``links`` or
    ``network``; larger chunks reach more, as :data:`~shardcore.calculus.rates.RAMP` says."""
    message_shares: tuple[tuple[float, float], ...] = ()
    """Measured values in place of ``message_bytes`` and ``chunk_bytes``: ascending sent bytes of a
    device, each with the share of ``links`` or ``network`` that it reaches."""
    op_seconds: float = 0.0
    """Launch overhead of an op, in seconds."""
    group_seconds: float = 0.0
    """Launch overhead of each product of a batch after the first, in seconds; 0 if one kernel
    computes them all."""
    collective_seconds: float = 0.0
    """Launch overhead of a collective, in seconds."""
    link_step_seconds: float = 0.0
    """Additional seconds per step of a collective within a node."""
    network_step_seconds: float = 0.0
    """Additional seconds per step of a collective between slices or nodes."""
    step_seconds: float = 0.0
    """Launch overhead of a step, in seconds."""
    mapped_bytes: float = 0.0
    """Results of at least this many bytes have to be mapped anew in each step, as on CPU hosts."""
    mapped_bytes_per_second: float = math.inf
    """The rate at which memory is mapped."""
    cache_persists: bool = False
    """Whether a step whose memory fits into the cache finds all of it there, left by the step
    before."""
    splits_collectives: bool = False
    """Whether compilers overlap a collective with an adjacent product, chunk by chunk."""
    steps_in_products: bool = False
    """Whether kernels of products take the steps of collectives beside them, which stand still
    beside other ops."""
    gathers_by_sums: bool = False
    """Whether gathers and reduce-scatters are made of all-reduces, which take twice as long."""

    def __hash__(self) -> int:
        return hash((self.tile, self.units, self.kernels, self.memory, self.links))

    def __reduce__(self) -> tuple[Any, ...]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return _made, ({**values, "products": dict(self.products)},)

    def products_of(self, dtype: str) -> float:
        """Return the share of FLOP/s that large products of elements of type ``dtype`` reach."""
        return self.products.get(canonical_dtype(dtype), self.products.get("bf16", 1.0))

    def shape_share(
        self, batch: int, rows: int, columns: int, depth: int, rate: float = 1.0
    ) -> float:
        """Return the share of the tiles' capacity that a product of these sizes uses. Its FLOP/s
        are ``rate`` times those of bf16: starting and ending a tile takes as long for all types.

        >>> Achieved(tile=(128, 128, 1), units=4).shape_share(1, 64, 512, 4096)
        0.5
        """
        sizes = (max(rows, 1), max(columns, 1), max(depth, 1))
        # Compilers swap operands, so the longer side of a tile is not wasted on a skinny operand.
        best = 0.0
        for across in (sizes, (sizes[1], sizes[0], sizes[2])):
            counts = [-(-size // tile) for size, tile in zip(across, self.tile, strict=True)]
            filled = math.prod(
                size / (count * tile)
                for size, count, tile in zip(across, counts, self.tile, strict=True)
            )
            tiles = max(batch, 1) * counts[0] * counts[1]
            # The contracting dim is split if there are too few tiles for all units.
            tiles *= max(1, min(self.units // tiles, counts[2] // SPLIT_TILES))
            waves = -(-tiles // self.units)
            best = max(best, filled * tiles / (waves * self.units))
        return best * sizes[2] / (sizes[2] + self.depth_overhead * rate)

    def grouped_share(self, size: int) -> float:
        """Return the share for a grouped product with ``size`` rows in each group.

        >>> Achieved(group_tile=512, grouped=0.5).grouped_share(1536)
        0.375
        """
        return self.grouped * max(size, 1) / (max(size, 1) + self.group_tile)

    def aligned_share(self, widths: Iterable[int], dtype: str) -> float:
        """Return the share for a product whose rows have ``widths`` elements."""
        size = element_bytes(dtype)
        aligned = all(width * size % ALIGNMENT == 0 for width in widths)
        return 1.0 if aligned else self.misaligned

    def message_share(self, num_bytes: float) -> float:
        """Return the share of the achieved bandwidth for a message of ``num_bytes``.

        Between the sizes in ``message_shares``, it is interpolated linearly in the logarithm of the
        bytes.

        >>> round(Achieved(message_shares=((1e3, 0.1), (1e5, 0.9))).message_share(1e4), 3)
        0.5
        """
        if self.message_shares:
            return _between(self.message_shares, num_bytes)
        total = num_bytes + self.message_bytes
        return num_bytes / total if total else 1.0


def _between(points: tuple[tuple[float, float], ...], num_bytes: float) -> float:
    """Return the share at ``num_bytes``, interpolated between ``points``; constant outside."""
    size, share = points[0]
    for next_size, next_share in points:
        if num_bytes <= next_size:
            if next_size == size or num_bytes <= size:
                return next_share if num_bytes >= next_size else share
            part = math.log(num_bytes / size) / math.log(next_size / size)
            return share + part * (next_share - share)
        size, share = next_size, next_share
    return share


def _made(values: dict[str, Any]) -> Achieved:
    """Unpickle the shares of a chip."""
    return Achieved(**{**values, "products": MappingProxyType(values["products"])})


def read_achieved(table: object, wrong: Callable[[str, str, str], Exception]) -> Achieved:
    """Return the shares in ``table``, part of a hardware file; ``wrong`` makes errors about them.

    Raises:
        CalculusError: a figure is unknown or out of range (``hardware-file``).
    """
    if not isinstance(table, dict):
        raise wrong("is no table", "write achieved = { memory = 0.9 }", "achieved")
    values = dict(table)
    known = Achieved.__dataclass_fields__
    for key, value in values.items():
        if key not in known:
            raise wrong(f'has an unknown figure "{key}"', f"known are {', '.join(known)}", key)
        hint = _problem(key, value)
        if hint is not None:
            raise wrong(f"has {key} = {value!r:.60}", hint, key)
        if key == "products":
            values[key] = MappingProxyType(
                {canonical_dtype(name): float(share) for name, share in value.items()}
            )
        elif key == "message_shares":
            values[key] = tuple((float(size), float(share)) for size, share in value)
        elif key == "tile":
            values[key] = tuple(value)
        elif not isinstance(value, bool) and key != "units":
            values[key] = float(value)
    return Achieved(**values)


def _problem(key: str, value: object) -> str | None:
    """What to write instead of ``value``; ``None`` if it is valid."""
    if key == "products":
        good = isinstance(value, dict) and all(
            is_dtype(name) and _is_share(share) for name, share in value.items()
        )
        return None if good else "write products = { bf16 = 0.8 }, shares of the FLOP/s"
    if key == "message_shares":
        good = isinstance(value, list) and all(map(_is_point, value))
        sizes = [size for size, _ in value] if good and isinstance(value, list) else [0, 0]
        good = good and all(one < other for one, other in pairwise(sizes))
        return None if good else "write message_shares = [[1e5, 0.3], [1e7, 0.95]], bytes ascending"
    if key == "tile":
        good = isinstance(value, list) and len(value) == 3 and all(map(_is_count, value))
        return None if good else "write tile = [8, 128, 128]: rows, columns, depth"
    if key == "units":
        return None if _is_count(value) else "write units = 132, a whole number above 0"
    if key in _FLAGS:
        return None if isinstance(value, bool) else f"write {key} = true or false"
    if key == "contention":
        return None if value == 0 or _is_share(value) else "write contention = 0.2, at most 1"
    if key in SHARES:
        return None if _is_share(value) else f"write {key} = 0.8, above 0 and at most 1"
    lowest = 0.0 if key in (*_TIMES, "message_bytes", "chunk_bytes", "mapped_bytes") else 1e-30
    good = _is_number(value) and isinstance(value, (int, float)) and lowest <= value <= 1e30
    return None if good else f"write a number, as in {key} = 1e-6"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_share(value: object) -> bool:
    return _is_number(value) and isinstance(value, (int, float)) and 1e-9 <= value <= 1


def _is_point(point: object) -> bool:
    """Whether ``point`` is a number of bytes and a share."""
    if not isinstance(point, list) or len(point) != 2:
        return False
    size, share = point
    return _is_number(size) and 1 <= size <= 1e30 and _is_share(share)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31
