"""Families with a mesh of many axes or a tensor of many dims; the argument is their number."""

from __future__ import annotations

from collections.abc import Callable

from benches.families import SQUARE, _module, _sharding
from benches.stress import _annotation, _function


def _with_axes(text: str, count: int) -> str:
    """The module with ``count`` more axes, all of size 1, in its mesh."""
    axes = ", ".join(f'"a{i}"=1' for i in range(count))
    return text.replace('"model"=4]', f'"model"=4, {axes}]')


def _axes(count: int) -> str:
    return ", ".join(f'"a{i}"' for i in range(count))


def axes_of_size_one(count: int) -> str:
    """An argument that is sharded along many axes of size 1, and replicated along as many."""
    dims = f'[{{"data", {_axes(count // 2)}}}, {{?}}]'
    rest = ", ".join(f'"a{i}"' for i in range(count // 2, count))
    sharding = f"#sdy.sharding<@mesh, {dims}, replicated={{{rest}}}>"
    line = f"%0 = stablehlo.negate %x : {SQUARE}"
    return _with_axes(_function([line], "%0", f"%x: {SQUARE} {{sdy.sharding = {sharding}}}"), count)


def ops_along_axes_of_size_one(count: int) -> str:
    """A chain of ops, each sharded along a different axis of size 1."""
    lines, previous = [], "%x"
    for op in range(count):
        lines.append(f"%{op} = stablehlo.negate {previous}{_annotation(f'a{op}', '')} : {SQUARE}")
        previous = f"%{op}"
    return _with_axes(_function(lines, previous), count)


def manual_axes(count: int) -> str:
    """A manual computation over many axes of size 1."""
    open_ = "[<@mesh, [{?}, {?}]>]"
    ends = f"in_shardings={open_} out_shardings={open_} manual_axes={{{_axes(count)}}}"
    lines = [
        f"%m = sdy.manual_computation(%x) {ends} (%a: {SQUARE}) {{",
        f"%n = stablehlo.negate %a : {SQUARE} sdy.return %n : {SQUARE}",
        f"}} : ({SQUARE}) -> {SQUARE}",
    ]
    return _with_axes(_function(lines, "%m"), count)


def _cube(rank: int, *more: int) -> str:
    return f"tensor<{'2x' * rank}{''.join(f'{size}x' for size in more)}f32>"


def _unary(operand: str, result: str, lines: list[str], dims: list[str]) -> str:
    """A module from an argument to ``%0``."""
    head = f"func.func @main(%x: {operand} {_sharding(*dims)}) -> {result} {{"
    return _module([head, *lines, f"return %0 : {result}", "}"])


def transposed_dims(rank: int) -> str:
    """A tensor of many dims, reversed."""
    type_, dims = _cube(rank), ", ".join(map(str, reversed(range(rank))))
    line = f"%0 = stablehlo.transpose %x, dims = [{dims}] : ({type_}) -> {type_}"
    return _unary(type_, type_, [line], ["data", *[""] * (rank - 1)])


def reshaped_dims(rank: int) -> str:
    """A reshape that moves many dims of size 1 across the only other dim."""
    ones = "1x" * rank
    old, new = f"tensor<{ones}64xf32>", f"tensor<64x{ones}f32>"
    line = f"%0 = stablehlo.reshape %x : ({old}) -> {new}"
    return _unary(old, new, [line], [*[""] * rank, "data"])


def reduced_dims(rank: int) -> str:
    """A sum of a tensor of many dims over all but the first."""
    type_, dims = _cube(rank), ", ".join(map(str, range(1, rank)))
    how = f"applies stablehlo.add across dimensions = [{dims}]"
    lines = [
        "%c = stablehlo.constant dense<0.0> : tensor<f32>",
        f"%0 = stablehlo.reduce(%x init: %c) {how} : ({type_}, tensor<f32>) -> tensor<2xf32>",
    ]
    return _unary(type_, "tensor<2xf32>", lines, ["data", *[""] * (rank - 1)])


def batching_dims(rank: int) -> str:
    """A product of tensors of many batching dims."""
    type_, batch = _cube(rank, 4, 4), ", ".join(map(str, range(rank)))
    dims = f"batching_dims = [{batch}] x [{batch}], contracting_dims = [{rank + 1}] x [{rank}]"
    line = f"%0 = stablehlo.dot_general %x, %x, {dims} : ({type_}, {type_}) -> {type_}"
    return _unary(type_, type_, [line], ["data", *[""] * (rank + 1)])


EXTENTS: dict[str, Callable[[int], str]] = {
    family.__name__.replace("_", "-"): family
    for family in (
        axes_of_size_one,
        ops_along_axes_of_size_one,
        manual_axes,
        transposed_dims,
        reshaped_dims,
        reduced_dims,
        batching_dims,
    )
}
"""These families by name."""
