"""A partitioned function on JAX's devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from shardcore.expected import expect, expect_all
from shardcore.jax.boundary import Leaf
from shardcore.jax.mistakes import mistake
from shardcore.jax.trees import Trees
from shardcore.partition import Partitioned


class Compiled:
    """The callable that :func:`shardcore.jax.compile` returns; a call does not compile anything.

    An argument whose sharding is not the one in :attr:`in_shardings` is copied to that sharding;
    other arguments are not copied. Results are ``jax.Array`` objects, computed asynchronously like
    those of jitted functions. Static arguments are not passed again.
    """

    def __init__(
        self,
        partitioned: Partitioned,
        executable: jax.stages.Compiled,
        trees: Trees,
        mesh: jax.sharding.Mesh,
        inputs: Sequence[Leaf],
        outputs: Sequence[Leaf],
        run: Callable[..., Any] | None = None,
    ) -> None:
        expect(partitioned, Partitioned)
        expect(executable, jax.stages.Compiled)
        expect(trees, Trees)
        expect(mesh, jax.sharding.Mesh)
        self._inputs = expect_all(inputs, Leaf, "inputs")
        self._outputs = expect_all(outputs, Leaf, "outputs")
        self.partitioned = partitioned
        """The per-device program and its collectives."""
        self.executable = executable
        """JAX's executable, over flat lists of leaves: it has ``as_text``, ``memory_analysis`` and
        so on."""
        self.mesh = mesh
        """The mesh with the devices that run the program."""
        self._trees = trees
        # A function that runs the executable, for arguments with which it cannot be called itself.
        self._run = executable if run is None else run

    @property
    def in_shardings(self) -> tuple[Any, ...]:
        """The sharding of each leaf of the positional arguments; ``None`` for unused ones."""
        args, _ = self._trees.map_inputs([leaf.sharding for leaf in self._inputs])
        return args  # type: ignore[no-any-return]

    @property
    def kwarg_shardings(self) -> dict[str, Any]:
        """The sharding of each leaf of the keyword arguments."""
        return self._trees.map_inputs([leaf.sharding for leaf in self._inputs])[1]

    @property
    def out_shardings(self) -> Any:
        """The sharding of each leaf of what the function returns."""
        return self._trees.map_outputs(leaf.sharding for leaf in self._outputs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on the user's arguments.

        Raises:
            LoweringError: the arguments' structure, shapes or types differ from those that the
                function was lowered for (``unexpected-argument``).
        """
        given, tree = jax.tree.flatten((args, kwargs))
        if tree != self._trees.inputs:
            raise mistake(
                "unexpected-argument",
                f"the function was lowered for {self._trees.inputs}, not for {tree}",
                "give what it was lowered for, without static arguments",
            )
        kept = (given[index] for index in self._trees.kept)
        placed = [_placed(value, leaf) for value, leaf in zip(kept, self._inputs, strict=True)]
        return self._trees.map_outputs(self._run(*placed))

    def __repr__(self) -> str:
        return f"<shardcore.jax.Compiled: {self.partitioned!r}>"


def _placed(value: Any, leaf: Leaf) -> Any:
    """Return ``value`` as an array with the type and sharding of ``leaf``."""
    if not isinstance(value, jax.Array):
        # Python numbers are weakly typed: they are converted to the type of the argument.
        value = np.asarray(value, leaf.dtype if np.ndim(value) == 0 else None)
        value = value.astype(jax.dtypes.canonicalize_dtype(value.dtype), copy=False)
    if value.shape != leaf.shape or value.dtype != leaf.dtype:
        raise mistake(
            "unexpected-argument",
            f"{leaf.name} is {_type(leaf)}, not {_type(value)}",
            "lower and compile the function for these shapes and types",
        )
    if isinstance(value, jax.Array) and leaf.sharding.is_equivalent_to(value.sharding, value.ndim):
        return value
    return jax.device_put(value, leaf.sharding)


def _type(value: Any) -> str:
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"
