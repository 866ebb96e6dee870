"""A loss whose layers keep what is chosen: the function, traced and changed for the arguments that
it is called with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from shardcore.bounded import shown
from shardcore.errors import Diagnostic, PlanError
from shardcore.jax.private import is_of_backward_pass
from shardcore.remat.choices import Setting
from shardcore.remat.programs import Stack, flat, stacks, sub_programs
from shardcore.remat.values import INPUTS, Value, names_of, values_of
from shardcore.remat.wrapping import as_layer, block_of, wrapped

_HINT = "give the function whose value is the loss, and step=, which makes the step of it"


@dataclass(frozen=True, eq=False)
class Program:
    """A loss, traced."""

    jaxpr: Any
    """Flat: see :func:`shardcore.remat.programs.flat`."""
    constants: tuple[Any, ...]
    structure: Any
    """The tree of what it returns."""
    stacks: tuple[Stack, ...]
    """Its layers."""
    values: tuple[tuple[Value, ...], ...]
    """The values that those of each stack may name."""
    changed: dict[Setting, Any] = field(default_factory=dict)
    """The function on flat arguments, by what its layers keep."""

    def layer(self, number: int) -> Any:
        """Return a layer of the stack ``number`` as a jaxpr."""
        stack = self.stacks[number]
        if stack.is_scan:
            return self.jaxpr.eqns[stack.starts[0]].params["jaxpr"].jaxpr
        return block_of(self.jaxpr, stack.starts[0], stack.size)

    def inputs(self, number: int) -> list[int]:
        """Return which arguments of a layer of the stack ``number`` come from the layer before."""
        stack = self.stacks[number]
        if stack.is_scan:
            params = self.jaxpr.eqns[stack.starts[0]].params
            first = params["num_consts"]
            return list(range(first, first + params["num_carry"]))
        first, second = stack.starts[:2]
        made = {
            variable for equation in self.jaxpr.eqns[first:second] for variable in equation.outvars
        }
        arguments = block_of(self.jaxpr, second, stack.size).invars
        return [at for at, variable in enumerate(arguments) if variable in made]

    def used(self, setting: Setting) -> tuple[tuple[Value, ...], ...]:
        """Return of each stack the values with names that ``setting`` has."""
        names = [{name for _, choice in runs for name in choice.names} for runs in setting]
        return tuple(
            tuple(value for value in values if value.name in own)
            for values, own in zip(self.values, names, strict=True)
        )

    def wrapped(self, layer: Callable[..., Any], setting: Setting) -> Callable[..., Any]:
        """Return ``layer``, the function that the first scan runs, which keeps what ``setting``
        says."""
        number = next(at for at, stack in enumerate(self.stacks) if stack.is_scan)
        [(_, choice)] = setting[number]
        first = self.inputs(number)[0]
        names = names_of(self.values[number])
        names = {(at, n - first if at == INPUTS else n): name for (at, n), name in names.items()}
        return as_layer(layer, choice, names) if choice.is_checkpointed else layer

    def with_setting(self, setting: Setting) -> Callable[..., list[Any]]:
        """Return the function on flat arguments whose layers keep what ``setting`` says."""
        if setting not in self.changed:
            names = [names_of(values) for values in self.values]
            jaxpr = wrapped(self.jaxpr, self.stacks, setting, names)
            self.changed[setting] = jaxpr_as_fun(ClosedJaxpr(jaxpr, self.constants))
        found: Callable[..., list[Any]] = self.changed[setting]
        return found


class Loss:
    """A loss, and what it is for arguments of each type."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._known: dict[Any, Program] = {}
        self.first: Program | None = None
        """For the first arguments that it was called with."""

    def program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        """Return the function, traced for arguments of these types.

        Raises:
            PlanError: it is no loss (``not-a-loss``), or has no layers (``no-layers``).
        """
        leaves, tree = jax.tree.flatten((args, kwargs))
        key = (tree, *(str(jax.typeof(leaf)) for leaf in leaves))
        if key not in self._known:
            self._known[key] = self._traced(args, kwargs)
            self.first = self.first or self._known[key]
        return self._known[key]

    def recorded(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as it is."""
        self.program(args, kwargs)
        return self.function(*args, **kwargs)

    def with_setting(self, setting: Setting) -> Callable[..., Any]:
        """Return the function, whose layers keep what ``setting`` says."""

        def changed(*args: Any, **kwargs: Any) -> Any:
            program = self.program(args, kwargs)
            leaves = jax.tree.leaves((args, kwargs))
            return jax.tree.unflatten(program.structure, program.with_setting(setting)(*leaves))

        return changed

    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        made, shapes = jax.make_jaxpr(self.function, return_shape=True)(*args, **kwargs)
        name = shown(getattr(self.function, "__name__", "the function"))
        outs = jax.tree.leaves(shapes)
        if len(outs) > 1 and any(map(_is_of_gradient, made.jaxpr.eqns)):
            message = f"{name} computes gradients: what its layers keep is decided already"
            raise PlanError(Diagnostic("not-a-loss", message, _HINT))
        if not outs or outs[0].shape or not jnp.issubdtype(outs[0].dtype, jnp.floating):
            message = f"{name} returns {shown(shapes)}, which is no loss"
            raise PlanError(Diagnostic("not-a-loss", message, _HINT))
        jaxpr = flat(made.jaxpr)
        found = tuple(stacks(jaxpr))
        if not found:
            message = f"{name} has no layers: no scan multiplies matrices, and no block repeats"
            hint = "run the layers by jax.lax.scan, or one after the other by the same function"
            raise PlanError(Diagnostic("no-layers", message, hint))
        structure = jax.tree.structure(shapes)
        program = Program(jaxpr, tuple(made.consts), structure, found, ())
        values = tuple(
            values_of(program.layer(number), program.inputs(number)) for number in range(len(found))
        )
        return Program(jaxpr, program.constants, structure, found, values)


def _is_of_gradient(equation: Any) -> bool:
    return is_of_backward_pass(equation) or any(
        _is_of_gradient(each) for program in sub_programs(equation) for each in program.eqns
    )


def has_aux(program: Program) -> bool:
    """Return whether the loss returns more than its value."""
    return program.structure.num_leaves > 1 or not jax.tree_util.treedef_is_leaf(program.structure)
