"""What the text of a compiled HLO module says of its kernels."""

from __future__ import annotations

import re
from typing import Any

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{\s*$")
_OPCODE = re.compile(r"^\s+(?:ROOT )?%?[\w.\-]+ = .*? ([a-z][\w\-]*)\(")
_CALLED = re.compile(r"(?:body|condition|to_apply|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")

_ENTERED = {"while", "conditional", "call"}
_FREE = {
    "parameter",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "constant",
    "after-all",
    "partition-id",
    "replica-id",
    "opt-barrier",
}


def num_kernels(hlo: str) -> int:
    """How many instructions start something, of the entry and of what loops and branches run."""
    bodies: dict[str, list[tuple[str, str]]] = {}
    entry, current = "", ""
    for line in re.sub(r"/\*.*?\*/", "", hlo).splitlines():
        header = _COMPUTATION.match(line)
        if header and not line.startswith(" "):
            current = header[2]
            bodies[current] = []
            entry = current if header[1] else entry
        elif found := _OPCODE.match(line):
            bodies[current].append((found[1], line))
    count, seen, left = 0, set(), [entry]
    while left:
        name = left.pop()
        if name in seen or name not in bodies:
            continue
        seen.add(name)
        for opcode, line in bodies[name]:
            if opcode in _ENTERED:
                left += _CALLED.findall(line)
                for branches in _BRANCHES.findall(line):
                    left += [branch.strip().lstrip("%") for branch in branches.split(",")]
            elif opcode not in _FREE and not opcode.endswith(("-done", "-update")):
                count += 1
    return count


def analysis(hlo: str) -> dict[str, Any]:
    """What XLA's analysis of costs counts of the module, each loop once."""
    import jax
    from jaxlib import _hlo, _jax

    client = jax.devices("cpu")[0].client
    return dict(_jax.hlo_module_cost_analysis(client, _hlo.hlo_module_from_text(hlo)))
