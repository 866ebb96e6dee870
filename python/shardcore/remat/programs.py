"""Traced functions without calls, and their layers: scans, or blocks of equations that repeat.

Calls of jitted functions that multiply matrices, and what ``jax.checkpoint`` wraps, are inlined, so
that layers are found whether they are jitted, checkpointed or neither.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from shardcore.jax.private import name_of_program, place_of
from shardcore.pipeline.repeated_blocks import runs

HEAVY = ("dot_general", "conv_general_dilated", "ragged_dot", "ragged_dot_general")
"""Primitives that layers are made of."""
CHECKPOINTS = ("remat2", "checkpoint", "remat")
"""The primitive of ``jax.checkpoint``, by its names in versions of JAX."""
_CALLS = ("jit", "pjit", "closed_call", "core_call")
_LEAST_LAYERS = 2


@dataclass(frozen=True)
class Stack:
    """Equal layers, one after the other."""

    is_scan: bool
    """Whether a scan runs them; otherwise they are blocks of equations."""
    starts: tuple[int, ...]
    """The place of the scan, or of the first equation of each block."""
    size: int
    """The number of equations of a layer."""
    count: int
    """The number of layers."""
    place: str | None
    """Where the user's program has the scan, or the first layer: ``file:line:column``."""
    function: str | None
    """The name of the function that the scan runs."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        kind = "scan" if self.is_scan else "blocks"
        return {
            "kind": kind,
            "layers": self.count,
            "place": self.place,
            "function": self.function,
        }


def sub_programs(equation: Any) -> list[Any]:
    """Return the jaxprs in the parameters of an equation, without their constants."""
    found: list[Any] = []
    for value in equation.params.values():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(one, (ClosedJaxpr, Jaxpr)):
                found.append(one.jaxpr if isinstance(one, ClosedJaxpr) else one)
    return found


def is_heavy(equation: Any) -> bool:
    """Whether an equation multiplies matrices, itself or in what it calls."""
    if equation.primitive.name in HEAVY:
        return True
    return any(is_heavy(inner) for each in sub_programs(equation) for inner in each.eqns)


def flat(program: Any) -> Any:
    """Return a jaxpr whose calls of jitted functions that multiply matrices, and checkpointed
    functions, are inlined; also in bodies of scans.
    """
    equations: list[Any] = []
    names: dict[Any, Any] = {}
    for equation in program.eqns:
        _inline(equation, names, equations)
    outvars = [_renamed(atom, names) for atom in program.outvars]
    return program.replace(eqns=equations, outvars=outvars)


def _inline(equation: Any, names: dict[Any, Any], equations: list[Any]) -> None:
    """Append ``equation``, or those of the function that it calls; ``names`` has other names."""
    operands = [_renamed(atom, names) for atom in equation.invars]
    inner = _called(equation)
    if inner is None:
        params = equation.params
        if equation.primitive.name == "scan":
            params = {**params, "jaxpr": _flat_body(params["jaxpr"])}
        equations.append(equation.replace(invars=operands, params=params))
        return
    # A program that is called twice has values of its own each time.
    own = dict(zip(inner.invars, operands, strict=True))
    prefix = equation.source_info.name_stack
    for each in inner.eqns:
        own.update((variable, copy.copy(variable)) for variable in each.outvars)
        info = each.source_info
        info = info.replace(name_stack=prefix + info.name_stack)
        renamed = each.replace(
            outvars=[own[variable] for variable in each.outvars], source_info=info
        )
        _inline(renamed, own, equations)
        # What it calls may be inlined, too, and have other names for its results.
        own.update((variable, _renamed(own[variable], own)) for variable in each.outvars)
    results = [_renamed(atom, own) for atom in inner.outvars]
    names.update(zip(equation.outvars, results, strict=True))


def _called(equation: Any) -> Any:
    """The jaxpr of the function that is to be inlined; ``None`` for other equations."""
    name = equation.primitive.name
    if name not in CHECKPOINTS and not (name in _CALLS and is_heavy(equation)):
        return None
    inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    if isinstance(inner, ClosedJaxpr):
        if inner.consts:
            return None
        inner = inner.jaxpr
    return None if inner is None or inner.constvars else inner


def _flat_body(body: Any) -> Any:
    return ClosedJaxpr(flat(body.jaxpr), body.consts)


def _renamed(atom: Any, names: dict[Any, Any]) -> Any:
    return atom if isinstance(atom, Literal) else names.get(atom, atom)


def stacks(program: Any) -> list[Stack]:
    """Return the stacks of layers of a flat jaxpr, in its order."""
    found = []
    for place, equation in enumerate(program.eqns):
        if equation.primitive.name == "scan" and is_heavy(equation):
            params = equation.params
            body = params["jaxpr"]
            if params["length"] >= _LEAST_LAYERS:
                where = place_of(equation)
                name = name_of_program(body)
                count = params["length"]
                found.append(Stack(True, (place,), len(body.eqns), count, where, name))
    taken = {stack.starts[0] for stack in found}
    ids = _ids(program.eqns)
    for run in runs([str(each) for each in ids], _LEAST_LAYERS, 1):
        places = range(run.start, run.end)
        if taken & set(places) or not any(is_heavy(program.eqns[at]) for at in run.block(0)):
            continue
        start, count = _rotated(program, ids, run.start, run.period, run.count)
        starts = tuple(start + number * run.period for number in range(count))
        where = place_of(program.eqns[start])
        found.append(Stack(False, starts, run.period, count, where, None))
    return sorted(found, key=lambda stack: stack.starts)


def _ids(equations: Iterable[Any]) -> list[int]:
    """A number for each equation; equal ones compute the same of values of the same types."""
    known: dict[Any, int] = {}
    return [known.setdefault(_key(each), len(known)) for each in equations]


def _key(equation: Any) -> tuple[Any, ...]:
    def plain(value: Any) -> Any:
        if isinstance(value, (ClosedJaxpr, Jaxpr)):
            return tuple(_key(each) for each in value.eqns)
        if isinstance(value, (tuple, list)):
            return tuple(map(plain, value))
        return "function" if callable(value) else str(value)

    types = [str(getattr(each, "aval", each)) for each in (*equation.invars, *equation.outvars)]
    params = tuple((key, plain(value)) for key, value in sorted(equation.params.items()))
    return (equation.primitive.name, *types, params)


def _rotated(
    program: Any, ids: Sequence[int], start: int, period: int, count: int
) -> tuple[int, int]:
    """Where blocks of ``period`` equations begin so that least goes from one to the next, and how
    many there are then.
    """
    end = start + count * period
    while end < len(ids) and ids[end] == ids[end - period]:
        end += 1
    made = {
        variable: place for place in range(start, end) for variable in program.eqns[place].outvars
    }
    last: dict[Any, int] = {}
    for place in range(start, end):
        for atom in program.eqns[place].invars:
            if not isinstance(atom, Literal):
                last[atom] = place
    most = count
    best = (float("inf"), start, count)
    for first in range(start, start + period):
        count = (end - first) // period
        if count < _LEAST_LAYERS or count < most - 1:
            break
        cut = first + period
        carried = sum(
            size_of(variable.aval)
            for variable, place in made.items()
            if place < cut <= last.get(variable, -1)
        )
        # A block more is worth more than a narrower cut.
        best = min(best, (carried * (1 if count == most else 2), first, count))
    return best[1], best[2]


def size_of(aval: Any) -> int:
    """Return the bytes of a value, 0 for what has no elements of a known size."""
    dtype = getattr(aval, "dtype", None)
    size = getattr(aval, "size", None)
    if dtype is None or size is None:
        return 0
    if jax.numpy.issubdtype(dtype, jax.dtypes.extended):
        return int(size) * 16
    return int(size) * int(dtype.itemsize)
