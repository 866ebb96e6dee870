"""Collectives of ops that every device computes in full, from gathered operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore.costs import CollectiveCost
    from shardcore.partition.partitioned import Partitioned

_MIX = frozenset(
    {
        "dynamic_slice",
        "dynamic_update_slice",
        "fft",
        "convolution",
        "sort",
        "cholesky",
        "concatenate",
        "gather",
        "pad",
        "reduce_window",
        "reverse",
        "scatter",
        "select_and_scatter",
        "slice",
        "top_k",
        "triangular_solve",
    }
)
"""Ops whose result may need operand elements at other indices along a dim.

For other ops, an operand is gathered because the result needs it."""


def is_for_whole_op(local: Partitioned, row: CollectiveCost) -> bool:
    """Whether ``row`` gathers an operand of an op that every device of ``local`` computes in
    full."""
    if row.kind != "all_gather" or row.cause_op is None:
        return False
    return op_name(row) in _MIX and local.is_whole(row.cause_op)


def op_name(row: CollectiveCost) -> str:
    """Return the name of the op that needs ``row``, without its dialect."""
    return (row.cause or "").partition(".")[2]
