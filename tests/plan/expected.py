"""What tests of others expect of an automatic sharding: annotations, and their collectives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import shardcore
import shardcore.jax
from shardcore.costs import Cost

CHIP = "tpu-v5p"


def runs(cost: Cost) -> dict[str, Fraction]:
    """How many collectives run of each kind, those that run as one counted once."""
    found: dict[str, Fraction] = defaultdict(Fraction)
    for row in cost.collectives:
        found[row.kind] += Fraction(row.count, row.combined)
    return dict(found)


@dataclass(frozen=True)
class Expected:
    """What the test of a model expects."""

    step: Any
    arguments: tuple[Any, ...]
    mesh: dict[str, int]
    annotations: dict[str, str]
    collectives: dict[str, int]
    """How many run of each kind, those that run as one counted once."""
    memory: str | None = None
    values: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    """The constraints of all values of a shape."""

    def check(self) -> shardcore.Plan:
        """Assert that the annotations have these collectives, and that a plan costs no more."""
        lowered = shardcore.jax.lower(self.step, *self.arguments, platform="cpu")
        session = lowered.session(mesh=self.mesh)
        own = {
            v.name: self.values[v.shape] for v in session.module.values() if v.shape in self.values
        }
        session.set({**self.annotations, **own})
        cost = session.cost(CHIP)
        assert runs(cost) == self.collectives
        plan = shardcore.plan(lowered, CHIP, self.memory, mesh=self.mesh, seconds=60)
        assert plan.value <= cost.serial_seconds * 1.001
        assert cost.peak_bytes <= plan.limit
        assert plan.cost.peak_bytes <= plan.limit
        return plan
