"""A program, or a function as JAX lowers it, run by XLA and by the simulator."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from hypothesis import settings
from shardcore import Module

from tests.simulate import agree, xla

Array = np.ndarray[Any, Any]

DEEP = "SHARDCORE_DEEP" in os.environ
few = settings(max_examples=400 if DEEP else 10)
"""How many random cases of one kind of op are compiled; one takes some 30 ms."""


def lowered(fn: Callable[..., Any], *arrays: Any) -> str:
    """``fn`` as JAX lowers it for hosts."""
    with jax.enable_x64(True):
        return str(jax.jit(fn, keep_unused=True).lower(*arrays).as_text())


def check_text(text: str, *arrays: Array, bound: float = 0) -> None:
    """Fails unless both runs of ``text`` give the same, floats within ``bound`` units."""
    results = zip(Module.parse(text).simulate(*arrays), xla.run(text, *arrays), strict=True)
    for at, (got, want) in enumerate(results):
        agree.assert_same(got, want, bound, f"result {at}")


def check(fn: Callable[..., Any], *arrays: Any, bound: float = 0) -> None:
    """The same of a function."""
    check_text(lowered(fn, *arrays), *arrays, bound=bound)


def function(body: list[str], arguments: dict[str, str], results: dict[str, str]) -> str:
    """The text of a function; both dictionaries have types by names."""
    ins = ", ".join(f"%{name}: {kind}" for name, kind in arguments.items())
    outs = ", ".join(results.values())
    names = ", ".join(f"%{name}" for name in results)
    lines = "\n  ".join(body)
    return (
        f"func.func public @main({ins}) -> ({outs}) {{\n  {lines}\n  return {names} : {outs}\n}}\n"
    )
