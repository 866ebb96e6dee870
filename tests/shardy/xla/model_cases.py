"""Where the cost of a model differs from what XLA says of it, by figure, and why.

A figure that is not listed has to agree. One that is listed has to differ: an explanation that is
no longer needed fails.
"""

from __future__ import annotations

RESHAPED = "a batch that is reshaped to micro-batches: XLA gathers indices, too"
LOOKUP = "a lookup in sharded rows: XLA gathers the rows, here each device adds its own"
TOP_K = "XLA for hosts gathers all rows for top-k; here each device takes the best of its own"
HALO = "slices along a sharded dim: XLA exchanges some of their halos twice"
ONE_SHARD = "the last of the stages: XLA masks it and adds up, here it is moved"
ACTIVATION = "an activation that XLA moves by gathering and slicing it"
SPATIAL = "convolutions along a sharded dim: XLA adds up gradients that here stay in shards"
SEQUENCE = "products along a sharded sequence: XLA moves what here stays"
SCATTERED = "hosts have no reduce-scatter: XLA counts a FLOP for each element of an all-reduce"
BF16 = "hosts have no bf16: XLA converts to f32 and back, and counts it"
REMAT = "XLA for hosts drops the barriers of remat and merges what is computed twice"
GROUPED = "XLA for hosts computes all pairs of the groups of a convolution"

CASES: dict[str, dict[str, str]] = {
    "llama-fsdp-tensor": {"all_gather": ACTIVATION},
    "llama-sequence": {"sent_bytes": SEQUENCE, "all_gather": SEQUENCE, "all_reduce": SEQUENCE},
    "llama-accumulated-data": {"collective_permute": RESHAPED},
    "embedding-fsdp": {"flops": SCATTERED},
    "graph-nodes": {"sent_bytes": LOOKUP, "all_gather": LOOKUP, "all_reduce": LOOKUP},
    "pipeline-train": {
        "all_gather": ONE_SHARD,
        "all_reduce": ONE_SHARD,
        "all_to_all": ONE_SHARD,
    },
    "retrieve-corpus": {"flops": TOP_K},
    "sample-vocabulary": {"sent_bytes": TOP_K, "all_gather": TOP_K},
    "residual-rows": {"flops": SPATIAL, "all_reduce": SPATIAL},
    "denoise-rows": {"sent_bytes": SPATIAL, "all_gather": SPATIAL, "all_reduce": SPATIAL},
    "mlp-train-fsdp": {"flops": SCATTERED},
    "gpt-fsdp": {"flops": BF16},
    "gpt-tensor": {"flops": BF16, "sent_bytes": HALO, "collective_permute": HALO},
    "gpt-scan-data": {"flops": BF16},
    "remat-nothing-saved": {"flops": REMAT},
    "state-space-data": {"flops": GROUPED},
    "state-space-width": {"flops": GROUPED, "collective_permute": HALO},
    "decode-step-tensor": {"sent_bytes": TOP_K, "all_gather": TOP_K},
    "decode-step-data": {"sent_bytes": TOP_K, "all_gather": TOP_K},
}
