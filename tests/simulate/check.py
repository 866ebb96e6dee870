"""A program, or a function as JAX lowers it, run by XLA and by the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from hypothesis import settings
from shardcore import Module
from shardcore.simulate import Simulator

from tests.deep import IS_DEEP
from tests.simulate import agree, xla

Array = np.ndarray[Any, Any]

few = settings(max_examples=400 if IS_DEEP else 5)
"""How many random cases of one kind of op are compiled; one takes some 30 ms."""


def lowered(fn: Callable[..., Any], *arrays: Any) -> str:
    """``fn`` as JAX lowers it for hosts."""
    with jax.enable_x64(True):
        return str(jax.jit(fn, keep_unused=True).lower(*arrays).as_text())


def check_text(text: str, *arrays: Array, bound: float = 0) -> None:
    """Fails unless both runs of ``text`` give the same, floats within ``bound`` units.

    Two devices with different arguments have to get what each gets alone.
    """
    simulator = Simulator(Module.parse(text))
    found = simulator(*arrays)
    for at, (got, want) in enumerate(zip(found, xla.run(text, *arrays), strict=True)):
        agree.assert_same(got, want, bound, f"result {at}")
    for differing in (range(len(arrays)), range(0, len(arrays), 2)):
        check_devices(simulator, arrays, found, set(differing))


def check_devices(
    simulator: Simulator, arrays: Sequence[Array], found: Sequence[Array], differing: set[int]
) -> None:
    """Fails unless two devices get together what each gets alone, the first one ``found``.

    The arguments in ``differing`` are reversed for the second one.
    """
    others = [
        np.flip(array.reshape(-1)).reshape(array.shape) if at in differing else array
        for at, array in enumerate(arrays)
    ]
    alone = simulator(*others)
    stacked = [
        np.stack([array, other]) if at in differing else array
        for at, (array, other) in enumerate(zip(arrays, others, strict=True))
    ]
    for both, *each in zip(simulator(*stacked, devices=2), found, alone, strict=True):
        for got, want in zip(both, each, strict=True):
            # Sums of one array and of two may be done by other parts of a library.
            agree.assert_same(np.asarray(got), want, 4)


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
