"""Giving ops data-flow edges at run time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from shardcore import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["EdgeGroup", "data_flow_edges"]


class EdgeGroup(NamedTuple):
    """Edges of one make: the ``i``-th joins the ``i``-th value of each kind that is named here.

    ``stablehlo.while`` would be ``EdgeGroup(first_operand=0, returns=[1], block_args=None)``: its
    results own the edges, and operands, what region 1 returns, and the arguments of all regions
    take part.
    """

    owner_region: int | None = None
    """The region whose arguments stand for the edges; ``None`` for the op's results."""
    first_operand: int | None = None
    """The operand that flows into the first edge; ``None`` if operands do not."""
    returns: Sequence[int] | None = ()
    """The regions whose returned values flow in; ``None`` for all."""
    block_args: Sequence[int] | None = ()
    """The regions whose arguments the values flow to, beside the owner; ``None`` for all."""


def data_flow_edges(name: str, *groups: EdgeGroup) -> None:
    """Say that values flow through the op ``name`` as ``groups`` state, so shardings do too.

    Groups whose owners are block arguments come first. Without groups the op's edges are taken
    back.
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
    # More than this name one twice, or one that is refused.
    return None if regions is None else list(islice(regions, 1 << 16))
