"""Arguments of another type than documented: Python's TypeError, at once."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest
import shardcore.jax
from shardcore.jax import Compiled, JaxResult, Lowered

WRONG = [0, 1.5, "x", b"x", (), {}, object(), [1], lambda: 0, int, jnp.zeros(3)]
LOWERED = shardcore.jax.lower(lambda x: x + 1, jnp.zeros(8))
RESULT = LOWERED.propagate()


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
def test_constructors(value: Any) -> None:
    with pytest.raises(TypeError, match="expected a Module"):
        Lowered(value, None, None)
    with pytest.raises(TypeError, match="expected a Trees or None"):
        Lowered(LOWERED.module, value, None)
    with pytest.raises(TypeError, match="expected an AbstractMesh or a Mesh or None"):
        Lowered(LOWERED.module, None, value)
    with pytest.raises(TypeError, match="expected a Result"):
        JaxResult(value, LOWERED._trees, None)
    with pytest.raises(TypeError, match="expected a Trees"):
        JaxResult(RESULT.result, value, None)
    with pytest.raises(TypeError, match="expected an AbstractMesh or a Mesh or None"):
        JaxResult(RESULT.result, LOWERED._trees, value)
    with pytest.raises(TypeError, match="expected a Partitioned"):
        Compiled(value, value, value, value, value, value)
    with pytest.raises(TypeError, match="expected a Mesh"):
        LOWERED.over(RESULT.result, value)


def test_nothing_is_no_result() -> None:
    none: Any = None
    with pytest.raises(TypeError, match="expected a Module, not NoneType"):
        Lowered(none, None, None)
    with pytest.raises(TypeError, match="expected a Result, not NoneType"):
        JaxResult(none, LOWERED._trees, None)
