"""What XLA makes of a program: compiled for host devices, and what it says of the outcome.

The program is partitioned by XLA itself, from the same text that shardcore gets. Passes that merge
collectives, or that move and simplify what the partitioner wrote, are off, so that each collective
can be counted where it was needed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jaxlib import xla_client
from jaxlib.mlir import ir

from tests.shardy.reference import IS_NEW

DEVICES = 8
PASSES_OFF = (
    "cpu-all-reduce-combiner",
    "all-reduce-combiner",
    "all-gather-combiner",
    "reduce-scatter-combiner",
    "while-loop-invariant-code-motion",
    "while-loop-all-reduce-code-motion",
)
# Computes an op again in each of its users, and counts it each time.
REPEATING = ("fusion",)
# Programs are looked at and never run. Without MLIR's emitters of fusions, which take most of the
# time, collectives stay the same; what is fused, and so temporary memory, may be other. Newer
# releases have no others.
SIMPLE_EMITTER = {} if IS_NEW else {"xla_cpu_use_fusion_emitters": False}

_COLLECTIVE = re.compile(
    r" (all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)(?:-start)?\("
)
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_PARTITIONS = re.compile(r"mhlo\.num_partitions = (\d+)")


@dataclass(frozen=True)
class Compiled:
    """What one device holds, in bytes, and the collectives that it takes part in."""

    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    # One (kind, name of the op it belongs to) for each collective.
    collectives: tuple[tuple[str, str], ...]

    def counts(self) -> Counter[str]:
        return Counter(kind for kind, _ in self.collectives)


def partitions(text: str) -> int:
    found = _PARTITIONS.search(text)
    return int(found[1]) if found else 1


def executable(text: str, **options_of_xla: Any) -> Any:
    """Compiles the text of a program for as many host devices as it asks for."""
    count = partitions(text)
    options = compiler.get_compile_options(
        num_replicas=1,
        num_partitions=count,
        device_assignment=np.arange(count).reshape(1, count),
    )
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    options.env_option_overrides = list(options_of_xla.items())
    devices = jax.devices("cpu")[:count]
    with mlir.make_ir_context():
        return devices[0].client.compile_and_load(
            ir.Module.parse(text), xla_client.DeviceList(tuple(devices)), options
        )


@cache
def compiled(text: str) -> Compiled:
    run = executable(text, xla_disable_hlo_passes=",".join(PASSES_OFF), **SIMPLE_EMITTER)
    memory = run.get_compiled_memory_stats()
    hlo = run.hlo_modules()[0].to_string()
    return Compiled(
        argument_bytes=memory.argument_size_in_bytes,
        output_bytes=memory.output_size_in_bytes,
        alias_bytes=memory.alias_size_in_bytes,
        collectives=tuple(_collectives(hlo)),
    )


@cache
def flops(text: str) -> float:
    """FLOPs of one device, loops counted once, ops that fusion would repeat counted once too."""
    passes_off = ",".join((*PASSES_OFF, *REPEATING))
    cost = executable(text, xla_disable_hlo_passes=passes_off).cost_analysis()
    return float(cost.get("flops", 0.0))


def _collectives(hlo: str) -> list[tuple[str, str]]:
    found = []
    for line in hlo.splitlines():
        if kind := _COLLECTIVE.search(line):
            name = _OP_NAME.search(line)
            found.append((kind[1].replace("-", "_"), name[1] if name else ""))
    return found
