"""Programs of the tests with every float in double precision: what differs is no rounding then.

In single precision the steps of optimizers divide by small numbers, which makes the rounding of
sums in another order larger than any bound that would find a wrong element.
"""

from __future__ import annotations

import pytest
import shardcore
from shardcore.partition.policies import POLICIES

from tests.deep import IS_DEEP
from tests.shardy.programs import registry

UNKNOWN = {
    "callbacks", "custom-rule-batched", "custom-rule-grouped", "custom-rule-matmul",
    "custom-rule-opaque", "custom-rule-reduced", "foreign-calls", "kernels", "on-gpu-cholesky",
    "on-gpu-eigh", "on-gpu-qr", "on-gpu-solve", "ordered-effects", "per-platform",
}  # fmt: skip
"""Programs that call what only other libraries know, or the host."""

NAMES = (
    [name for name in registry.names() if name not in UNKNOWN]
    if IS_DEEP
    else ["moe-ragged", "unet-channels"]
)


@pytest.mark.parametrize("name", NAMES)
def test_devices_compute_what_the_global_program_does(name: str) -> None:
    module = shardcore.Module.parse(registry.text(name))
    result = module.propagate(legalize_chlo=True)
    for policy in POLICIES:
        proof = shardcore.prove(result.partition(policy), dtype="f64")
        assert proof.is_proven, f"{policy}: {proof}"
