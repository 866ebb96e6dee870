"""Ops that programs rarely have: without a rule, with constants that move, known to few."""

from __future__ import annotations

import math

from tests.shardy.generator.ops import Maker
from tests.shardy.generator.scope import Scope, Value


def _op(
    scope: Scope,
    name: str,
    operands: list[Value],
    results: list[tuple[tuple[int, ...], str]],
    attributes: str = "",
    regions: str = "",
) -> None:
    prefix = scope.module.name()
    made = [Value(f"{prefix}#{at}", shape, dtype) for at, (shape, dtype) in enumerate(results)]
    scope.pool += made
    left = f"{prefix}:{len(made)} = " if made else ""
    used = ", ".join(value.name for value in operands)
    properties = f" <{{{attributes}}}>" if attributes else ""
    types = f"({', '.join(v.type for v in operands)}) -> ({', '.join(v.type for v in made)})"
    scope.emit(f'{left}"{name}"({used}){properties}{regions}{scope.attribute(made)} : {types}')


def _same(value: Value) -> list[tuple[tuple[int, ...], str]]:
    return [(value.shape, value.dtype)]


def chlo(scope: Scope) -> None:
    value, rng = scope.any(), scope.rng
    roll = rng.random()
    if roll < 0.4:
        name = rng.choice(["erf", "acos", "asinh", "digamma", "lgamma", "erfc", "sinh", "square"])
        _op(scope, f"chlo.{name}", [value], _same(value))
    elif roll < 0.5:
        name = rng.choice(["next_after", "polygamma", "zeta"])
        _op(scope, f"chlo.{name}", [value, scope.of(value.shape)], _same(value))
    elif roll < 0.9:
        # Commutative ones move their constants behind.
        operands = [scope.of(()), value]
        if rng.random() < 0.5:
            operands = [scope.constant(value.shape), value]
        name = rng.choice(["add", "multiply", "maximum", "subtract"])
        _op(scope, f"chlo.broadcast_{name}", operands, _same(value))
    elif value.shape and value.shape[-1]:
        cut = (*value.shape[:-1], rng.randint(1, value.shape[-1]))
        _op(scope, "chlo.top_k", [value], [(cut, "f32"), (cut, "i32")], f"k = {cut[-1]} : i64")


def map_(scope: Scope) -> None:
    value = scope.any(rank=1)
    inner, result = scope.module.name(), scope.module.name()
    dims = ", ".join(map(str, range(len(value.shape))))
    body = (
        f" ({{\n^bb0({inner}: tensor<f32>):\n{result} = stablehlo.negate {inner} : tensor<f32>\n"
        f"stablehlo.return {result} : tensor<f32>\n}})"
    )
    _op(scope, "stablehlo.map", [value], _same(value), f"dimensions = array<i64: {dims}>", body)


def batch_norm(scope: Scope) -> None:
    value = scope.any(rank=1)
    feature = scope.rng.randrange(len(value.shape))
    vector = (value.shape[feature],)
    results = [*_same(value), (vector, "f32"), (vector, "f32")]
    attributes = f"epsilon = 1.0e-3 : f32, feature_index = {feature} : i64"
    if scope.rng.random() < 0.5:
        operands = [value, scope.of(vector), scope.of(vector)]
        _op(scope, "stablehlo.batch_norm_training", operands, results, attributes)
    else:
        operands = [value, *(scope.of(vector) for _ in range(3)), scope.of(value.shape)]
        _op(scope, "stablehlo.batch_norm_grad", operands, results, attributes)


def dynamic(scope: Scope) -> None:
    """Ops whose shapes are operands, though all shapes are known."""
    value = scope.any(rank=1)
    rank = len(value.shape)
    if 0 in value.shape or rank > 5:
        return
    which = scope.rng.randrange(4)
    index = Value(scope.module.name(), (rank,), "i32")
    numbers = ", ".join(map(str, value.shape))
    scope.emit(f"{index.name} = stablehlo.constant dense<[{numbers}]> : {index.type}")
    if which == 0:
        zeros, ones = (scope.constant((rank,), "i32") for _ in range(2))
        _op(scope, "stablehlo.real_dynamic_slice", [value, zeros, index, ones], _same(value))
    elif which == 1:
        _op(scope, "stablehlo.dynamic_reshape", [value, index], _same(value))
    elif which == 2:
        dims = f"broadcast_dimensions = array<i64: {', '.join(map(str, range(rank)))}>"
        _op(scope, "stablehlo.dynamic_broadcast_in_dim", [value, index], _same(value), dims)
    else:
        attributes = "iota_dimension = 0 : i64"
        _op(scope, "stablehlo.dynamic_iota", [index], _same(value), attributes)


def composite(scope: Scope) -> None:
    if not scope.module.callees:
        return
    callee = scope.rng.choice(scope.module.callees)
    operands = [scope.of(v.shape, v.dtype) for v in callee.operands]
    results = [(v.shape, v.dtype) for v in callee.results]
    attributes = f'decomposition = @{callee.name}, name = "my.op"'
    _op(scope, "stablehlo.composite", operands, results, attributes)


def tuple_(scope: Scope) -> None:
    value = scope.any()
    pair, element = scope.module.name(), Value(scope.module.name(), value.shape, value.dtype)
    kind = f"tuple<{value.type}, {value.type}>"
    types = f"({value.type}, {value.type}) -> {kind}"
    scope.emit(f'{pair} = "stablehlo.tuple"({value.name}, {value.name}) : {types}')
    head = f'{element.name} = "stablehlo.get_tuple_element"({pair}) <{{index = 1 : i32}}>'
    scope.emit(f"{head} : ({kind}) -> {element.type}")
    scope.pool.append(element)


def update_at_constants(scope: Scope) -> None:
    value = scope.any(rank=1)
    sizes = tuple(max(size // 2, min(size, 1)) for size in value.shape)
    starts = [scope.constant((), "i32") for _ in sizes]
    operands = [value, scope.of(sizes), *starts]
    _op(scope, "stablehlo.dynamic_update_slice", operands, _same(value))


def rotation(scope: Scope) -> None:
    """Two slices of a value put together again, perhaps in another order."""
    value = scope.any(rank=1)
    dim = scope.rng.randrange(len(value.shape))
    if value.shape[dim] < 2 or math.prod(value.shape) == 0:
        return
    cut = scope.rng.randrange(1, value.shape[dim])
    parts = []
    for low, high in ((0, cut), (cut, value.shape[dim])):
        shape = tuple(high - low if at == dim else size for at, size in enumerate(value.shape))
        bounds = [f"{low}:{high}" if at == dim else f"0:{n}" for at, n in enumerate(value.shape)]
        part = scope.define(shape)
        head = f"{part.name} = stablehlo.slice {value.name} [{', '.join(bounds)}]"
        scope.emit(f"{head}{scope.attribute([part])} : ({value.type}) -> {part.type}")
        parts.append(part)
    if scope.rng.random() < 0.6:
        parts.reverse()
    _op(scope, "stablehlo.concatenate", parts, _same(value), f"dimension = {dim} : i64")


MAKERS: list[Maker] = [
    chlo, chlo, map_, batch_norm, dynamic, composite, tuple_, update_at_constants, rotation,
]  # fmt: skip
