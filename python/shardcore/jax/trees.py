"""Maps arguments and results of a program to leaves of the function's pytrees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import jax

from shardcore._core import Module, Port
from shardcore.jax.mistakes import mistake

_HIDDEN = ("jax.const", "jax.global_constant", "jax.token")
"""Attributes of module arguments that are no leaf: hoisted constants, dimension variables,
tokens."""

_Leaf = TypeVar("_Leaf")


@dataclass(frozen=True)
class Trees:
    """The pytrees of a function, and which of their leaves the module keeps."""

    inputs: Any
    """The structure of ``(args, kwargs)``."""
    outputs: Any
    """The structure of the function's return value."""
    kept: tuple[int, ...]
    """The indices of the input leaves that are arguments of the module; JAX drops unused ones."""
    in_avals: tuple[Any, ...] | None = None
    """Shape and type of each leaf of the inputs in the user's program; ``None`` if unknown."""
    out_avals: tuple[Any, ...] | None = None
    """Shape and type of each leaf of the outputs in the user's program; ``None`` if unknown."""
    mesh: jax.sharding.Mesh | None = None
    """The mesh, with devices, of the function's arguments or shardings."""

    @staticmethod
    def flat(module: Module) -> Trees:
        """The trees of a module without pytrees: flat tuples."""
        num_inputs, num_outputs = len(_leaves(module.arguments())), len(_leaves(module.results()))
        inputs = jax.tree.structure(((0,) * num_inputs, {}))
        outputs = jax.tree.structure((0,) * num_outputs)
        return Trees(inputs, outputs, tuple(range(num_inputs)))

    def check(self, module: Module) -> Trees:
        """Return these trees; raise if they do not fit ``module``.

        Raises:
            LoweringError: the module has other arguments or results (``lowering``).
        """
        counts = (
            ("arguments", len(_leaves(module.arguments())), len(self.kept)),
            ("results", len(_leaves(module.results())), self.outputs.num_leaves),
        )
        for what, found, wanted in counts:
            if found != wanted:
                raise mistake(
                    "lowering",
                    f"the program has {found} {what}, the function {wanted}",
                    "lower it to text and propagate that: shardcore.Module.parse",
                )
        return self

    @property
    def kept_avals(self) -> list[Any] | None:
        """Shape and type of the leaves that are arguments of the module."""
        return None if self.in_avals is None else [self.in_avals[index] for index in self.kept]

    def map_inputs(self, leaves: Sequence[_Leaf]) -> tuple[Any, dict[str, Any]]:
        """Return ``leaves``, one for each kept leaf, as ``(args, kwargs)``; other leaves are
        ``None``."""
        every: list[_Leaf | None] = [None] * self.inputs.num_leaves
        for place, leaf in zip(self.kept, leaves, strict=True):
            every[place] = leaf
        args, kwargs = jax.tree.unflatten(self.inputs, every)
        return args, kwargs

    def map_outputs(self, leaves: Iterable[_Leaf]) -> Any:
        """Return ``leaves`` in the structure of the function's return value."""
        return jax.tree.unflatten(self.outputs, leaves)


def _leaves(ports: Iterable[Port]) -> list[Port]:
    """The ``ports`` that are leaves."""
    return [port for port in ports if not is_hidden(port)]


def is_hidden(port: Port) -> bool:
    """Whether ``port`` is no leaf of the function's arguments or results, such as a token."""
    return port.shape is None or any(name in port.attributes for name in _HIDDEN)


def input_leaves(module: Module) -> list[Port]:
    """The arguments of ``module`` that are leaves of the function's arguments."""
    return _leaves(module.arguments())


def output_leaves(module: Module) -> list[Port]:
    """The results of ``module`` that are leaves of what the function returns."""
    return _leaves(module.results())
