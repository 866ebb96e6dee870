"""Ops with sharded operands that every device computes in full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from shardcore._core import ops_named
from shardcore.diagnose.findings import Finding, removal_of, starts_of
from shardcore.diagnose.places import LARGE_BYTES, warning
from shardcore.units import format_bytes
from shardcore.why.whole_ops import is_for_whole_op, op_name

if TYPE_CHECKING:
    from shardcore._core import Result
    from shardcore.costs import CollectiveCost
    from shardcore.partition.partitioned import Partitioned

_WAYS_OUT = {
    "dynamic_slice": "shard a dim that is not sliced: layers that a loop takes one by one are "
    "gathered as a whole, their other dims are not",
    "dynamic_update_slice": "shard a dim that is not updated in part",
    "fft": "shard the dims that are not transformed",
    "convolution": "shard the batch, or the features by whole groups",
    "sort": "shard a dim that is not sorted",
}
"""Advice for ops, by name."""


def computed_whole(local: Partitioned, rows: Iterable[CollectiveCost]) -> Iterator[Finding]:
    """Findings about ops for which large operands are gathered by ``rows``, the largest first."""
    largest: dict[int, CollectiveCost] = {}
    for row in rows:
        if row.cause_op is None or row.rematerializes or not is_for_whole_op(local, row):
            continue
        op = local.origin.original(row.cause_op)
        if row.total_bytes > largest.setdefault(op, row).total_bytes:
            largest[op] = row
    found = [row for row in largest.values() if row.total_bytes >= LARGE_BYTES]
    for row in sorted(found, key=lambda row: -row.total_bytes):
        name = op_name(row)
        sides = sorted(row.why.sides, key=lambda side: side.number != row.moved)
        value = sides[0].value if sides else "an operand"
        times = f", {row.count} times" if row.count > 1 else ""
        message = (
            f"every device computes all of this {name}: XLA gathers {value} of "
            f"{format_bytes(row.bytes)}{times}, since it cannot compute it on these shards"
        )
        other = _WAYS_OUT.get(name, "shard other dims")
        hint = f"{other}; or compute it on shards in a jax.shard_map"
        place = row.cause_location or row.location
        each = warning("computed-whole", message, hint, value, place)
        yield Finding(each, removal_of(row), starts=starts_of(row))


_RANDOM = "stablehlo.rng_bit_generator"


def random_bits(result: Result) -> Iterator[Finding]:
    """Findings about random bits that every device generates in full, to use only a shard of
    them."""
    for op in ops_named(result._legalized(), [_RANDOM]):
        bits = op.results[-1]
        size, kept = bits.bytes or 0, bits.bytes_per_device or 0
        if size < LARGE_BYTES or kept >= size:
            continue
        message = (
            f"every device makes all of these random bits, {format_bytes(size)}, and keeps "
            f"{format_bytes(kept)} of them: XLA does not divide rng_bit_generator"
        )
        hint = "use jax.random's threefry, which is divided, or a key for each shard in a shard_map"
        yield Finding(warning("computed-whole", message, hint, bits.qualified_name, op.location))
