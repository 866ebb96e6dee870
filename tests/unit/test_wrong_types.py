"""Arguments of another type than documented: Python's TypeError, at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import shardcore
from shardcore import HloSharding, Module, ShardcoreError
from shardcore.calculus import hardware

RESULT = Module.parse("func.func @main(%a: tensor<8xf32>) { return }").propagate()
WRONG = [0, 1.5, b"x", (), {}, range(10**12), itertools.repeat("x"), itertools.count(), object()]
TAKERS: list[Callable[[Any], object]] = [
    RESULT.cost,
    hardware,
    shardcore.cost,
    lambda value: shardcore.compare(value, value),
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
