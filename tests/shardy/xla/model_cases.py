"""Where the cost of a model differs from what XLA says of it, by figure, and why.

A figure that is not listed has to agree. One that is listed has to differ: an explanation that is
no longer needed fails.
"""

from __future__ import annotations

BF16 = "hosts have no bf16: XLA converts to f32 and back, and counts it"
MASKS = "XLA computes the mask of a pad for each element of a shard, here along its dim"
REMAT = "XLA for hosts drops the barriers of remat and merges what is computed twice"

CASES: dict[str, dict[str, str]] = {
    "waves-grid": {"flops": MASKS},
    "gpt-fsdp": {"flops": BF16},
    "gpt-tensor": {"flops": BF16},
    "gpt-scan-data": {"flops": BF16},
    "remat-nothing-saved": {"flops": REMAT},
}
