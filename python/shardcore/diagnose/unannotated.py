"""The remark on a program without annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore._core import Mesh, Op, Port, Result

_SAYING = ("sdy.sharding_constraint", "sdy.manual_computation")
"""Ops that annotate shardings."""


def remark(result: Result) -> str | None:
    """Return the annotation to type if nothing is annotated; ``None`` if something is.

    An unannotated program is no mistake, because it may be meant for one device; so this is no
    diagnostic.
    """
    if result.summary()["before"]["sharded_values"]:
        return None
    arguments, results = result._annotated()
    if not arguments or any(port.sharding is not None for port in [*arguments, *results]):
        return None
    given = result._given()
    if any(map(_says_something, given.ops())):
        return None
    meshes = [mesh for mesh in given.meshes.values() if mesh.num_devices > 1]
    if not meshes:
        if given.meshes:
            return None
        return (
            "the program has no mesh and no annotation, so there is nothing to propagate\n"
            '  annotate: shardcore.jax.lower(f, x, mesh={"data": 8}, in_shardings=P("data"))\n'
            "  or let them be found: shardcore plan FILE --devices 8 --hardware tpu-v5e"
        )
    mesh = max(meshes, key=lambda mesh: mesh.num_devices)
    port, dims = _first_choice(arguments, mesh)
    devices = plural(mesh.num_devices, "device")
    return (
        f"nothing is annotated, so each of {devices} holds and computes everything\n"
        f"  annotate an argument, {port.label or port.name} with {dims}\n"
        "  or let annotations be found: shardcore plan FILE --hardware tpu-v5e"
    )


def _says_something(op: Op) -> bool:
    return op.name in _SAYING or any(value.sharding is not None for value in op.results)


def _first_choice(arguments: list[Port], mesh: Mesh) -> tuple[Port, str]:
    """The first argument with a dim that the first axis with several devices divides, and dims."""
    axis = next(axis for axis in mesh.axes if axis.size > 1)
    for port in arguments:
        for place, size in enumerate(port.shape or ()):
            if size and size % axis.size == 0:
                dims = ["{}"] * len(port.shape or ())
                dims[place] = f'{{"{axis.name}"}}'
                return port, f"[{', '.join(dims)}]"
    dims = ["{}"] * len(arguments[0].shape or ())
    return arguments[0], f"[{', '.join(dims)}]"
