"""The compilers whose memory assignment is modelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.compilers import check_compiler

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware


def compiler_of(chip: Hardware, name: str | None) -> str:
    """Return ``name``; if it is ``None``, the compiler for ``chip``.

    Raises:
        ValueError: the compiler is unknown.
    """
    if name is None:
        if chip.compiler is not None:
            return chip.compiler
        return "xla-tpu" if chip.is_torus else "xla-gpu"
    return check_compiler(name)
