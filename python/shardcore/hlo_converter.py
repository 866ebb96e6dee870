"""Converts HLO to StableHLO text, ``from``, or StableHLO text to HLO text, ``to``, by jaxlib.

A separate program, because jaxlib may crash its process on malformed input;
:mod:`shardcore.hlo` starts it. Imports nothing of shardcore.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

NO_JAXLIB = 3
"""The exit code where jaxlib is not installed."""


def main() -> int:
    """Read standard input, write standard output, and return the exit code."""
    try:
        from jaxlib import _jax
    except ImportError:
        return NO_JAXLIB
    hlo: Any = _jax
    with contextlib.suppress(ImportError):
        # Since jaxlib 0.10 what reads HLO is a module of its own.
        from jaxlib import _hlo  # type: ignore[attr-defined]

        hlo = _hlo
    data = sys.stdin.buffer.read()
    if sys.argv[-1] == "to":
        computation = _jax.mlir.mlir_module_to_xla_computation(
            data.decode(), use_tuple_args=False, return_tuple=False
        )
        text = computation.as_hlo_text()
    else:
        if data.lstrip().startswith(b"HloModule"):
            module = hlo.hlo_module_from_text(data.decode())
            data = module.as_serialized_hlo_module_proto()
        computation = hlo.XlaComputation(_without_wrapper(data))
        text = _jax.mlir.xla_computation_to_mlir_module(computation)
    sys.stdout.buffer.write(str(text).encode())
    return 0


def _without_wrapper(data: bytes) -> bytes:
    """The ``HloModuleProto`` in ``data``, which XLA dumps as the first field of an ``HloProto``."""
    if data[:1] != b"\n":
        return data
    size, shift, at = 0, 0, 1
    while at < len(data) and shift < 64:
        size |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            break
    inside = data[at : at + size]
    # The first field of a module is its name, which no module starts with that starts a line.
    return inside if len(inside) == size and inside[:1] == b"\n" else data


if __name__ == "__main__":
    sys.exit(main())
