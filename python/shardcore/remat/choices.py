"""What layers keep for the backward pass: the choices, and the code of each.

A policy here is one of JAX's by name, or names that ``checkpoint_name`` gives to values: those that
stay on the device, and those that wait in the memory of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

NONE = "none"
"""No ``jax.checkpoint``: everything that the backward pass takes is kept."""
NAMES = "names"
"""What is named is kept, or on the host."""
KEEPING = (
    "everything_saveable",
    "nothing_saveable",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
)
"""Policies of JAX's by name."""
OFFLOADING = "offload_dot_with_no_batch_dims"
"""The policy of JAX's that has the host keep values."""
BUILT_IN = (*KEEPING, OFFLOADING)

_HOST = '"device", "pinned_host"'


@dataclass(frozen=True)
class Choice:
    """What a layer keeps."""

    policy: str = NAMES
    """:data:`NONE`, :data:`NAMES` or one of :data:`BUILT_IN`."""
    kept: frozenset[str] = field(default_factory=frozenset)
    """Names of values that stay on the device."""
    offloaded: frozenset[str] = field(default_factory=frozenset)
    """Names of values that are on the host until the backward pass takes them."""

    @property
    def is_checkpointed(self) -> bool:
        """Whether the layer is wrapped in ``jax.checkpoint``."""
        return self.policy != NONE

    @property
    def names(self) -> frozenset[str]:
        """All names."""
        return self.kept | self.offloaded

    def code(self) -> str:
        """Return the policy as Python: ``None`` where there is no ``jax.checkpoint``."""
        at = "jax.checkpoint_policies"
        if self.policy == NONE:
            return "None"
        if self.policy == OFFLOADING:
            return f"{at}.{OFFLOADING}({_HOST})"
        if self.policy != NAMES:
            return f"{at}.{self.policy}"
        if not self.names:
            return f"{at}.nothing_saveable"
        if not self.offloaded:
            return f"{at}.save_only_these_names({_quoted(self.kept)})"
        return (
            f"{at}.save_and_offload_only_these_names(\n"
            f"    names_which_can_be_saved=[{_quoted(self.kept)}],\n"
            f"    names_which_can_be_offloaded=[{_quoted(self.offloaded)}],\n"
            '    offload_src="device",\n'
            '    offload_dst="pinned_host",\n'
            ")"
        )

    def policy_of_jax(self) -> Callable[..., Any]:
        """Return the policy that ``jax.checkpoint`` takes."""
        import jax

        policies: Any = jax.checkpoint_policies
        found: Callable[..., Any]
        if self.policy == OFFLOADING:
            found = policies.offload_dot_with_no_batch_dims("device", "pinned_host")
        elif self.policy != NAMES:
            found = getattr(policies, self.policy)
        elif self.offloaded:
            found = policies.save_and_offload_only_these_names(
                names_which_can_be_saved=sorted(self.kept),
                names_which_can_be_offloaded=sorted(self.offloaded),
                offload_src="device",
                offload_dst="pinned_host",
            )
        elif self.kept:
            found = policies.save_only_these_names(*sorted(self.kept))
        else:
            found = policies.nothing_saveable
        return found

    @staticmethod
    def of_names(kept: Iterable[str], offloaded: Iterable[str]) -> Choice:
        """Return the choice of names, ``nothing_saveable`` if there are none."""
        found = Choice(NAMES, frozenset(kept), frozenset(offloaded))
        return found if found.names else Choice("nothing_saveable")

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "policy": self.policy,
            "kept": sorted(self.kept),
            "offloaded": sorted(self.offloaded),
            "code": self.code(),
        }

    def __str__(self) -> str:
        if self.policy != NAMES:
            return "no recomputation" if self.policy == NONE else self.policy
        parts = [f"keep {', '.join(sorted(self.kept))}"] if self.kept else []
        if self.offloaded:
            parts.append(f"offload {', '.join(sorted(self.offloaded))}")
        return "; ".join(parts) or "recompute everything"


Runs = tuple[tuple[int, Choice], ...]
"""What the layers of a stack keep: so many of them, from the first on, each with its choice."""

Setting = tuple[Runs, ...]
"""What the layers of each stack keep."""


def uniform(choice: Choice, counts: Sequence[int]) -> Setting:
    """Return the same choice for all layers of stacks of so many."""
    return tuple(((count, choice),) for count in counts)


def each(runs: Runs) -> list[Choice]:
    """Return the choice of each layer."""
    return [choice for count, choice in runs for _ in range(count)]


def label(setting: Setting) -> str:
    """Return a setting as text for tables."""
    stacks = [
        ", then ".join(
            str(choice) if len(runs) == 1 else f"{count} layers: {choice}" for count, choice in runs
        )
        for runs in setting
    ]
    return stacks[0] if len(set(stacks)) == 1 else " | ".join(stacks)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))
