"""Registers data-flow edges of ops at run time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from shardcore import _core
from shardcore.rules.given import note
from shardcore.rules.registry import Signature, tensor_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    EdgeFunction = Callable[[Signature], "EdgeGroup | Iterable[EdgeGroup] | None"]

__all__ = ["EdgeGroup", "data_flow_edges"]


class EdgeGroup(NamedTuple):
    """A group of data-flow edges: edge ``i`` has the ``i``-th value of each kind listed here.

    For example, ``stablehlo.while`` would be ``EdgeGroup(first_operand=0, returns=[1],
    block_args=None)``: its results own the edges; the sources are the operands and the values that
    region 1 returns; the targets include the block arguments of all regions.
    """

    owner_region: int | None = None
    """The region whose block arguments own the edges; ``None`` for the op's results."""
    first_operand: int | None = None
    """The operand that is a source of the first edge; ``None`` if operands are no sources."""
    returns: Sequence[int] | None = ()
    """The regions whose returned values are sources; ``None`` for all regions."""
    block_args: Sequence[int] | None = ()
    """The regions whose block arguments are targets beside the owner; ``None`` for all regions."""
    operand_order: Sequence[int] | None = None
    """For each edge its operand, counted from ``first_operand``; ``None`` for the identity. Edges
    beyond the end of the list have no operand."""
    return_order: Sequence[int] | None = None
    """For each edge its returned value; otherwise as ``operand_order``."""
    arg_order: Sequence[int] | None = None
    """For each edge its block argument in the regions of ``block_args``; otherwise as
    ``operand_order``."""
    stored_in: str | None = None
    """The attribute of the op with the shardings of the block arguments of ``owner_region``, as
    ``#sdy.sharding_per_value<[...]>``; it is read before a run and written after it. Without it,
    these shardings are not part of the program's text."""


def data_flow_edges(name: str, *groups: EdgeGroup | EdgeFunction, **fields: Any) -> None:
    """Give the op ``name`` data-flow edges, along which shardings propagate.

    Groups owned by block arguments come first. ``fields`` are those of a single :class:`EdgeGroup`:
    ``data_flow_edges("my.loop", first_operand=0, returns=[0])``. Instead of groups, a function may
    be given: it gets the :class:`Signature` of an op and returns its groups, or ``None`` for no
    edges; a run calls it once for each signature. Without groups, the registered edges of the op
    are removed.
    """
    if fields:
        groups = (*groups, EdgeGroup(**fields))
    functions = [group for group in groups if not isinstance(group, EdgeGroup)]
    if not functions:
        rows = _rows(groups) or None
        _core.set_data_flow_edges(name, rows)
        note("edges", name, rows and tuple(map(repr, rows)))
        return
    if len(groups) > 1 or not callable(functions[0]):
        raise TypeError("data_flow_edges takes edge groups, or one function that returns them")
    function = functions[0]

    def call(
        op: str,
        operands: list[tuple[list[int], str] | None],
        results: list[tuple[list[int], str] | None],
        attributes: dict[str, Any],
        conservative: bool,
    ) -> list[tuple[Any, ...]] | None:
        found = function(
            Signature(op, tensor_types(operands), tensor_types(results), attributes, conservative)
        )
        if found is None:
            return None
        return _rows([found] if isinstance(found, EdgeGroup) else found)

    _core.set_data_flow_edges(name, call)
    note("edges", name, function)


def _rows(groups: Iterable[Any]) -> list[tuple[Any, ...]]:
    rows = []
    for group in groups:
        if not isinstance(group, EdgeGroup):
            raise TypeError(f"data-flow edges are EdgeGroups, not {type(group).__name__}")
        owner, first_operand, *lists, stored_in = group
        rows.append((owner, first_operand, *map(_numbers, lists), stored_in))
    return rows


def _numbers(numbers: Sequence[int] | None) -> list[int] | None:
    # A longer list has duplicates, or an invalid number.
    return None if numbers is None else list(islice(numbers, 1 << 16))
