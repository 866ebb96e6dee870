"""Programs compiled by XLA's own compilers, without the chips, beside their costs.

XLA's compilers for TPUs, GPUs and hosts are packages that the extras ``tpu-oracle``,
``gpu-oracle`` and ``jax`` install; each compiles in a process of its own.

==========================  =====================================================================
:mod:`~.comparison`         :func:`against`, a cost beside what XLA says of the same program
:mod:`~.compile`            :func:`compile_for`, a program compiled for a target
:mod:`~.targets`            chips, and how they are named to XLA
:mod:`~.gpus`               descriptions of GPUs
:mod:`~.compile_runner`     the process that compiles
:mod:`~.hlo_figures`        kernels and collectives of compiled HLO
:mod:`~.buffers`            the buffer assignment of a TPU executable
==========================  =====================================================================
"""

from __future__ import annotations

from shardcore.xla.comparison import Against, SideBySide, against
from shardcore.xla.compile import CompiledProgram, compile_for
from shardcore.xla.hlo_figures import Sent
from shardcore.xla.targets import Target, target_of

__all__ = [
    "Against",
    "CompiledProgram",
    "Sent",
    "SideBySide",
    "Target",
    "against",
    "compile_for",
    "target_of",
]
