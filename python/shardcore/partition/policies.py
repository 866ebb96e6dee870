"""The policies of :func:`shardcore.partition.partition`."""

from __future__ import annotations

from shardcore.bounded import shown

POLICIES = ("least", "shardy", "xla")
"""They choose among the ways to compute an op."""


def check_policy(policy: str) -> None:
    """Check that there is ``policy``.

    Raises:
        ValueError: there is not.
    """
    if policy not in POLICIES:
        raise ValueError(f"policy is 'shardy', 'least' or 'xla', not {shown(policy)}")
