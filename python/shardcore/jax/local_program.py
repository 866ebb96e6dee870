"""The per-device program as a JAX primitive, to be bound inside ``jax.shard_map``.

To JAX it is an op from shards to shards. It is lowered to a call of the module, unchanged, so XLA
compiles the per-device program inside the manual computation and does not partition it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func, stablehlo
from jax.interpreters import mlir

from shardcore.jax.mistakes import mistake

_NAME = "shardcore_program"


# Compared by identity, so that JAX's tracing caches do not confuse two programs.
@dataclass(frozen=True, eq=False)
class LocalProgram:
    """The per-device program, the shapes of its results and the order of its devices."""

    text: str
    """The text of the module."""
    results: tuple[ShapedArray, ...]
    """Shape and type of each result on one device."""
    device_ids: tuple[int, ...]
    """For each position of the mesh that it runs on, the device id in the program."""

    def __call__(self, *shards: Any) -> list[Any]:
        """Run it on the shards of one device."""
        return list(_program.bind(*shards, program=self))


_program: Any = Primitive(_NAME)
_program.multiple_results = True


def _shapes(*_: Any, program: LocalProgram) -> list[ShapedArray]:
    return list(program.results)


_program.def_abstract_eval(_shapes)


def _lower(ctx: mlir.LoweringRuleContext, *shards: Any, program: LocalProgram) -> list[Any]:
    """Call the module's function, after copying that into the module that JAX builds."""
    target = ctx.module_context
    try:
        module = ir.Module.parse(program.text, target.module.context)
    except ir.MLIRError as error:
        [line, *_] = str(error).splitlines()[1:] or [str(error)]
        raise mistake(
            "lowering",
            f"jaxlib cannot read the program of one device: {line.strip()[:300]}",
            "it may be of a later version; shardcore.Partitioned.module has its text",
        ) from error
    _number_by_position(module, program.device_ids)
    # The outer function has the donation attributes.
    for op in module.body.operations:
        for attribute in ("arg_attrs", "res_attrs"):
            if attribute in op.attributes:
                del op.attributes[attribute]
    name = mlir.merge_mlir_modules(target.module, _NAME, module, dst_symtab=target.symbol_table)
    function: Any = target.symbol_table[name]
    call = func.CallOp(function.type.results, ir.FlatSymbolRefAttr.get(name), list(shards))
    return list(call.results)


mlir.register_lowering(_program, _lower)


def _number_by_position(module: Any, device_ids: Sequence[int]) -> None:
    """Replace device ids in ops of ``module`` by positions in the mesh: XLA numbers devices so."""
    if tuple(device_ids) == tuple(range(len(device_ids))):
        return
    positions = np.argsort(np.asarray(device_ids, dtype=np.int64))

    def renumber(op: Any) -> Any:
        for name in ("replica_groups", "source_target_pairs"):
            if name in op.attributes:
                ids = np.array(ir.DenseIntElementsAttr(op.attributes[name]), dtype=np.int64)
                op.attributes[name] = _elements(positions[ids])
        if op.name == "stablehlo.partition_id":
            _ask_for_id(op, device_ids)
        return ir.WalkResult.ADVANCE

    module.operation.walk(renumber)


def _elements(array: Any) -> Any:
    buffer: Any = np.ascontiguousarray(array)
    return ir.DenseElementsAttr.get(buffer)


def _ask_for_id(op: Any, device_ids: Sequence[int]) -> None:
    """Map the position that ``op`` returns to the device id there, for every use of ``op``."""
    position = op.results[0]
    following = list(op.operation.block.operations)
    place = following.index(op)
    with ir.InsertionPoint(following[place + 1]), op.location:
        table = stablehlo.constant(_elements(np.asarray(device_ids, dtype=np.int32)))
        entry = stablehlo.dynamic_slice(table, [position], ir.DenseI64ArrayAttr.get([1]))
        scalar = ir.RankedTensorType.get([], table.type.element_type)
        own = stablehlo.convert(position.type, stablehlo.reshape(scalar, entry))
    position.replace_all_uses_except(own, getattr(entry.owner, "operation", entry.owner))
