"""Programs whose cost is held against XLA, and why the two differ where they do.

A program that is not said to differ in a figure has to agree in it. One that is said to has to
differ: an explanation that is no longer needed fails.
"""

from __future__ import annotations

REUSED = (
    "weights are gathered for the forward and again for the backward pass; XLA's partitioner keeps "
    "what it gathered first, in memory too"
)
HALO = (
    "slices along a sharded dim: XLA exchanges halos with neighbours, which shardcore lists as "
    "`uncounted`"
)
HALO_BUFFERS = "the slices along a sharded dim that XLA exchanges are copies"
WEIGHTS = (
    "weights split along the contracted dim: Shardy plans to reshard activations, XLA's "
    "partitioner gathers the weights and keeps them"
)
LOOKUP = (
    "the lookup in the split embedding: XLA reshards what comes out of it and what goes back into "
    "it, Shardy gathers the table and reshards the gradient alone"
)
BF16 = "hosts have no bf16: XLA converts to f32 and back, and counts it"
BF16_BUFFERS = "hosts have no bf16: XLA stores f32"
REMAT = "XLA for hosts drops the barriers of remat and merges what is computed twice"
GROUPS = (
    "a convolution with batch groups, the gradient of one with feature groups: XLA for hosts "
    "computes all pairs of groups and keeps the diagonal"
)
SEQUENCE = (
    "positions are added along a sharded dim of 17, which does not divide: XLA pads, exchanges "
    "and sums what Shardy replicates"
)
TOP_K = (
    "XLA for hosts has one `top_k` for the whole operand and gathers all rows for it; Shardy "
    "reshards so that each device has whole rows"
)

Differences = dict[str, str]

CASES: dict[str, Differences] = {
    "mlp-train-megatron": {},
    "mlp-train-only-batch": {},
    "mlp-train-fsdp": dict.fromkeys(("all_gather", "all_to_all", "flops", "peak_bytes"), WEIGHTS),
    "gpt-data": {},
    "gpt-fsdp": {
        "all_gather": REUSED,
        "all_to_all": LOOKUP,
        "flops": BF16,
        "peak_bytes": f"{BF16_BUFFERS}, and keeps what it gathered",
    },
    "gpt-tensor": {"collective_permute": HALO, "flops": BF16},
    "gpt-scan-data": {"flops": BF16},
    "llama-train-constrained": {},
    "remat-nothing-saved": {"flops": REMAT},
    "vision-transformer-data": {},
    "vision-transformer-tensor": {},
    "vision-transformer-sequence": dict.fromkeys(("all_reduce", "collective_permute"), SEQUENCE),
    "encoder-decoder-tensor": {},
    "lstm-data": {},
    "lstm-hidden": {"collective_permute": HALO, "peak_bytes": HALO_BUFFERS},
    "state-space-data": {"flops": GROUPS, "peak_bytes": GROUPS},
    "state-space-width": {"collective_permute": HALO, "flops": GROUPS, "peak_bytes": HALO_BUFFERS},
    "unet-data": {},
    "decode-step-tensor": {"all_to_all": TOP_K},
    "decode-step-data": {"all_gather": TOP_K},
    "explicit-mlp-step": {},
}
