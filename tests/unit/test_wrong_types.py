"""Arguments of another type than documented: Python's TypeError, at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import shardcore
from shardcore import HloSharding, Module, ShardcoreError, expect
from shardcore.calculus import hardware
from shardcore.diagnose import diagnostics
from shardcore.gspmd import TileAssignment
from shardcore.hlo import is_hlo
from shardcore.partition import partition
from shardcore.why import why, why_not

RESULT = Module.parse("func.func @main(%a: tensor<8xf32>) { return }").propagate()
WRONG = [0, 1.5, b"x", (), {}, range(10**12), itertools.repeat("x"), itertools.count(), object()]
TAKERS: list[Callable[[Any], object]] = [
    RESULT.cost,
    hardware,
    shardcore.cost,
    lambda value: shardcore.compare(value, value),
    lambda value: expect.check(value, {}),
    lambda value: diagnostics(value),
    lambda value: partition(value),
    lambda value: why(value, "%a"),
    lambda value: why_not(value, "%a", 0, "x"),
    HloSharding.from_sharding,
    HloSharding.parse("{replicated}").to_sharding,
    ShardcoreError,
]


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("number", range(len(TAKERS)))
def test_other_types_are_refused(number: int, value: Any) -> None:
    taker = TAKERS[number]
    if taker is ShardcoreError:
        value = [value]
    with pytest.raises(TypeError):
        taker(value)


@pytest.mark.parametrize("value", [None, (), [b"HloModule"], object()])
def test_hlo_is_text_or_bytes(value: Any) -> None:
    with pytest.raises(TypeError):
        is_hlo(value)


@pytest.mark.parametrize("order", [(1,), (0, 0), (0, 2), (-1, 0), (0, 1, 2)])
def test_the_order_of_an_iota_is_a_permutation(order: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="is no permutation of 2 dims"):
        TileAssignment.iota((2, 4), (2, 4), order)


@pytest.mark.parametrize("value", [0, (), [1], b"%a", object()])
def test_graphs_are_drawn_around_names(value: Any) -> None:
    for option in ("around", "scope"):
        with pytest.raises(TypeError, match="expected a str"):
            RESULT.graph(**{option: value})


def test_nodes_of_a_graph_are_there() -> None:
    graph = RESULT.graph()
    for numbers in ([99], [-1], b"x"):
        with pytest.raises(ValueError, match="there is no node"):
            graph.subgraph(numbers)
    with pytest.raises(ShardcoreError, match=r"program-too-large"):
        graph.subgraph(range(10**12))


def test_a_mapping_is_one_or_text() -> None:
    with pytest.raises(TypeError, match="expected a Mapping or a str or None"):
        RESULT.cost(mapping=0)


def test_arguments_of_a_simulation_are_not_copied_where_they_are_too_long() -> None:
    with pytest.raises(ShardcoreError, match="items, not those of shape"):
        RESULT.module.simulate(range(10**12))
