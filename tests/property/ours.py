"""Reads the shardings of a program after our passes, the way the oracle lists them."""

from __future__ import annotations

from collections.abc import Iterator

import shardcore

from tests.oracle import text
from tests.oracle.sharding import TensorSharding
from tests.property.passes import Row


def after(passes: str, mlir: str) -> list[Row]:
    """Run `passes` on a module of one function; list its arguments, its ops, its results."""
    module = shardcore.Module.parse(mlir)
    shardcore.PassManager.parse(f"builtin.module({passes})").run(module)
    (signature,) = (line for line in str(module).splitlines() if line.startswith("func.func"))
    arguments, results = signature.removesuffix(" {").split("(", 1)[1].rsplit(") -> ", 1)
    # A single result without attributes has no parentheses.
    results = results.removeprefix("(").removesuffix(")")
    return [
        ("arguments", [_in_signature(part) for part in _parts(arguments)]),
        *_of_ops(module),
        ("results", [_in_signature(part) for part in _parts(results)]),
    ]


def _of_ops(module: shardcore.Module) -> Iterator[Row]:
    """Yield a row for each op with results; the values of one op follow each other."""
    row: Row | None = None
    for value in module.values():
        if value.op is None:
            continue
        sharding = None if value.sharding is None else text.parse_sharding(str(value.sharding))
        if "#" in value.name and not value.name.endswith("#0") and row is not None:
            row[1].append(sharding)
            continue
        if row is not None:
            yield row
        row = (value.op, [sharding])
    if row is not None:
        yield row


def _in_signature(part: str) -> TensorSharding | None:
    _, found, sharding = part.partition("#sdy.sharding")
    return text.parse_sharding(sharding.removesuffix("}")) if found else None


def _parts(signature: str) -> list[str]:
    """Split at the commas outside of all brackets."""
    parts, depth = [""], 0
    for char in signature:
        depth += (char in "({<[") - (char in ")}>]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts
