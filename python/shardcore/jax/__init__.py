"""The interface to JAX: completes the shardings of a JAX function, without devices.

:func:`compile` partitions a function and runs it on JAX's devices.

    >>> lowered = shardcore.jax.lower(step, state, batch, mesh={"data": 8}, in_shardings=...)
    >>> result = lowered.propagate()
    >>> result.out_specs, result.at("model.py:42")

Needs jax; ``import shardcore`` does not load it.
"""

from __future__ import annotations

try:
    import jax as _jax
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise ModuleNotFoundError(
        "shardcore.jax needs jax, which is not installed: pip install 'shardcore[jax]', "
        "on Python 3.11 or later",
        name="jax",
    ) from None

from shardcore.jax.versions import OLDEST as _OLDEST
from shardcore.jax.versions import is_older as _is_older

if _is_older(_OLDEST):
    raise ImportError(
        f"shardcore.jax needs jax {_OLDEST} or later, which needs Python 3.11; "
        f"jax {_jax.__version__} is installed",
        name="jax",
    )

from os import sep as _sep
from pathlib import Path as _Path

from jax.extend import source_info_util as _source_info

from shardcore.jax.compile import compile
from shardcore.jax.compiled import Compiled
from shardcore.jax.hlo import named_sharding
from shardcore.jax.lower import lower
from shardcore.jax.lowered import Lowered
from shardcore.jax.measure import measure
from shardcore.jax.result import JaxResult
from shardcore.jax.specs import partition_spec

# Locations in a lowered program are to be lines of the user's code, not of this package.
_source_info.register_exclusion(f"{_Path(__file__).parent.parent}{_sep}")

__all__ = [
    "Compiled",
    "JaxResult",
    "Lowered",
    "compile",
    "lower",
    "measure",
    "named_sharding",
    "partition_spec",
]
