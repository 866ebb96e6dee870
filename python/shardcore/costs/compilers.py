"""The compilers whose decisions the figures of memory follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.compilers import COMPILERS

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware


def compiler_of(chip: Hardware, name: str | None) -> str:
    """Return ``name``, or where it is ``None`` the compiler for ``chip``.

    Raises:
        ValueError: there is no such compiler.
    """
    if name is None:
        if chip.compiler is not None:
            return chip.compiler
        return "xla-tpu" if chip.is_torus else "xla-gpu"
    if name not in COMPILERS:
        raise ValueError(f"there is no compiler {name!r}; there are {', '.join(COMPILERS)}")
    return name
