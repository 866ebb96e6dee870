"""The compilers whose decisions the figures of memory follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware

COMPILERS = ("xla-tpu", "xla-gpu", "xla-cpu", "none")
"""XLA's compilers for TPUs, GPUs and hosts; ``"none"`` is a model of none in particular: what the
compiler for hosts does, without the conversions to ``f32`` that only hosts need."""


def compiler_of(chip: Hardware, name: str | None) -> str:
    """Return ``name``, or where it is ``None`` the compiler for ``chip``.

    Raises:
        ValueError: there is no such compiler.
    """
    if name is None:
        return "xla-tpu" if chip.is_torus else "xla-gpu"
    if name not in COMPILERS:
        raise ValueError(f"there is no compiler {name!r}; there are {', '.join(COMPILERS)}")
    return name
