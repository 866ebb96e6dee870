"""Runs passes of the reference on the oracle's programs and reads the shardings back."""

from __future__ import annotations

from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib.mlir import ir, passmanager
from oracle import text
from oracle.graph import EDGE
from oracle.sharding import TensorSharding

Row = tuple[str, list[TensorSharding | None]]

CONTEXT = jax_mlir.make_ir_context()
CONTEXT.emit_error_diagnostics = True


def run_passes(mlir: str, passes: str) -> ir.Module:
    """Parse `mlir` and run `passes` on its module."""
    with CONTEXT:
        module = ir.Module.parse(mlir)
        passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
        return module


def annotations(module: ir.Module) -> list[Row]:
    """List the shardings of arguments, ops and function results, as the oracle does."""
    with CONTEXT:
        (function,) = (op for op in module.body.operations if op.OPERATION_NAME == "func.func")
        rows = [("arguments", _of_function(function, "arg_attrs", len(function.arguments)))]
        rows += _of_block(function.entry_block)
        rows.append(("results", _of_function(function, "res_attrs", len(function.type.results))))
        return rows


def _of_function(function: ir.Operation, key: str, count: int) -> list[TensorSharding | None]:
    if key not in function.attributes:
        return [None] * count
    dictionaries = [ir.DictAttr(attributes) for attributes in ir.ArrayAttr(function.attributes[key])]
    return [
        text.parse_sharding(str(attributes["sdy.sharding"])) if "sdy.sharding" in attributes else None
        for attributes in dictionaries
    ]


def _of_block(block: ir.Block) -> list[Row]:
    rows = []
    for view in block.operations:
        op = view.operation
        if op.results:
            rows.append((op.name, _of_op(op)))
        for region in op.regions:
            for inner in region.blocks:
                rows += _of_block(inner)
    return rows


def _of_op(op: ir.Operation) -> list[TensorSharding | None]:
    if op.name in (EDGE, "sdy.sharding_constraint"):
        if "sharding" not in op.attributes:
            return [None]
        return [text.parse_sharding(str(op.attributes["sharding"]))]
    if "sdy.sharding" not in op.attributes:
        return [None] * len(op.results)
    return list(text.parse_sharding_per_value(str(op.attributes["sdy.sharding"])))
