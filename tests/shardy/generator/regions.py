"""Ops with regions: loops, branches, manual and named computations."""

from __future__ import annotations

from collections.abc import Callable

from tests.shardy.generator import shardings
from tests.shardy.generator.meshes import Mesh
from tests.shardy.generator.scope import Scope, Value

Fill = Callable[[Scope, int], None]
"""Adds about so many ops to a scope."""


def _results(scope: Scope, values: list[Value]) -> tuple[str, list[Value]]:
    prefix = scope.module.name()
    results = [Value(f"{prefix}#{at}", v.shape, v.dtype) for at, v in enumerate(values)]
    scope.pool += results
    return f"{prefix}:{len(results)} = " if results else "", results


def _types(values: list[Value]) -> str:
    return ", ".join(value.type for value in values)


def _names(values: list[Value]) -> str:
    return ", ".join(value.name for value in values)


def _arguments(scope: Scope, like: list[Value]) -> list[Value]:
    made = [Value(scope.module.name(), v.shape, v.dtype) for v in like]
    scope.pool += made
    return made


def _typed(values: list[Value]) -> str:
    return ", ".join(f"{value.name}: {value.type}" for value in values)


def _stablehlo_return(scope: Scope, values: list[Value]) -> None:
    scope.emit(f'"stablehlo.return"({_names(values)}) : ({_types(values)}) -> ()')


def loop(scope: Scope, fill: Fill) -> None:
    carried = [scope.any() for _ in range(scope.rng.randint(1, 3))] + [scope.of((), "i32")]
    texts = []
    for is_body in (False, True):
        with scope.block() as inner:
            arguments = _arguments(inner, carried)
            if is_body:
                fill(inner, 4)
                returned = [inner.of(v.shape, v.dtype) for v in arguments]
                if scope.rng.random() < 0.3:
                    returned = [*arguments[:1], *returned[1:]]
            else:
                if scope.rng.random() < 0.2:
                    fill(inner, 2)
                last = arguments[-1]
                test = inner.define((), "i1")
                less = "comparison_direction = #stablehlo<comparison_direction LT>"
                head = f'{test.name} = "stablehlo.compare"({last.name}, {last.name})'
                types = f"({last.type}, {last.type}) -> {test.type}"
                inner.emit(f"{head} <{{{less}}}> : {types}")
                returned = [test]
            inner.keep_alive(returned)
            _stablehlo_return(inner, returned)
            texts.append(f"{{\n^bb0({_typed(arguments)}):\n{inner.body()}\n}}")
    left, results = _results(scope, carried)
    sharding = scope.attribute(results)
    scope.emit(
        f'{left}"stablehlo.while"({_names(carried)}) ({", ".join(texts)}){sharding} : '
        f"({_types(carried)}) -> ({_types(carried)})"
    )


def branch(scope: Scope, fill: Fill) -> None:
    like = [scope.any() for _ in range(scope.rng.randint(1, 2))]
    is_case = scope.rng.random() < 0.6
    texts = []
    for _ in range(scope.rng.randint(1, 3) if is_case else 2):
        with scope.block() as inner:
            fill(inner, 3)
            returned = [inner.of(v.shape, v.dtype) for v in like]
            inner.keep_alive(returned)
            _stablehlo_return(inner, returned)
            texts.append(f"{{\n{inner.body()}\n}}")
    index = scope.of((), "i32" if is_case else "i1")
    left, results = _results(scope, like)
    sharding = scope.attribute(results)
    name = "case" if is_case else "if"
    head = f'{left}"stablehlo.{name}"({index.name}) ({", ".join(texts)})'
    scope.emit(f"{head}{sharding} : ({index.type}) -> ({_types(like)})")


def named_computation(scope: Scope, fill: Fill) -> None:
    operands = [scope.any() for _ in range(scope.rng.randint(1, 3))]
    with scope.block(isolated=True) as inner:
        arguments = _arguments(inner, operands)
        fill(inner, 4)
        returned = [inner.any() for _ in range(scope.rng.randint(1, 2))]
        inner.keep_alive(returned)
        inner.emit(f"sdy.return {_names(returned)} : {_types(returned)}")
    left, results = _results(scope, returned)
    sides = ""
    for side, values in (("in", operands), ("out", results)):
        if scope.rng.random() < 0.4:
            listed = ", ".join(f"<{scope.sharding(v.shape)}>" for v in values)
            sides += f" {side}_shardings=[{listed}]"
    name = scope.rng.choice(["inner", "outer", "inner", "body"])
    head = f'{left}sdy.named_computation<"{name}">({_names(operands)}){sides}'
    types = f"({_types(operands)}) -> ({_types(results)})"
    scope.emit(f"{head} ({_typed(arguments)}) {{\n{inner.body()}\n}} : {types}")


