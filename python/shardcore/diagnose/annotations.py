"""Annotations without effect, and annotations that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardcore._core import is_installed, ops_named
from shardcore.diagnose.findings import Finding, first_of
from shardcore.diagnose.places import warning
from shardcore.errors import Diagnostic

if TYPE_CHECKING:
    from shardcore._core import Module, Op, Port, Result, TensorSharding, Value


def annotation_findings(result: Result) -> list[Finding]:
    """Return the findings about annotations."""
    arguments, results = result._annotated()
    labels = {port.name: port.label or port.name for port in arguments}
    without, against = list(_empty(arguments + results)), list[Diagnostic]()
    for operand, value in _constraints(result._given()):
        first, second = operand.sharding, value.sharding
        if second is None:
            continue
        named, place = value.qualified_name, value.location
        name = labels.get(operand.name, operand.qualified_name)
        # Flax layers with partitioning metadata constrain their own parameters.
        is_library = any(map(is_installed, value.traceback[:1]))
        if second.rank and _says_nothing(second):
            if not is_library:
                without.append(_open(f"the constraint {named}", named, place))
        elif first is not None and str(first) == str(second):
            if not is_library:
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
                against.append(warning("contradiction", message, hint, named, place))
    return [*first_of([*map(Finding, against)]), *first_of([*map(Finding, without)])]


_CONSTRAINT = "sdy.sharding_constraint"

_WRITTEN = "sharding_constraint"
"""The last name in the location that JAX gives to a constraint written by the user. Other
constraints come from ``reshard``, which is meant to change a sharding, and from JAX itself: for
explicit axes, in a ``shard_map`` over some axes, and for exported functions."""


def _constraints(module: Module) -> Iterator[tuple[Value, Value]]:
    """The constraints that the user wrote, with their operands."""
    manual: set[Op] | None = None
    for op in ops_named(module, [_CONSTRAINT]):
        if not op.operands or not op.results:
            continue
        name = op.name_stack.rpartition("/")[2]
        if not name:
            # In a text without locations, those in a `shard_map` over some axes come from JAX.
            manual = in_manual(module) if manual is None else manual
        if name == _WRITTEN or (not name and manual is not None and op not in manual):
            yield op.operands[0], op.results[0]


def in_manual(module: Module) -> set[Op]:
    """Return the ops of ``module`` that are in manual computations, or in functions called from
    there."""
    left = ops_named(module, ["sdy.manual_computation"])
    functions: dict[str, list[Op]] = {}
    for op in module.ops() if left else ():
        functions.setdefault(op.function, []).append(op)
    inside: set[Op] = set()
    while left:
        op = left.pop()
        found = [each for region in op.regions for block in region for each in block.ops]
        if op.name == "func.call":
            found += functions.get(str(op.attributes["callee"]).strip("@"), ())
        found = [each for each in found if each not in inside]
        inside.update(found)
        left.extend(each for each in found if each.regions or each.name == "func.call")
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
    """The first dim in which neither list of axes is a prefix of the other."""
    if first.mesh_name != second.mesh_name:
        return None
    for place, (one, other) in enumerate(zip(first.dims, second.dims, strict=False)):
        shared = min(len(one.axes), len(other.axes))
        if one.axes[:shared] != other.axes[:shared]:
            return place
    return None


def _dims(sharding: TensorSharding) -> str:
    return f"[{', '.join(map(str, sharding.dims))}]"
