"""What a plan is made for: devices, a chip, a memory limit, and options of costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from shardcore._core import Mesh
from shardcore.calculus.hardware import Hardware
from shardcore.costs.links import Links, links
from shardcore.plan.limits import Limits


@dataclass(frozen=True)
class Wanted:
    """The devices, chip, limit and options of a plan."""

    meshes: tuple[Mesh, ...]
    chip: Hardware
    limit: float
    """Bytes of memory of a device."""
    minimize: str
    seconds: float
    executor: Executor | None
    options: Mapping[str, Any]
    """Options of :func:`shardcore.cost`."""
    progress: Callable[[str, float], object] | None
    limits: Limits = field(default_factory=Limits)

    @property
    def counting(self) -> dict[str, Any]:
        """The options for comparing plans: arguments and results are sharded as propagation says,
        because ports that XLA would shard differently get annotations at the end."""
        return {**self.options, "keep_ports": True}

    def links(self) -> Links:
        """Return the links of the chip."""
        return links(self.chip, self.options)
