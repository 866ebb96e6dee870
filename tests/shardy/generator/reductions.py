"""Reductions whose results stay unreduced over axes and parts of axes, as sums, maxima and minima.

Only newer versions of Shardy have other reductions than the sum.
"""

from __future__ import annotations

import math

from tests.shardy.generator import shardings
from tests.shardy.generator.scope import Scope, Value

KINDS = {"": "add", "max": "maximum", "min": "minimum"}


def chain(scope: Scope) -> None:
    """A dim that is sharded is reduced; an op or two later the value is reduced over devices."""
    rng, mesh = scope.rng, scope.module.meshes[0]
    style = shardings.Style(sub_axes=0.8)
    free = [pair for pair in mesh.axes if pair[0] not in scope.taken and pair[1] > 1]
    if mesh.is_maximal or not free:
        return
    axes = rng.sample(free, min(len(free), rng.choice([1, 1, 2])))
    pieces = [piece for axis, size in axes for piece in shardings.pieces_of(rng, axis, size, style)]
    extent = math.prod(map(shardings.extent, pieces))
    if extent > 100:
        return
    kind = rng.choice(list(KINDS))
    rest = [rng.choice([4, 6, 8, 12]) for _ in range(rng.randint(0, 2))]
    value = _constrained(
        scope, scope.fresh((extent * rng.choice([1, 2]), *rest)), [pieces] + [[] for _ in rest]
    )
    start, result = scope.of(()), scope.define(rest)
    unreduced = [result]
    dims = [[] for _ in rest]
    attribute = _attribute(scope, dims, pieces, kind if rng.random() < 0.9 else "")
    scope.emit(
        f"{result.name} = stablehlo.reduce({value.name} init: {start.name}) applies "
        f"stablehlo.{KINDS[kind]} across dimensions = [0]{attribute} : "
        f"({value.type}, {start.type}) -> {result.type}"
    )
    if rng.random() < 0.6:
        # Another op between, which may say that its result is unreduced too.
        other = result if rng.random() < 0.5 else scope.of(rest)
        between = scope.define(rest)
        op = rng.choice(list(KINDS.values()))
        attribute = _attribute(scope, dims, pieces, kind) if rng.random() < 0.7 else ""
        types = f"({result.type}, {other.type}) -> {between.type}"
        scope.emit(
            f'{between.name} = "stablehlo.{op}"({result.name}, {other.name}){attribute} : {types}'
        )
        result = between
        unreduced.append(result)
    kept = rng.sample(pieces, rng.randint(0, len(pieces)))
    dims = [[] for _ in rest]
    for piece in pieces:
        at = rng.randrange(len(rest) + 1)
        shards = math.prod(map(shardings.extent, dims[at])) if at < len(rest) else 0
        if piece not in kept and shards and rest[at] % (shards * shardings.extent(piece)) == 0:
            dims[at].append(piece)
    kept = kept if rng.random() < 0.3 else []
    last = _constrained(scope, result, dims, kept, kind)
    # The reference ends the process where ops without results use what is unreduced.
    unreduced += [last] if kept else []
    scope.pool = [value for value in scope.pool if value not in unreduced]


Dims = list[list[shardings.Piece]]


def _sharding(scope: Scope, dims: Dims, unreduced: list[shardings.Piece], kind: str) -> str:
    mesh = scope.module.meshes[0]
    order = {axis: at for at, (axis, _) in enumerate(mesh.axes)}
    listed = [shardings.dim(scope.rng, axes, shardings.Style(open_dims=0.2)) for axes in dims]
    text = f"{mesh.reference}, [{', '.join(listed)}]"
    if unreduced:
        text += f", unreduced={kind}{{{', '.join(shardings.sorted_axes(unreduced, order))}}}"
    return text


def _attribute(scope: Scope, dims: Dims, unreduced: list[shardings.Piece], kind: str) -> str:
    sharding = _sharding(scope, dims, unreduced, kind)
    return f" {{sdy.sharding = #sdy.sharding_per_value<[<{sharding}>]>}}"


def _constrained(
    scope: Scope,
    value: Value,
    dims: Dims,
    unreduced: list[shardings.Piece] | None = None,
    kind: str = "",
) -> Value:
    result = scope.define(value.shape)
    op = scope.rng.choice(["sharding_constraint", "sharding_constraint", "reshard"])
    sharding = _sharding(scope, dims, unreduced or [], kind)
    scope.emit(f"{result.name} = sdy.{op} {value.name} <{sharding}> : {value.type}")
    return result
