"""Programs with layers that keep what is chosen: values are named, layers checkpointed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from shardcore.remat.alike import are_alike
from shardcore.remat.choices import Choice, Setting, each
from shardcore.remat.programs import Stack, flat
from shardcore.remat.values import INPUTS

Names = Mapping[tuple[int, int], str]
"""The names of values of a layer: the place of the equation, and of the result."""


def wrapped(program: Any, stacks: Sequence[Stack], setting: Setting, names: Sequence[Names]) -> Any:
    """Return a flat jaxpr whose layers keep what ``setting`` says.

    Args:
        program: the jaxpr.
        stacks: its layers.
        setting: what those of each stack keep.
        names: those that values of the layers of each stack may be given.
    """
    equations = list(program.eqns)
    for stack, runs, known in zip(stacks, setting, names, strict=True):
        choices = each(runs)
        if stack.is_scan:
            [place] = stack.starts
            equation, [choice] = equations[place], {*choices}
            if choice.is_checkpointed:
                body = equation.params["jaxpr"]
                body = ClosedJaxpr(_as_layer(body.jaxpr, choice, known), body.consts)
                equations[place] = equation.replace(params={**equation.params, "jaxpr": body})
            continue
        made: dict[Choice, tuple[Any, Any]] = {}
        for start, choice in zip(stack.starts, choices, strict=True):
            if choice.is_checkpointed:
                block = block_of(program, start, stack.size)
                like, layer = made.get(choice, (None, None))
                if like is None or not are_alike(like, block):
                    layer = _checkpointed(named(block, choice.names, known), choice, True)
                    made[choice] = block, layer
                results = list(block.outvars)
                equations[start] = layer.replace(invars=list(block.invars), outvars=results)
                # Kept in place, so that those of later blocks are where they were.
                equations[start + 1 : start + stack.size] = [None] * (stack.size - 1)
    return program.replace(eqns=[equation for equation in equations if equation is not None])


def block_of(program: Any, start: int, size: int) -> Any:
    """Return equations of a jaxpr as a jaxpr, of what they take to what others take of them."""
    equations = program.eqns[start : start + size]
    made = {variable for equation in equations for variable in equation.outvars}
    taken = dict.fromkeys(
        atom
        for equation in equations
        for atom in equation.invars
        if not isinstance(atom, Literal) and atom not in made
    )
    later = {
        atom
        for equation in program.eqns[start + size :]
        for atom in equation.invars
        if not isinstance(atom, Literal)
    }
    later |= {atom for atom in program.outvars if not isinstance(atom, Literal)}
    results = [
        variable for equation in equations for variable in equation.outvars if variable in later
    ]
    effects = set().union(*(equation.effects for equation in equations))
    return program.replace(
        constvars=[], invars=list(taken), outvars=results, eqns=equations, effects=effects
    )


def named(block: Any, chosen: frozenset[str], names: Names) -> Any:
    """Return a jaxpr whose values with ``chosen`` names are named, as ``checkpoint_name`` does."""
    others: dict[Any, Any] = {}

    def renamed(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else others.get(atom, atom)

    equations: list[Any] = []

    def name_it(place: int, at: int, variable: Any, info: Any) -> None:
        name = names.get((place, at))
        if name is not None and name in chosen:
            others[variable] = copy.copy(variable)
            made = _naming(variable.aval, name)
            made = made.replace(invars=[variable], outvars=[others[variable]])
            equations.append(made if info is None else made.replace(source_info=info))

    for at, variable in enumerate(block.invars):
        name_it(INPUTS, at, variable, None)
    for place, equation in enumerate(block.eqns):
        equations.append(equation.replace(invars=[renamed(atom) for atom in equation.invars]))
        if equation.primitive.name != "name":
            for at, variable in enumerate(equation.outvars):
                name_it(place, at, variable, equation.source_info)
    return block.replace(eqns=equations, outvars=[renamed(atom) for atom in block.outvars])


def _naming(aval: Any, name: str) -> Any:
    give_name: Any = checkpoint_name
    [equation] = jax.make_jaxpr(lambda x: give_name(x, name))(aval).eqns
    return equation


def _as_layer(body: Any, choice: Choice, names: Names) -> Any:
    """The body of a scan, checkpointed as a whole."""
    own = [*body.constvars, *body.invars]
    made = _checkpointed(named(body, choice.names, names), choice, False)
    # A checkpointed function returns values of its own, also where the body returns an argument.
    results = [copy.copy(variable) for variable in made.outvars]
    made = made.replace(invars=own, outvars=results)
    return body.replace(eqns=[made], outvars=results)


def as_layer(layer: Callable[..., Any], choice: Choice, names: Names) -> Callable[..., Any]:
    """Return the function that a scan runs, checkpointed as a whole.

    Args:
        layer: takes a carry and what is of this layer.
        choice: what it keeps.
        names: those that values may be given, by equations as of the body of the scan.
    """

    def checkpointed(carry: Any, own: Any) -> Any:
        leaves = jax.tree.leaves((carry, own))
        made, shapes = jax.make_jaxpr(layer, return_shape=True)(carry, own)
        body = named(flat(made.jaxpr), choice.names, names)
        run = jaxpr_as_fun(ClosedJaxpr(body, made.consts))
        run = jax.checkpoint(run, policy=choice.policy_of_jax(), prevent_cse=False)
        return jax.tree.unflatten(jax.tree.structure(shapes), run(*leaves))

    return checkpointed


def _checkpointed(block: Any, choice: Choice, prevents_cse: bool) -> Any:
    """One equation that runs ``block`` and keeps what ``choice`` says."""
    own = [*block.constvars, *block.invars]
    run = jaxpr_as_fun(ClosedJaxpr(block.replace(constvars=[], invars=own), ()))
    layer = jax.checkpoint(run, policy=choice.policy_of_jax(), prevent_cse=prevents_cse)
    [equation] = jax.make_jaxpr(layer)(*(variable.aval for variable in own)).eqns
    return equation
