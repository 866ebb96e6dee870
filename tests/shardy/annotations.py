"""Reads the shardings of a program after passes of the reference, the way the oracle lists them."""

from __future__ import annotations

from jaxlib.mlir import ir, passmanager

from tests.oracle import text
from tests.oracle.graph import EDGE
from tests.oracle.sharding import TensorSharding
from tests.property.passes import Row
from tests.shardy import reference


def after(passes: str, mlir: str) -> list[Row]:
    """Run `passes` on a module of one function; list its arguments, its ops, its results."""
    with reference.context():
        module = ir.Module.parse(mlir)
        passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
        (function,) = (op for op in module.body.operations if op.OPERATION_NAME == "func.func")
        return [
            ("arguments", _of_function(function, "arg_attrs", len(function.arguments))),
            *_of_block(function.entry_block),
            ("results", _of_function(function, "res_attrs", len(function.type.results))),
        ]


def _of_function(function: ir.OpView, key: str, count: int) -> list[TensorSharding | None]:
    if key not in function.attributes:
        return [None] * count
    shardings = []
    for entry in ir.ArrayAttr(function.attributes[key]):
        attributes = ir.DictAttr(entry)
        has_one = "sdy.sharding" in attributes
        shardings.append(text.parse_sharding(str(attributes["sdy.sharding"])) if has_one else None)
    return shardings


def _of_block(block: ir.Block) -> list[Row]:
    rows: list[Row] = []
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