def manual_computation(scope: Scope, fill: Fill) -> None:
    mesh = scope.module.meshes[0]
    free = [axis for axis, _ in mesh.axes if axis not in scope.taken]
    manual = scope.rng.sample(free, scope.rng.randint(0, len(free)))
    manual.sort(key=[axis for axis, _ in mesh.axes].index)
    operands = [scope.any() for _ in range(scope.rng.randint(1, 3))]
    ins, local = [], []
    for value in operands:
        text, shares = _manual_sharding(scope, mesh, manual, value.shape, divide=True)
        ins.append(f"<{text}>")
        shape = tuple(size // share for size, share in zip(value.shape, shares, strict=True))
        local.append(Value("", shape, value.dtype))
    with scope.block(taken=(*scope.taken, *manual), isolated=True) as inner:
        arguments = _arguments(inner, local)
        fill(inner, 5)
        returned = [inner.any() for _ in range(scope.rng.randint(1, 2))]
        inner.keep_alive(returned)
        inner.emit(f"sdy.return {_names(returned)} : {_types(returned)}")
    outs, whole = [], []
    for value in returned:
        text, shares = _manual_sharding(scope, mesh, manual, value.shape, divide=False)
        outs.append(f"<{text}>")
        shape = tuple(size * share for size, share in zip(value.shape, shares, strict=True))
        whole.append(Value("", shape, value.dtype))
    left, results = _results(scope, whole)
    axes = ", ".join(f'"{axis}"' for axis in manual)
    scope.emit(
        f"{left}sdy.manual_computation({_names(operands)}) in_shardings=[{', '.join(ins)}] "
        f"out_shardings=[{', '.join(outs)}] manual_axes={{{axes}}} ({_typed(arguments)}) {{\n"
        f"{inner.body()}\n}} : ({_types(operands)}) -> ({_types(results)})"
    )


def _manual_sharding(
    scope: Scope, mesh: Mesh, manual: list[str], shape: tuple[int, ...], divide: bool
) -> tuple[str, list[int]]:
    """A sharding with manual axes first in each dim, and how often each dim is divided by them."""
    rng = scope.rng
    left = rng.sample(manual, len(manual))
    dims: list[list[str]] = []
    shares = []
    for size in shape:
        axes: list[str] = []
        share = 1
        for axis in list(left):
            product = share * mesh.size(axis)
            if rng.random() < 0.5 and (size % product == 0 or not divide) and size * product < 4000:
                axes.append(axis)
                left.remove(axis)
                share = product
        dims.append(axes)
        shares.append(share)
    taken = {*scope.taken, *manual}
    rest = shardings.sharding(rng, mesh, [4] * len(shape), scope.module.style, taken)
    return _join(mesh, dims, left, rest, rng.random() < 0.5), shares


def _join(mesh: Mesh, dims: list[list[str]], unused: list[str], rest: str, replicate: bool) -> str:
    """Puts manual axes in front of the other axes of each dim."""
    head, _, tail = rest.partition(", [")
    inside, _, trailer = tail.rpartition("]")
    if "replicated" in trailer or "unreduced" in trailer:
        trailer = ""
    parts = []
    texts = inside.split("{")[1:] if inside else []
    for axes, text in zip(dims, texts, strict=True):
        body, _, priority = text.partition("}")
        listed = ", ".join([*(f'"{axis}"' for axis in axes), *([body] if body else [])])
        parts.append(f"{{{listed}}}{priority.rstrip(', ')}")
    if replicate and unused:
        order = [axis for axis, _ in mesh.axes if axis in unused]
        trailer = f", replicated={{{', '.join(f'{chr(34)}{axis}{chr(34)}' for axis in order)}}}"
    return f"{head}, [{', '.join(parts)}]{trailer}"
