"""Registers data-flow edges of ops at run time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from shardcore import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["EdgeGroup", "data_flow_edges"]


class EdgeGroup(NamedTuple):
    """A group of data-flow edges: edge ``i`` has the ``i``-th value of each kind given here.

    ``stablehlo.while`` would be ``EdgeGroup(first_operand=0, returns=[1], block_args=None)``: its
    results own the edges, whose sources are operands and values returned by region 1, and whose
    targets include the block arguments of all regions.
    """

    owner_region: int | None = None
    """The region whose block arguments own the edges; ``None`` for the op's results."""
    first_operand: int | None = None
    """The operand that is a source of the first edge; ``None`` if no operands are sources."""
    returns: Sequence[int] | None = ()
    """The regions whose returned values are sources; ``None`` for all."""
    block_args: Sequence[int] | None = ()
    """The regions whose block arguments are targets besides the owner; ``None`` for all."""


def data_flow_edges(name: str, *groups: EdgeGroup) -> None:
    """Give the op ``name`` data-flow edges, along which shardings propagate.

    Groups that are owned by block arguments come first. Without groups the registered edges of the
    op are removed.
    """
    edges = [
        (
            group.owner_region,
            group.first_operand,
            _regions(group.returns),
            _regions(group.block_args),
        )
        for group in groups
    ]
    _core.set_data_flow_edges(name, edges or None)


def _regions(regions: Sequence[int] | None) -> list[int] | None:
    # A longer list has a region twice, or one that is refused.
    return None if regions is None else list(islice(regions, 1 << 16))
