"""Annotations that say nothing, and those that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardcore._core import is_installed
from shardcore.diagnose.places import first_of, warning
from shardcore.errors import Diagnostic

if TYPE_CHECKING:
    from shardcore._core import Op, Port, Result, TensorSharding, Value


def annotation_diagnostics(result: Result) -> list[Diagnostic]:
    """Return warnings about what is annotated."""
    arguments, results = result._annotated()
    ops = result._given().ops()
    labels = {port.name: port.label or port.name for port in arguments}
    without, against = list(_empty(arguments + results)), list[Diagnostic]()
    manual: set[Op] | None = None
    for op, operand, value in _pairs(ops):
        first, second = operand.sharding, value.sharding
        if second is None:
            continue
        place, name = value.location, labels.get(operand.name, operand.qualified_name)
        if second.rank and _says_nothing(second) and op.name == _CONSTRAINT:
            # JAX constrains values in a `shard_map` over some axes, which leaves the others open.
            manual = _in_manual(ops) if manual is None else manual
            if op not in manual and not any(map(is_installed, value.traceback[:1])):
                named = value.qualified_name
                without.append(_open(f"the constraint {named}", named, place))
        elif first is not None and str(first) == str(second) and op.name == _CONSTRAINT:
            # Layers with partitioning metadata constrain their own parameters.
            if any(map(is_installed, value.traceback[:1])):
                continue
            named = value.qualified_name
            message = f"the constraint {named} repeats the annotation of {name}"
            without.append(warning("no-effect", message, "remove one", named, place))
        elif first is not None:
            dim = _contradicts(first, second)
            if dim is not None:
                message = (
                    f"{name} is annotated with {first.dims[dim]} on dim {dim}, and "
                    f"constrained to {second.dims[dim]} right after"
                )
                hint = (
                    f"annotate {name} with {_dims(second)}, or the constraint with {_dims(first)}"
                )
                named = value.qualified_name
                against.append(warning("contradiction", message, hint, named, place))
    return [*first_of(against), *first_of(without)]


_CONSTRAINT = "sdy.sharding_constraint"


def _pairs(ops: list[Op]) -> Iterator[tuple[Op, Value, Value]]:
    """The constraints, with what they constrain."""
    for op in ops:
        if op.name == _CONSTRAINT and op.operands and op.results:
            yield op, op.operands[0], op.results[0]


def _in_manual(ops: list[Op]) -> set[Op]:
    """Those of ``ops`` that are in manual computations."""
    inside: set[Op] = set()
    left = [op for op in ops if op.name == "sdy.manual_computation"]
    while left:
        blocks = [block for region in left.pop().regions for block in region]
        found = [op for block in blocks for op in block.ops if op not in inside]
        inside.update(found)
        left.extend(op for op in found if op.regions)
    return inside


def _empty(ports: list[Port]) -> Iterator[Diagnostic]:
    for port in ports:
        if port.sharding is not None and port.sharding.rank and _says_nothing(port.sharding):
            name = port.label or port.name
            yield _open(f"the annotation of {name}", name, None)


def _open(what: str, name: str, place: str | None) -> Diagnostic:
    hint = "remove it, or name the axes that it shall have"
    return warning("no-effect", f"{what} has open dims and no axes", hint, name, place)


def _says_nothing(sharding: TensorSharding) -> bool:
    has_axes = bool(sharding.replicated or sharding.unreduced)
    return not has_axes and all(dim.is_open and not dim.axes for dim in sharding.dims)


def _contradicts(first: TensorSharding, second: TensorSharding) -> int | None:
    """The first dim for which both have axes of which neither list begins with the other."""
    if first.mesh_name != second.mesh_name:
        return None
    for place, (one, other) in enumerate(zip(first.dims, second.dims, strict=False)):
        shared = min(len(one.axes), len(other.axes))
        if one.axes[:shared] != other.axes[:shared]:
            return place
    return None


def _dims(sharding: TensorSharding) -> str:
    return f"[{', '.join(map(str, sharding.dims))}]"
