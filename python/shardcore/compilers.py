"""The compilers that figures can follow, by name."""

from __future__ import annotations

COMPILERS = ("xla-tpu", "xla-gpu", "xla-cpu", "none")
"""XLA's compilers for TPUs, GPUs and hosts; ``"none"`` is a model of none in particular: what the
compiler for hosts does, without the conversions to ``f32`` that only hosts need."""
