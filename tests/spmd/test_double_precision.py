"""Programs of the tests with every float in double precision: what differs is no rounding then.

In single precision the steps of optimizers divide by small numbers, which makes the rounding of
sums in another order larger than any bound that would find a wrong element.
"""

from __future__ import annotations

import re

import pytest
import shardcore
from shardcore import ShardcoreError
from shardcore.partition.partitioned import POLICIES

from tests.deep import IS_DEEP
from tests.shardy.programs import registry

NARROW = r"(?:bf16|f16|f32)"
HEX = {
    "0xFF800000": "0xFFF0000000000000",
    "0x7F800000": "0x7FF0000000000000",
    "0x7FC00000": "0x7FF8000000000000",
    "0xFF80": "0xFFF0000000000000",
}
"""Infinities and NaN of ``f32`` and ``bf16``, and those of ``f64``."""

UNKNOWN = {
    "callbacks", "custom-rule-batched", "custom-rule-grouped", "custom-rule-matmul",
    "custom-rule-opaque", "custom-rule-reduced", "foreign-calls", "kernels", "on-gpu-cholesky",
    "on-gpu-eigh", "on-gpu-qr", "on-gpu-solve", "ordered-effects", "per-platform",
}  # fmt: skip
"""Programs that call what only other libraries know, or the host."""

NAMES = (
    [name for name in registry.names() if name not in UNKNOWN]
    if IS_DEEP
    else ["moe-ragged", "resnet-channels"]
)


def in_double_precision(text: str) -> str:
    """The program with ``f64`` for every narrower float."""
    for narrow, wide in HEX.items():
        text = text.replace(f"dense<{narrow}>", f"dense<{wide}>")
    return re.sub(rf"(?<=x){NARROW}\b|(?<=<){NARROW}(?=>)", "f64", text)


def module_of(text: str) -> shardcore.Module:
    """The program in double precision, or as it is if it looks at the bits of its floats."""
    try:
        return shardcore.Module.parse(in_double_precision(text))
    except ShardcoreError:
        return shardcore.Module.parse(text)


@pytest.mark.parametrize("name", NAMES)
def test_devices_compute_what_the_global_program_does(name: str) -> None:
    result = module_of(registry.text(name)).propagate(legalize_chlo=True)
    for policy in POLICIES:
        proof = shardcore.prove(result.partition(policy), tolerance=1e-6)
        assert proof.is_proven, f"{policy}: {proof}"
