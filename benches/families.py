"""Families of programs, one function each, in which one property grows that may be slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

MESH = 'sdy.mesh @mesh = <["data"=4, "model"=4]>'
SQUARE = "tensor<64x64xf32>"


def _module(body: Iterable[str]) -> str:
    return "\n".join(["module @bench {", MESH, *body, "}\n"])


def _dims(*dims: str, priority: int | None = None) -> str:
    suffix = "" if priority is None else f"p{priority}"
    return ", ".join(f'{{"{dim}"}}{suffix}' if dim else "{?}" for dim in dims)


def _sharding(*dims: str, priority: int | None = None) -> str:
    return f"{{sdy.sharding = #sdy.sharding<@mesh, [{_dims(*dims, priority=priority)}]>}}"


def mlp(ops: int, priorities: int = 1) -> str:
    """Blocks of two matmuls with activation and residual; weights sharded in turn over both axes.

    With ``priorities`` above 1 each weight is annotated at one of that many user priorities.
    """
    blocks = max(1, ops // 6)
    weights = min(blocks, 2 * priorities)
    x, w = "tensor<512x1024xbf16>", "tensor<1024x1024xbf16>"
    dot, types = "contracting_dims = [1] x [0]", f": ({x}, {w}) -> {x}"

    def body() -> Iterator[str]:
        args = [f"%x: {x} {_sharding('data', '')}"]
        for block in range(weights):
            priority = block % priorities if priorities > 1 else None
            args.append(f"%w{block}: {w} {_sharding('', 'model', priority=priority)}")
            args.append(f"%v{block}: {w} {_sharding('model', '', priority=priority)}")
        yield f"func.func @main({', '.join(args)}) -> {x} {{"
        previous = "%x"
        for block in range(blocks):
            b, weight = f"%b{block}_", block % weights
            yield f"  {b}0 = stablehlo.dot_general {previous}, %w{weight}, {dot} {types}"
            yield f"  {b}1 = stablehlo.tanh {b}0 : {x}"
            yield f"  {b}2 = stablehlo.multiply {b}1, {b}0 : {x}"
            yield f"  {b}3 = stablehlo.dot_general {b}2, %v{weight}, {dot} {types}"
            yield f"  {b}4 = stablehlo.tanh {b}3 : {x}"
            yield f"  {b}5 = stablehlo.add {b}4, {previous} : {x}"
            previous = f"{b}5"
        yield f"  return {previous} : {x}"
        yield "}"

    return _module(body())


def chain(ops: int) -> str:
    """One chain of elementwise ops annotated only at its end: shardings propagate against the order
    of visits."""

    def body() -> Iterator[str]:
        yield f"func.func @main(%arg0: {SQUARE}) -> ({SQUARE} {_sharding('data', 'model')}) {{"
        yield f"  %0 = stablehlo.negate %arg0 : {SQUARE}"
        for op in range(1, ops):
            yield f"  %{op} = stablehlo.negate %{op - 1} : {SQUARE}"
        yield f"  return %{ops - 1} : {SQUARE}"
        yield "}"

    return _module(body())


def concatenate(operands: int) -> str:
    """One concatenate of ``operands`` arguments; the last is annotated."""
    t, result = "tensor<8x64xf32>", f"tensor<{8 * operands}x64xf32>"
    args = [f"%arg{i}: {t}" for i in range(operands)]
    args[-1] += f" {_sharding('', 'model')}"
    names = ", ".join(f"%arg{i}" for i in range(operands))
    types = ", ".join([t] * operands)
    return _module(
        [
            f"func.func @main({', '.join(args)}) -> {result} {{",
            f"  %0 = stablehlo.concatenate {names}, dim = 0 : ({types}) -> {result}",
            f"  return %0 : {result}",
            "}",
        ]
    )


def results(count: int) -> str:
    """A function with ``count`` results, each computed by one op from one argument."""

    def body() -> Iterator[str]:
        types = ", ".join([SQUARE] * count)
        yield f"func.func @main(%arg0: {SQUARE} {_sharding('data', 'model')}) -> ({types}) {{"
        for op in range(count):
            yield f"  %{op} = stablehlo.negate %arg0 : {SQUARE}"
        yield f"  return {', '.join(f'%{op}' for op in range(count))} : {types}"
        yield "}"

    return _module(body())


def hub(users: int) -> str:
    """One value with ``users`` users, each added to the next; the last user is annotated."""
    annotation = f" {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{_dims('data', '')}]>]>}}"

    def body() -> Iterator[str]:
        yield f"func.func @main(%arg0: {SQUARE}) -> {SQUARE} {{"
        yield f"  %h = stablehlo.negate %arg0 : {SQUARE}"
        for user in range(users):
            attribute = annotation if user == users - 1 else ""
            previous = f"%b{user - 1}" if user else "%h"
            yield f"  %a{user} = stablehlo.tanh %h{attribute} : {SQUARE}"
            yield f"  %b{user} = stablehlo.add %a{user}, {previous} : {SQUARE}"
        yield f"  return %b{users - 1} : {SQUARE}"
        yield "}"

    return _module(body())


def groups(count: int) -> str:
    """Sharding groups of two values each, in two chains, one of which is annotated."""

    def body() -> Iterator[str]:
        args = f"%arg0: {SQUARE} {_sharding('data', 'model')}, %arg1: {SQUARE}"
        yield f"func.func @main({args}) -> ({SQUARE}, {SQUARE}) {{"
        for group in range(count):
            left, right = (f"%a{group - 1}", f"%b{group - 1}") if group else ("%arg0", "%arg1")
            yield f"  %a{group} = stablehlo.negate {left} : {SQUARE}"
            yield f"  %b{group} = stablehlo.tanh {right} : {SQUARE}"
            yield f"  sdy.sharding_group %a{group} group_id={group} : {SQUARE}"
            yield f"  sdy.sharding_group %b{group} group_id={group} : {SQUARE}"
        yield f"  return %a{count - 1}, %b{count - 1} : {SQUARE}, {SQUARE}"
        yield "}"

    return _module(body())


def calls(levels: int) -> str:
    """Functions that call the next one twice: 2 ** levels copies of the last after flattening."""

    def body() -> Iterator[str]:
        yield f"func.func @main(%arg0: {SQUARE} {_sharding('data', 'model')}) -> {SQUARE} {{"
        yield f"  %0 = func.call @f0(%arg0) : ({SQUARE}) -> {SQUARE}"
        yield f"  return %0 : {SQUARE}"
        yield "}"
        for level in range(levels):
            yield f"func.func private @f{level}(%arg0: {SQUARE}) -> {SQUARE} {{"
            if level + 1 < levels:
                yield f"  %0 = func.call @f{level + 1}(%arg0) : ({SQUARE}) -> {SQUARE}"
                yield f"  %1 = func.call @f{level + 1}(%0) : ({SQUARE}) -> {SQUARE}"
            else:
                yield f"  %0 = stablehlo.negate %arg0 : {SQUARE}"
                yield f"  %1 = stablehlo.tanh %0 : {SQUARE}"
            yield f"  return %1 : {SQUARE}"
            yield "}"

    return _module(body())


def unique_shapes(ops: int) -> str:
    """No two ops have the same shapes: nothing can be cached by signature."""

    def body() -> Iterator[str]:
        last = f"tensor<4x{4 + ops}xf32>"
        yield f"func.func @main(%arg0: tensor<4x4xf32> {_sharding('data', '')}) -> {last} {{"
        yield "  %c = stablehlo.constant dense<0.0> : tensor<f32>"
        for op in range(ops):
            previous = f"%{op - 1}" if op else "%arg0"
            old, new = f"tensor<4x{4 + op}xf32>", f"tensor<4x{5 + op}xf32>"
            config = "low = [0, 0], high = [0, 1], interior = [0, 0]"
            types = f"({old}, tensor<f32>) -> {new}"
            yield f"  %{op} = stablehlo.pad {previous}, %c, {config} : {types}"
        yield f"  return %{ops - 1} : {last}"
        yield "}"

    return _module(body())


FAMILIES: dict[str, Callable[[int], str]] = {
    "mlp": mlp,
    "mlp-16-priorities": lambda ops: mlp(ops, priorities=16),
    "chain": chain,
    "concatenate": concatenate,
    "results": results,
    "hub": hub,
    "groups": groups,
    "calls": calls,
    "unique-shapes": unique_shapes,
}
"""Every family by name; the argument is a size in the unit that the family's docstring names."""
