"""The page that a person pastes into an issue: ``shardcore doctor``."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardcore._core import Result, __version__
from shardcore.costs.longest import longest_collectives
from shardcore.diagnose import diagnostics
from shardcore.diagnose.known_issues import suspects
from shardcore.diagnose.ops import is_sharded
from shardcore.expected import expect
from shardcore.rules import registered

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs import Cost

_PACKAGES = ("jax", "jaxlib", "libtpu", "jax-cuda12-plugin", "jax-cuda13-plugin")
MOST_COLLECTIVES = 5
"""How many collectives, the longest ones, are listed."""


def checkup(
    result: Result,
    hardware: str | Hardware = "tpu-v5p",
    *,
    hardware_file: str | Path | None = None,
    progress: Callable[[str, float], object] | None = None,
) -> dict[str, Any]:
    """Return the important facts about a program with a questionable sharding, as plain data.

    Args:
        result: the propagated program.
        hardware: the chip for costs.
        hardware_file: as for :func:`shardcore.cost`.
        progress: called with the current step and the fraction done.

    Raises:
        CalculusError: the chip is unknown (``unknown-hardware``).
        PartitionError: there is no per-device program (``unpartitionable``).
    """
    expect(result, Result)
    tell = progress or (lambda step, fraction: None)
    tell("cost", 0.0)
    cost = result.cost(hardware, hardware_file=hardware_file)
    longest = longest_collectives(cost, MOST_COLLECTIVES)
    collectives = []
    for done, row in enumerate(longest):
        tell("trying edits", (1 + done) / (2 + len(longest)))
        collectives.append(row.why.record() | {"total_seconds": row.total_seconds})
    tell("diagnostics", (1 + len(longest)) / (2 + len(longest)))
    found = diagnostics(result, cost.hardware, cost=cost)
    module = result.module
    ports = result.arguments()
    return {
        "versions": _versions(),
        "shardy": module.shardy,
        "registered_rules": "user" in registered().values(),
        "program": {
            "name": module.filename,
            "ops": module.num_ops,
            "arguments": len(ports),
            "sharded_arguments": sum(map(is_sharded, ports)),
            "results": len(result.results()),
        },
        "meshes": {name: str(mesh) for name, mesh in module.meshes.items()},
        "cost": _figures(cost),
        "diagnostics": [each.record() for each in found],
        "collectives": collectives,
        "xla": [each.record() for each in suspects(module.ops(), module.shardy)],
    }


def _versions() -> dict[str, str]:
    found = {"shardcore": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _figures(cost: Cost) -> dict[str, Any]:
    return {
        "hardware": cost.hardware.name,
        "step_seconds": cost.step_seconds,
        "step_seconds_lower": cost.step_seconds_lower,
        "step_seconds_upper": cost.step_seconds_upper,
        "peak_bytes": cost.peak_bytes,
        "hbm_bytes": cost.hardware.hbm_bytes,
        "collectives": sum(row.count for row in cost.collectives),
        "wire_bytes": sum(row.total_wire_bytes for row in cost.collectives),
    }
