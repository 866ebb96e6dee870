"""``custom_partitioning`` functions, lowered to custom calls whose function this process keeps.

JAX lowers such a function to a custom call with the address of its callbacks, and needs devices for
it. The call made here differs only in its backend configuration: a key, under which this module
keeps the function and its ``partition`` callback. Partitioning and simulation look them up by it.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from functools import partial
from typing import Any

from jax.extend.core import Primitive, jaxpr_as_fun
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir
from jax.interpreters.mlir import ir
from jax.sharding import AbstractMesh, AxisType, Mesh

from shardcore.jax.callbacks import uses_shardy
from shardcore.jax.equations import replaced
from shardcore.jax.partitioners import UserPartitioner
from shardcore.jax.private import name_of_program, own_partitioner, sharding_rule
from shardcore.rules.partitioners import TARGET, key_of, register_finder

_MOST_KNOWN = 1 << 12
"""How many calls' functions are kept at most; the oldest are forgotten first."""

_known: dict[str, UserPartitioner] = {}
"""The partitioners of the calls lowered in this process, by the key in the call."""


# Compared by identity, because its functions are.
@dataclass(frozen=True, eq=False)
class _Site:
    """A call of a ``custom_partitioning`` function in a traced program."""

    program: Any
    """The jaxpr of the decorated function."""
    partition: Any
    sharding_rule: Any
    static_args: tuple[Any, ...]
    in_tree: Any
    out_tree: Any
    decodes: bool
    """Whether the callbacks get ``NamedSharding``s, with names of axes (JAX's
    ``decode_shardings``)."""
    devices: Mesh | None
    """The mesh that the program was lowered for; ``None`` if that has no devices."""


_NAME = "custom_partitioning"
"""The name of JAX's primitive and of the one that replaces it: locations contain it."""

_call_p: Any = Primitive(_NAME)
_call_p.multiple_results = True


def with_own_calls(traced: Any, devices: Mesh | None) -> Any:
    """Return a ``jax.stages.Traced`` whose ``custom_partitioning`` calls this process can look up.
    Their callbacks get the mesh ``devices``. Where JAX does not use Shardy, the calls stay as they
    are.
    Shardy.
    """
    return replaced(traced, partial(_own_call, devices)) if uses_shardy() else traced


def _own_call(devices: Mesh | None, equation: Any) -> Any:
    if equation.primitive.name != _NAME or equation.primitive is _call_p:
        return None
    params = equation.params
    site = _Site(
        params["call"],
        params["partition"],
        params["sharding_rule"],
        tuple(params["static_args"]),
        params["in_tree"],
        params["out_tree"],
        bool(params["decode_shardings"]),
        devices,
    )
    return equation.replace(primitive=_call_p, params={"site": site})


def _lowered(context: mlir.LoweringRuleContext, *operands: Any, site: _Site) -> Any:
    mesh = _mesh_around(context.module_context.axis_context, site.devices)
    if mesh is None:
        # On one device the function itself is computed.
        inline: Any = mlir.lower_fun(jaxpr_as_fun(site.program), multiple_results=True)
        return inline(context, *operands)
    name = name_of_program(site.program)
    key = key_of(name, secrets.randbits(64))
    _keep(key, _partitioner(name, site, mesh, context.module_context.platforms))
    results = [
        ir.RankedTensorType.get(aval.shape, mlir.dtype_to_ir_type(aval.dtype))
        for aval in context.avals_out
    ]
    call = stablehlo.CustomCallOp(
        results,
        list(operands),
        call_target_name=ir.StringAttr.get(TARGET),
        has_side_effect=ir.BoolAttr.get(False),
        api_version=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 2),
        called_computations=ir.ArrayAttr.get([]),
        backend_config=ir.StringAttr.get(key),
        operand_layouts=None,
        result_layouts=None,
    )
    if site.sharding_rule is not None:
        given = (*site.static_args, mesh)
        types = [operand.type for operand in operands]
        rule = sharding_rule(site.sharding_rule, given, types, results)
        call.attributes["sdy.sharding_rule"] = rule
    return call.results


mlir.register_lowering(_call_p, _lowered)


def _mesh_around(around: Any, devices: Mesh | None) -> Mesh | AbstractMesh | None:
    """The mesh that a call is partitioned over: ``devices``, if its axes are the same.

    ``None`` if the call runs on one device: on one altogether, or inside ``shard_map`` over all
    axes.
    """
    mesh: Any = None
    if isinstance(around, mlir.SPMDAxisContext):
        mesh = around.mesh
        if set(around.manual_axes) == set(mesh.axis_names):
            return None
    elif isinstance(around, mlir.ShardingContext) and around.num_devices > 1:
        mesh = getattr(around, "abstract_mesh", None) or devices
    else:
        return None
    if mesh is None:
        return AbstractMesh((), ())
    names = tuple(mesh.axis_names)
    if devices is not None and list(devices.shape.items()) == list(mesh.shape.items()):
        return Mesh(devices.devices, names)
    return AbstractMesh(tuple(mesh.shape.values()), names, axis_types=(AxisType.Auto,) * len(names))


def _partitioner(name: str, site: _Site, mesh: Any, platforms: Any) -> UserPartitioner:
    return UserPartitioner(
        name,
        site.partition,
        site.static_args,
        site.in_tree,
        site.out_tree,
        mesh,
        tuple(platforms),
        site.decodes,
        site.program,
    )


def _keep(key: str, partitioner: UserPartitioner) -> None:
    while len(_known) >= _MOST_KNOWN:
        del _known[next(iter(_known))]
    _known[key] = partitioner


_ADDRESS = re.compile(r'backend_config = "(\d+)"')


def keep_own_calls(text: str) -> None:
    """Keep the partitioners of the calls in ``text``, which JAX lowered itself: JAX forgets them
    together with the lowered function.
    """
    if TARGET not in text:
        return
    for key in _ADDRESS.findall(text):
        info = own_partitioner(key)
        if info is None:
            continue
        name = getattr(info.partition, "__qualname__", _NAME)
        partitioner = UserPartitioner(
            name,
            info.partition,
            tuple(info.static_args),
            info.in_tree,
            info.out_tree,
            info.mesh,
            tuple(info.module_context.platforms),
            decodes=True,
            # After JAX has forgotten this call, it may give its address to another.
            keepalive=info,
        )
        _keep(key, partitioner)


register_finder(_known.get)
