"""Callbacks into the host, lowered where there are no devices.

JAX lowers ``jax.debug.print``, ``inspect_array_sharding`` and callbacks to custom calls of a host
function, and needs the devices that call it. Without devices nothing runs, so a custom call with
the same operands and results, but without the function, is enough.
"""

from __future__ import annotations

from typing import Any

import jax
from jax.extend.core import Primitive
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir
from jax.interpreters.mlir import ir

from shardcore.jax.equations import replaced
from shardcore.jax.private import is_ordered

_CALL, _INSPECT = "xla_ffi_python_cpu_callback", "InspectSharding"
_TARGETS = {
    "debug_callback": _CALL,
    "debug_print": _CALL,
    "io_callback": _CALL,
    "pure_callback": _CALL,
    "inspect_sharding": _INSPECT,
}
"""The custom call target to which JAX lowers each host callback primitive."""
_ON_FIRST_DEVICE = "<mesh<[], device_ids=[0]>, []>"

_call_p = Primitive("host_call")
_call_p.multiple_results = True


def without_host(traced: Any) -> Any:
    """Return a ``jax.stages.Traced`` whose callbacks are calls without a host function.

    Ordered callbacks stay: JAX refuses them over more than one device.
    """
    return replaced(traced, _without_host)


def _without_host(equation: Any) -> Any:
    """The call that replaces an unordered callback; ``None`` for other equations."""
    name = equation.primitive.name
    if name not in _TARGETS or any(map(is_ordered, equation.effects)):
        return None
    is_pure = name == "pure_callback"
    call = {"target": _TARGETS[name], "has_side_effect": not is_pure}
    return equation.replace(primitive=_call_p, params=call)


def _lowered(context: Any, *operands: Any, target: str, has_side_effect: bool) -> Any:
    types = [
        ir.RankedTensorType.get(aval.shape, mlir.dtype_to_ir_type(aval.dtype))
        for aval in context.avals_out
    ]
    call = stablehlo.CustomCallOp(
        # A call that inspects an array has a result in JAX, which nothing uses.
        [operand.type for operand in operands] if target == _INSPECT else types,
        operands,
        call_target_name=ir.StringAttr.get(target),
        has_side_effect=ir.BoolAttr.get(has_side_effect),
        backend_config=ir.StringAttr.get(""),
    )
    around = context.module_context.axis_context
    has_devices = isinstance(around, mlir.ShardingContext) and around.num_devices > 1
    if types and has_devices and uses_shardy():
        shardings = ", ".join([_ON_FIRST_DEVICE] * len(types))
        text = f"#sdy.sharding_per_value<[{shardings}]>"
        call.attributes["sdy.sharding"] = ir.Attribute.parse(text)
    return call.results if types else []


def uses_shardy() -> bool:
    """Whether JAX lowers programs for Shardy."""
    config: Any = jax.config
    return bool(config.jax_use_shardy_partitioner)


mlir.register_lowering(_call_p, _lowered)
