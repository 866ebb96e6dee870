"""Reads MLIR bytecode from standard input and writes its text to standard output, by jaxlib.

A separate program, because jaxlib's reader may crash its process on malformed bytes;
:mod:`shardcore.bytecode` starts it. Imports nothing of shardcore.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

NO_JAXLIB = 3
"""The exit code that says that jaxlib is not installed."""

PRETTY = {"builtin", "func", "stablehlo", "chlo", "sdy"}
"""The dialects whose custom forms shardcore reads."""


def main() -> int:
    """Read, write, and return the exit code."""
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import stablehlo
    except ImportError:
        return NO_JAXLIB
    data = sys.stdin.buffer.read()
    reader = runpy.run_path(str(Path(__file__).with_name("jaxlib_context.py")))
    context = reader["context"]()
    # After four bytes of magic and the version comes the zero-terminated name of the producer.
    is_portable = b"StableHLO" in data[4:64].split(b"\0")[0]
    with context:
        if is_portable:
            module = stablehlo.deserialize_portable_artifact(context, data)
        else:
            module = ir.Module.parse(data)
        generic = _has_other_forms(module.operation, ir)
        text = module.operation.get_asm(enable_debug_info=True, print_generic_op_form=generic)
    sys.stdout.buffer.write(str(text).encode())
    return 0


def _has_other_forms(root: Any, ir: Any) -> bool:
    """Whether an op would be printed in a custom form that shardcore does not read."""
    found = False

    def look(op: Any) -> Any:
        nonlocal found
        is_other = op.name.partition(".")[0] not in PRETTY
        found = found or (is_other and root.context.is_registered_operation(op.name))
        return ir.WalkResult.ADVANCE

    root.walk(look)
    return found


if __name__ == "__main__":
    sys.exit(main())
