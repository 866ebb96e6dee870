"""The names of the compilers that costs can model."""

from __future__ import annotations

COMPILERS = ("xla-tpu", "xla-gpu", "xla-cpu", "none")
"""XLA's compilers for TPUs, GPUs and CPUs; ``"none"`` models no compiler in particular: fusion as
on CPUs, but without the conversions to ``f32`` that only the CPU compiler inserts."""

PLATFORMS = {"xla-tpu": "tpu", "xla-gpu": "cuda", "xla-cpu": "cpu", "none": "cpu"}
"""The platform that JAX lowers programs of each compiler for; for ``"none"`` the one whose
lowerings call no kernels of an accelerator."""


def check_compiler(name: str) -> str:
    """Return ``name``, a compiler.

    Raises:
        ValueError: there is no such compiler.
    """
    if name not in COMPILERS:
        raise ValueError(f"there is no compiler {name!r}; there are {', '.join(COMPILERS)}")
    return name
