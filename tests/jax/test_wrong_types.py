"""Arguments of another type than documented: Python's TypeError, at once."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import shardcore.jax
from shardcore.jax import Compiled, JaxResult, Lowered

WRONG = [0, 1.5, "x", b"x", (), {}, object(), [1], lambda: 0, int, np.zeros(3)]


@pytest.fixture(scope="module")
def lowered() -> Lowered:
    return shardcore.jax.lower(lambda x: x + 1, jax.ShapeDtypeStruct((8,), np.float32))


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_constructors(value: Any, lowered: Lowered) -> None:
    result = lowered.propagate().result
    with pytest.raises(TypeError, match="expected a Module"):
        Lowered(value, None, None)
    with pytest.raises(TypeError, match="expected a Trees or None"):
        Lowered(lowered.module, value, None)
    with pytest.raises(TypeError, match="expected an AbstractMesh or a Mesh or None"):
        Lowered(lowered.module, None, value)
    with pytest.raises(TypeError, match="expected a Result"):
        JaxResult(value, lowered._trees, None)
    with pytest.raises(TypeError, match="expected a Trees"):
        JaxResult(result, value, None)
    with pytest.raises(TypeError, match="expected an AbstractMesh or a Mesh or None"):
        JaxResult(result, lowered._trees, value)
    with pytest.raises(TypeError, match="expected a Partitioned"):
        Compiled(value, value, value, value, value, value)
    with pytest.raises(TypeError, match="expected a Mesh"):
        lowered.over(result, value)


def test_nothing_is_no_result(lowered: Lowered) -> None:
    none: Any = None
    with pytest.raises(TypeError, match="expected a Module, not NoneType"):
        Lowered(none, None, None)
    with pytest.raises(TypeError, match="expected a Result, not NoneType"):
        JaxResult(none, lowered._trees, None)
