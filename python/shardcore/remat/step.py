"""Steps that differentiate a loss themselves: its layers are changed where they do.

While a step is traced, ``jax.grad`` and ``jax.value_and_grad`` are given the loss with layers that
keep what is chosen.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from shardcore.errors import Diagnostic, PlanError
from shardcore.jax.lowered import Lowered
from shardcore.remat.choices import Setting
from shardcore.remat.loss import Loss, Program

_one_at_a_time = threading.RLock()
_DIFFERENTIATE = ("grad", "value_and_grad")


class Step:
    """A lowered step, and the layers of the loss that it differentiates."""

    def __init__(self, lowered: Lowered) -> None:
        """Find the layers.

        Raises:
            PlanError: it differentiates no loss that has layers (``no-layers``).
            LoweringError: it was lowered from no function (``not-a-function``).
        """
        self._given = lowered
        self._known: dict[Setting, Lowered] = {}
        self._program: Program | None = None
        lowered.retraced(functools.partial(self._replaced, None))
        if self._program is None:
            message = "no loss with layers is differentiated"
            hint = "call jax.grad or jax.value_and_grad by these names, of a function with layers"
            raise PlanError(Diagnostic("no-layers", message, hint))

    @property
    def given(self) -> Lowered:
        """The step as it is."""
        return self._given

    @property
    def layers(self) -> Program:
        """The loss with the layers."""
        assert self._program is not None, "it was found"
        return self._program

    def lowered(self, setting: Setting) -> Lowered:
        """Return the step whose layers keep what ``setting`` says."""
        if setting not in self._known:
            self._known[setting] = self._given.anew(functools.partial(self._replaced, setting))
        return self._known[setting]

    @contextmanager
    def _replaced(self, setting: Setting | None) -> Iterator[None]:
        thread = threading.get_ident()
        own = {name: getattr(jax, name) for name in _DIFFERENTIATE}

        def other(name: str) -> Callable[..., Any]:
            @functools.wraps(own[name])
            def differentiate(fun: Any, *args: Any, **options: Any) -> Any:
                is_ours = threading.get_ident() == thread
                return own[name](self._changed(fun, setting) if is_ours else fun, *args, **options)

            return differentiate

        with _one_at_a_time:
            for name in _DIFFERENTIATE:
                setattr(jax, name, other(name))
            try:
                yield
            finally:
                for name, function in own.items():
                    setattr(jax, name, function)

    def _changed(self, fun: Callable[..., Any], setting: Setting | None) -> Callable[..., Any]:
        @functools.wraps(fun)
        def changed(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = jax.tree.flatten((args, kwargs))
            places = [at for at, leaf in enumerate(leaves) if _is_array(leaf)]

            def of_arrays(*arrays: Any) -> Any:
                every = list(leaves)
                for at, array in zip(places, arrays, strict=True):
                    every[at] = array
                own, named = jax.tree.unflatten(tree, every)
                return fun(*own, **named)

            arrays = [leaves[at] for at in places]
            loss = Loss(of_arrays)
            try:
                program = loss.program(tuple(arrays), {})
            except PlanError:
                return fun(*args, **kwargs)
            self._program = self._program or program
            if setting is None or program.stacks != self._program.stacks:
                return fun(*args, **kwargs)
            return loss.with_setting(setting)(*arrays)

        return changed


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, float, complex, int))
