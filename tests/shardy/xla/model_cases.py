"""Where the cost of a model differs from what XLA says of it, by figure, and why.

A figure that is not listed has to agree. One that is listed has to differ: an explanation that is
no longer needed fails.
"""

from __future__ import annotations

MASKS = "XLA computes the mask of a pad for each element of a shard, here along its dim"

CASES: dict[str, dict[str, str]] = {
    "waves-grid": {"flops": MASKS},
}
