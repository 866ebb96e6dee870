"""Reads MLIR bytecode from standard input and writes its text to standard output, by jaxlib.

A program of its own, because jaxlib's reader may bring its process down where the bytes are not
what they should be; :mod:`shardcore.bytecode` starts it. Imports nothing of shardcore.
"""

from __future__ import annotations

import sys

NO_JAXLIB = 3
"""The exit code where jaxlib is not installed."""


def main() -> int:
    """Read, write, and return the exit code."""
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import chlo, sdy, stablehlo
    except ImportError:
        return NO_JAXLIB
    data = sys.stdin.buffer.read()
    context = ir.Context()
    context.allow_unregistered_dialects = True
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    # The producer stands after four bytes of magic and one of the version, up to a zero.
    is_portable = b"StableHLO" in data[4:64].split(b"\0")[0]
    with context:
        if is_portable:
            module = stablehlo.deserialize_portable_artifact(context, data)
        else:
            module = ir.Module.parse(data)
        text = str(module.operation.get_asm(enable_debug_info=True))
    sys.stdout.buffer.write(text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
