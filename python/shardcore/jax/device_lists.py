"""Lists of devices in programs of many devices, which MLIR prints as bytes."""

from __future__ import annotations

import re

import numpy as np

_BYTES = re.compile(
    r'((?:replica_groups|source_target_pairs) = dense<)"0x([0-9A-F]+)"(> : tensor<\d+x(\d+)xi64>)'
)


def spelled_out(text: str) -> str:
    """Return the program ``text`` with the groups and pairs of collectives as lists of numbers.

    MLIR prints elements as bytes where there are more than a hundred.
    """
    return _BYTES.sub(_listed, text)


def _listed(found: re.Match[str]) -> str:
    ids = np.frombuffer(bytes.fromhex(found[2]), "<i8").reshape(-1, int(found[4]))
    rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in ids.tolist())
    return f"{found[1]}[{rows}]{found[3]}"
