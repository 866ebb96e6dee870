"""Ops that fit values there are, so that modules hang together."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.shardy.generator.scope import Scope, Value

Maker = Callable[[Scope], None]


def _emit(
    scope: Scope, name: str, operands: list[Value], result: Value, attributes: str = ""
) -> None:
    used = ", ".join(value.name for value in operands)
    types = ", ".join(value.type for value in operands)
    sharding = scope.attribute([result])
    scope.emit(
        f'{result.name} = "stablehlo.{name}"({used}){attributes and f" <{{{attributes}}}>"}'
        f"{sharding} : ({types}) -> {result.type}"
    )


def unary(scope: Scope) -> None:
    value = scope.any()
    name = scope.rng.choice(["negate", "tanh", "exponential", "abs", "sine"])
    _emit(scope, name, [value], scope.define(value.shape))


def binary(scope: Scope) -> None:
    left = scope.any()
    right = scope.of(left.shape) if scope.rng.random() < 0.8 else left
    operands = [left, right] if scope.rng.random() < 0.5 else [right, left]
    name = scope.rng.choice(["add", "multiply", "subtract", "maximum", "divide"])
    _emit(scope, name, operands, scope.define(left.shape))


def select(scope: Scope) -> None:
    value = scope.any()
    other = scope.of(value.shape)
    test = scope.of(value.shape if scope.rng.random() < 0.7 else (), "i1")
    _emit(scope, "select", [test, value, other], scope.define(value.shape))


def compare(scope: Scope) -> None:
    value = scope.any()
    attributes = "comparison_direction = #stablehlo<comparison_direction LT>"
    other = scope.of(value.shape)
    _emit(scope, "compare", [value, other], scope.define(value.shape, "i1"), attributes)


def transpose(scope: Scope) -> None:
    value = scope.any(rank=2)
    order = scope.rng.sample(range(len(value.shape)), len(value.shape))
    result = scope.define([value.shape[dim] for dim in order])
    _emit(scope, "transpose", [value], result, f"permutation = array<i64: {str(order)[1:-1]}>")


def broadcast(scope: Scope) -> None:
    value = scope.any()
    shape = list(value.shape)
    if len(shape) > 4:
        return
    at = scope.rng.randint(0, len(shape))
    shape.insert(at, scope.rng.choice([2, 3, 4, 8]))
    dims = [dim for dim in range(len(shape)) if dim != at]
    listed = f": {str(dims)[1:-1]}" if dims else ""
    result = scope.define(shape)
    _emit(scope, "broadcast_in_dim", [value], result, f"broadcast_dimensions = array<i64{listed}>")


def reshape(scope: Scope) -> None:
    """Merge two dims, or split one."""
    value = scope.any(rank=1)
    shape = list(value.shape)
    if len(shape) > 1 and scope.rng.random() < 0.6:
        at = scope.rng.randrange(len(shape) - 1)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    else:
        at = scope.rng.randrange(len(shape))
        major = scope.rng.choice([f for f in range(1, shape[at] + 1) if shape[at] % f == 0] or [1])
        if len(shape) > 4:
            return
        shape[at : at + 1] = [major, shape[at] // major]
    _emit(scope, "reshape", [value], scope.define(shape))


def merge_uneven(scope: Scope) -> None:
    """Merge a dim with the next one, where an axis shards it that divides by a part of it only.

    The merged dim takes a sub-axis: the part that divides.
    """
    mesh, rng = scope.module.meshes[0], scope.rng
    choices = [
        (axis, rows)
        for axis, size in mesh.axes
        for rows in (2, 3, 4, 6)
        if axis not in scope.taken and 1 < math.gcd(rows, size) < size
    ]
    if not choices:
        return
    axis, rows = rng.choice(choices)
    value = scope.of((rows, rng.choice([2, 4])))
    sharded = scope.define(value.shape)
    sharding = f'<{mesh.reference}, [{{"{axis}"}}, {{?}}]>'
    scope.emit(f"{sharded.name} = sdy.sharding_constraint {value.name} {sharding} : {value.type}")
    _emit(scope, "reshape", [sharded], scope.define([math.prod(value.shape)]))


def dot(scope: Scope) -> None:
    left = scope.any(rank=1)
    rng = scope.rng
    batch = 1 if len(left.shape) > 2 and rng.random() < 0.5 else 0
    at = rng.randrange(batch, len(left.shape))
    shape = [*left.shape[:batch], left.shape[at], rng.choice([4, 8, 6, 16])]
    right = scope.of(shape)
    dims = list(range(batch))
    numbers = (
        f"lhs_batching_dimensions = {dims}, rhs_batching_dimensions = {dims}, "
        f"lhs_contracting_dimensions = [{at}], rhs_contracting_dimensions = [{batch}]"
    )
    kept = [size for dim, size in enumerate(left.shape) if dim != at]
    result = scope.define([*kept, shape[-1]])
    _emit(
        scope,
        "dot_general",
        [left, right],
        result,
        f"dot_dimension_numbers = #stablehlo.dot<{numbers}>",
    )


def reduce(scope: Scope) -> None:
    value = scope.any(rank=1)
    start = scope.of(())
    dims = sorted(scope.rng.sample(range(len(value.shape)), scope.rng.randint(1, len(value.shape))))
    result = scope.define([size for dim, size in enumerate(value.shape) if dim not in dims])
    sharding = scope.attribute([result])
    scope.emit(
        f"{result.name} = stablehlo.reduce({value.name} init: {start.name}) applies stablehlo.add "
        f"across dimensions = {dims}{sharding} : ({value.type}, {start.type}) -> {result.type}"
    )


def slice_(scope: Scope) -> None:
    value = scope.any(rank=1)
    ends = [scope.rng.choice([size, size, (size + 1) // 2]) for size in value.shape]
    zeros = ", ".join("0" for _ in ends)
    ones = ", ".join("1" for _ in ends)
    attributes = (
        f"start_indices = array<i64: {zeros}>, limit_indices = array<i64: {str(ends)[1:-1]}>, "
        f"strides = array<i64: {ones}>"
    )
    _emit(scope, "slice", [value], scope.define(ends), attributes)


def dynamic_slice(scope: Scope) -> None:
    value = scope.any(rank=1)
    sizes = [scope.rng.choice([size, min(size, 1), (size + 1) // 2]) for size in value.shape]
    starts = [scope.of((), "i32") for _ in sizes]
    attributes = f"slice_sizes = array<i64: {str(sizes)[1:-1]}>"
    _emit(scope, "dynamic_slice", [value, *starts], scope.define(sizes), attributes)


def concatenate(scope: Scope) -> None:
    value = scope.any(rank=1)
    at = scope.rng.randrange(len(value.shape))
    operands = [value] + [scope.of(value.shape) for _ in range(scope.rng.randint(0, 3))]
    shape = list(value.shape)
    shape[at] *= len(operands)
    _emit(scope, "concatenate", operands, scope.define(shape), f"dimension = {at} : i64")


def pad(scope: Scope) -> None:
    value = scope.any(rank=1)
    low = [scope.rng.choice([0, 0, 1, 2]) for _ in value.shape]
    zeros = ", ".join("0" for _ in low)
    attributes = (
        f"edge_padding_low = array<i64: {str(low)[1:-1]}>, "
        f"edge_padding_high = array<i64: {zeros}>, interior_padding = array<i64: {zeros}>"
    )
    result = [size + more for size, more in zip(value.shape, low, strict=True)]
    _emit(scope, "pad", [value, scope.of(())], scope.define(result), attributes)


def convert(scope: Scope) -> None:
    dtype = scope.rng.choice(["bf16", "f16", "i8", "i32", "ui64", "f64", "i1", "f32"])
    value = scope.any(scope.rng.choice(["f32", "i32", "i1", "bf16"]))
    _emit(scope, "convert", [value], scope.define(value.shape, dtype))


def silent(scope: Scope) -> None:
    """An op without results, on a device of its own or with a plain side effect."""
    value = scope.any()
    mesh = next((mesh for mesh in scope.module.meshes if mesh.is_maximal), None)
    sharding = ""
    if mesh and not scope.taken:
        sharding = f" {{sdy.sharding = #sdy.sharding_per_value<[<{mesh.reference}, []>]>}}"
    scope.emit(
        f'"stablehlo.custom_call"({value.name}) <{{call_target_name = "log", '
        f"has_side_effect = true}}>{sharding} : ({value.type}) -> ()"
    )


def barrier(scope: Scope) -> None:
    operands = [scope.any() for _ in range(scope.rng.randint(1, 3))]
    _many(scope, '"stablehlo.optimization_barrier"', operands, [v.shape for v in operands])


def custom_call(scope: Scope) -> None:
    """A custom call with several results, with or without a rule of its own."""
    operands = [scope.any() for _ in range(scope.rng.randint(1, 3))]
    shapes = [scope.any().shape for _ in range(scope.rng.choice([1, 1, 2, 3]))]
    effect = ", has_side_effect = true" if scope.rng.random() < 0.4 else ""
    attributes = f' <{{call_target_name = "foo"{effect}}}>'
    rule = _rule(scope, operands, shapes) if scope.rng.random() < 0.7 else ""
    _many(scope, '"stablehlo.custom_call"', operands, shapes, attributes, rule)


def _many(
    scope: Scope,
    name: str,
    operands: list[Value],
    shapes: list[tuple[int, ...]],
    attributes: str = "",
    rule: str = "",
) -> None:
    """An op with several results."""
    prefix = scope.module.name()
    results = [Value(f"{prefix}#{at}", shape) for at, shape in enumerate(shapes)]
    scope.pool += results
    sharding = scope.attribute(results)
    if rule:
        sharding = f"{sharding[:-1]}, {rule}}}" if sharding else f" {{{rule}}}"
    left = f"{prefix}:{len(results)} = " if results else ""
    used = ", ".join(value.name for value in operands)
    types = f"({', '.join(v.type for v in operands)}) -> ({', '.join(v.type for v in results)})"
    scope.emit(f"{left}{name}({used}){attributes}{sharding} : {types}")


def _rule(scope: Scope, operands: list[Value], results: list[tuple[int, ...]]) -> str:
    """A random rule: dims of equal size may share a factor, dims may have two."""
    rng = scope.rng
    sizes: list[int] = []

    def factor(size: int, used: set[int]) -> int:
        fitting = [at for at, have in enumerate(sizes) if have == size and at not in used]
        if fitting and rng.random() < 0.7:
            return rng.choice(fitting)
        sizes.append(size)
        return len(sizes) - 1

    def dims(shape: tuple[int, ...]) -> list[list[int]]:
        used: set[int] = set()
        mapped = []
        for size in shape:
            split = rng.choice([f for f in range(2, size) if size % f == 0] or [0])
            parts = [split, size // split] if split and rng.random() < 0.3 else [size]
            factors = []
            for part in parts:
                factors.append(factor(part, used))
                used.add(factors[-1])
            mapped.append(factors)
        return mapped

    mappings = [[dims(v.shape) for v in operands], [dims(shape) for shape in results]]
    return f"sdy.sharding_rule = {_print_rule(scope, sizes, mappings)}"


def _print_rule(scope: Scope, sizes: list[int], mappings: list[list[list[list[int]]]]) -> str:
    names = "ijklmnopqrstuvwxyz"
    if len(sizes) > len(names):
        sizes = sizes[: len(names)]
    name = {at: names[at] if at < len(names) else f"z_{at - len(names) + 1}" for at in range(99)}

    def tensors(side: list[list[list[int]]]) -> str:
        texts = ("".join(f"{''.join(name[f] for f in dim)}, " for dim in t)[:-2] for t in side)
        return ", ".join(f"[{text}]" for text in texts)

    rng = scope.rng
    kinds: dict[str, list[int]] = {"reduction": [], "need_replication": [], "permutation": []}
    in_results = {at for shape in mappings[1] for dim in shape for at in dim}
    for at in range(len(sizes)):
        kind = rng.choice(list(kinds))
        if rng.random() < 0.3 and not (kind == "reduction" and at in in_results):
            kinds[kind].append(at)
    extra = "".join(
        f" {kind}={{{', '.join(name[at] for at in listed)}}}"
        for kind, listed in kinds.items()
        if listed
    )
    blocked = [at for at in range(len(sizes)) if rng.random() < 0.1]
    if blocked:
        extra += f" blocked_propagation={{{', '.join(name[at] for at in blocked)}}}"
    sized = ", ".join(f"{name[at]}={size}" for at, size in enumerate(sizes))
    return (
        f"#sdy.op_sharding_rule<({tensors(mappings[0])})->({tensors(mappings[1])}) "
        f"{{{sized}}}{extra}, custom>"
    )


def tokens(scope: Scope) -> None:
    ty = "!stablehlo.token"
    name = scope.module.name()
    if not scope.tokens:
        scope.emit(f'{name} = "stablehlo.create_token"() : () -> {ty}')
        scope.tokens.append(name)
        return
    token, value = scope.rng.choice(scope.tokens), scope.any()
    if scope.rng.random() < 0.5:
        scope.emit(f'{name} = "stablehlo.after_all"({token}) : ({ty}) -> {ty}')
        scope.tokens.append(name)
        return
    scope.emit(
        f'{name}:2 = "stablehlo.custom_call"({value.name}, {token}) <{{call_target_name = "io", '
        f"has_side_effect = true}}> : ({value.type}, {ty}) -> ({value.type}, {ty})"
    )
    scope.tokens.append(f"{name}#1")
    scope.pool.append(Value(f"{name}#0", value.shape, value.dtype))


MAKERS: list[Maker] = [
    unary, binary, binary, select, compare, transpose, broadcast, reshape, reshape, dot, dot,
    merge_uneven, reduce, slice_, dynamic_slice, concatenate, pad, barrier, custom_call,
    custom_call, convert, silent,
]  # fmt: skip
