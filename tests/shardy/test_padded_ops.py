"""`sdy-pad-for-divisibility` on ops with regions, windows and indices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import shardcore

from tests.shardy import reference
from tests.shardy.diff import explain, ours

PIPELINE = reference.join_passes([reference.PAD])
MESH = 'sdy.mesh @mesh = <["x"=2, "y"=3]>\n'
T = "tensor<7x4xf32>"
T3 = "tensor<7x5x4xf32>"
SCALAR = "tensor<f32>"
INDEX = "tensor<i32>"
SIMPLE_GATHER = (
    "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
)
SIMPLE_SCATTER = (
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
    "index_vector_dim = 1"
)
ADD = (
    "({\n^bb0(%s: tensor<f32>, %t: tensor<f32>):\n%m = stablehlo.add %s, %t : tensor<f32>\n"
    "stablehlo.return %m : tensor<f32>\n})"
)
AT_LEAST = (
    "({\n^bb0(%s: tensor<f32>, %t: tensor<f32>):\n"
    "%m = stablehlo.compare GE, %s, %t : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
    "stablehlo.return %m : tensor<i1>\n}"
)


def dims(axes: str) -> str:
    """The text of dims that are sharded over these axes, `-` for none."""
    return ", ".join("{}" if axis == "-" else f'{{"{axis}"}}' for axis in axes)


def sharding(axes: str) -> str:
    return f"<@mesh, [{dims(axes)}]>"


def per_value(*axes: str) -> str:
    shardings = ", ".join(map(sharding, axes))
    return f"{{sdy.sharding = #sdy.sharding_per_value<[{shardings}]>}}"


class Case(NamedTuple):
    """A function whose body computes `%r` from shards of its arguments."""

    inputs: dict[str, tuple[str, str]]
    """For each argument its type and its sharding."""
    body: str
    result: tuple[str, str]
    """The type and the sharding of `%r`."""
    is_new: bool = False
    """Whether the Shardy of jaxlib 0.10 makes an invalid program."""

    def text(self) -> str:
        lines = []
        for name, (ty, axes) in self.inputs.items():
            source, out = f"%{name}_whole", f"out_sharding={sharding(axes)}"
            if axes.strip("-"):
                lines.append(f"%{name} = sdy.all_slice [{dims(axes)}] {source} {out} : {ty}")
            else:
                lines.append(f"%{name} = stablehlo.optimization_barrier {source} : {ty}")
        ty, axes = self.result
        whole, out = "%r", f"out_sharding={sharding('-' * len(axes))}"
        if axes.strip("-"):
            whole = "%whole"
            last = f"%whole = sdy.all_gather [{dims(axes)}] %r {out} : {ty}\n"
        else:
            last = ""
        arguments = ", ".join(f"%{name}_whole: {ty}" for name, (ty, _) in self.inputs.items())
        head = f"{MESH}func.func @main({arguments}) -> {ty} {{\n"
        body = "\n".join([*lines, self.body])
        return f"{head}{body}\n{last}return {whole} : {ty}\n}}"


def gather(
    numbers: str, sizes: str, operand: tuple[str, str], indices: tuple[str, str], is_new: bool
) -> Case:
    result = (T3 if operand[0] == "tensor<7x10x4xf32>" else T, operand[1])
    if operand[1] == "--":
        result = (T, "y-")
    body = (
        f'%r = "stablehlo.gather"(%a, %i) <{{dimension_numbers = #stablehlo.gather<{numbers}>, '
        f"slice_sizes = array<i64: {sizes}>}}> {per_value(result[1])} "
        f": ({operand[0]}, {indices[0]}) -> {result[0]}"
    )
    return Case({"a": operand, "i": indices}, body, result, is_new)


def scatter(
    numbers: str, operand: tuple[str, str], indices: tuple[str, str], updates: tuple[str, str]
) -> Case:
    body = (
        '%r = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = '
        f"#stablehlo.scatter<{numbers}>}}> {ADD} {per_value(operand[1])} "
        f": ({operand[0]}, {indices[0]}, {updates[0]}) -> {operand[0]}"
    )
    return Case({"a": operand, "i": indices, "u": updates}, body, operand)


def loop(body: str, cond: str = "") -> Case:
    text = f"""%n = stablehlo.constant dense<3> : {INDEX}
%one = stablehlo.constant dense<1> : {INDEX}
%w:2 = stablehlo.while(%p = %a, %k = %i) : {T}, {INDEX} attributes {per_value("y-", "")}
cond {{
  {cond}%c = stablehlo.compare LT, %k, %n : ({INDEX}, {INDEX}) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
}} do {{
  {body}
  %next = stablehlo.add %k, %one : {INDEX}
  stablehlo.return %v, %next : {T}, {INDEX}
}}
%r = stablehlo.negate %w#0 {per_value("y-")} : {T}"""
    return Case({"a": (T, "y-"), "i": (INDEX, "")}, text, (T, "y-"), is_new=True)


def reduction(op: str, initial: str, across: str, result: tuple[str, str]) -> Case:
    body = (
        f"%z = stablehlo.constant dense<{initial}> : {SCALAR}\n"
        f"%e = stablehlo.exponential %a {per_value('yx')} : tensor<7x5xf32>\n"
        f"%r = stablehlo.reduce(%e init: %z) applies stablehlo.{op} across dimensions = [{across}] "
        f"{per_value(result[1])} : (tensor<7x5xf32>, {SCALAR}) -> {result[0]}"
    )
    return Case({"a": ("tensor<7x5xf32>", "yx")}, body, result, is_new=True)


NEGATED = f"%v = stablehlo.negate %p {per_value('y-')} : {T}"
CASES = {
    "case": Case(
        {"a": (T, "--"), "i": (INDEX, "")},
        '%r = "stablehlo.case"(%i) ({\n'
        f'%s = sdy.all_slice [{{"y"}}, {{}}] %a out_sharding={sharding("y-")} : {T}\n'
        f"stablehlo.return %s : {T}\n}}) {per_value('y-')} : ({INDEX}) -> {T}",
        (T, "y-"),
    ),
    "if": Case(
        {"a": (T, "y-"), "i": ("tensor<i1>", "")},
        f'%r = "stablehlo.if"(%i) ({{\n%s = stablehlo.negate %a {per_value("y-")} : {T}\n'
        f"stablehlo.return %s : {T}\n}}, {{\nstablehlo.return %a : {T}\n}}) {per_value('y-')} "
        f": (tensor<i1>) -> {T}",
        (T, "y-"),
    ),
    "while": loop(NEGATED),
    "reduction in a condition": loop(
        NEGATED,
        f"%z = stablehlo.constant dense<0.0> : {SCALAR}\n%f = stablehlo.reduce(%p init: %z) "
        f"applies stablehlo.add across dimensions = [0, 1] : ({T}, {SCALAR}) -> {SCALAR}\n",
    ),
    "case in a while": loop(
        f'%v = "stablehlo.case"(%k) ({{\n%u = stablehlo.negate %p {per_value("y-")} : {T}\n'
        f"stablehlo.return %u : {T}\n}}) {per_value('y-')} : ({INDEX}) -> {T}"
    ),
    "collectives in a while": loop(
        f"%u = stablehlo.negate %p {per_value('y-')} : {T}\n"
        f'%g = sdy.all_gather [{{"y"}}, {{}}] %u out_sharding={sharding("--")} : {T}\n'
        f"%h = stablehlo.negate %g : {T}\n"
        f'%v = sdy.all_slice [{{"y"}}, {{}}] %h out_sharding={sharding("y-")} : {T}'
    ),
    "sort": Case(
        {"a": (T, "y-")},
        f'%r = "stablehlo.sort"(%a) <{{dimension = 1 : i64}}> {AT_LEAST}) {per_value("y-")} '
        f": ({T}) -> {T}",
        (T, "y-"),
    ),
    "map": Case(
        {"a": (T, "y-")},
        f'%r = "stablehlo.map"(%a, %a) <{{dimensions = array<i64: 0, 1>}}> {ADD} {per_value("y-")} '
        f": ({T}, {T}) -> {T}",
        (T, "y-"),
    ),
    "gather, indices": gather(
        SIMPLE_GATHER, "1, 4", ("tensor<10x4xf32>", "--"), ("tensor<7xi32>", "y"), False
    ),
    "gather, batch": gather(
        "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], "
        "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2",
        "1, 1, 4",
        ("tensor<7x10x4xf32>", "y--"),
        ("tensor<7x5xi32>", "y-"),
        False,
    ),
    "gather, whole slices": gather(
        SIMPLE_GATHER, "1, 4", ("tensor<10x4xf32>", "-y"), ("tensor<7xi32>", "-"), True
    ),
    "scatter, windows": scatter(
        SIMPLE_SCATTER, ("tensor<10x4xf32>", "-y"), ("tensor<7xi32>", "-"), (T, "-y")
    ),
    "scatter, input": scatter(
        SIMPLE_SCATTER, ("tensor<10x4xf32>", "y-"), ("tensor<7xi32>", "-"), (T, "--")
    ),
    "scatter, batch": scatter(
        "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
        "scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], "
        "index_vector_dim = 2",
        ("tensor<7x10x4xf32>", "y--"),
        ("tensor<7x5xi32>", "y-"),
        (T3, "y--"),
    ),
    "reduce_window": Case(
        {"a": ("tensor<7x8xf32>", "y-"), "z": (SCALAR, "")},
        '%r = "stablehlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 1, 2>, '
        f"window_strides = array<i64: 1, 2>}}> {ADD} {per_value('y-')} "
        f": (tensor<7x8xf32>, {SCALAR}) -> {T}",
        (T, "y-"),
    ),
    "select_and_scatter": Case(
        {"a": ("tensor<7x8xf32>", "y-"), "u": (T, "y-"), "z": (SCALAR, "")},
        '%r = "stablehlo.select_and_scatter"(%a, %u, %z) <{window_dimensions = array<i64: 1, 2>, '
        f"window_strides = array<i64: 1, 2>}}> {AT_LEAST}, {ADD[1:]} {per_value('y-')} "
        f": (tensor<7x8xf32>, {T}, {SCALAR}) -> tensor<7x8xf32>",
        ("tensor<7x8xf32>", "y-"),
    ),
    "bitcast_convert": Case(
        {"a": (T, "y-")},
        f"%r = stablehlo.bitcast_convert %a {per_value('y--')} : ({T}) -> tensor<7x4x4xi8>",
        ("tensor<7x4x4xi8>", "y--"),
    ),
    "bitcast_convert of parts": Case(
        {"a": ("tensor<6x4xf32>", "yx")},
        "%b = stablehlo.bitcast_convert %a : (tensor<6x4xf32>) -> tensor<6x4x4xi8>\n"
        f"%r = stablehlo.bitcast_convert %b {per_value('yx')} : (tensor<6x4x4xi8>) "
        "-> tensor<6x4xf32>",
        ("tensor<6x4xf32>", "yx"),
    ),
    "batch_norm_inference": Case(
        {"a": (T, "y-"), "s": ("tensor<4xf32>", "-")},
        '%r = "stablehlo.batch_norm_inference"(%a, %s, %s, %s, %s) <{epsilon = 1.0 : f32, '
        f"feature_index = 1 : i64}}> {per_value('y-')} "
        f": ({T}, {', '.join(['tensor<4xf32>'] * 4)}) -> {T}",
        (T, "y-"),
    ),
    "sum": reduction("add", "0.0", "0", ("tensor<5xf32>", "x")),
    "sum of all": reduction("add", "0.0", "0, 1", (SCALAR, "")),
    "maximum": reduction("maximum", "0xFF800000", "1", ("tensor<7xf32>", "y")),
    "product": reduction("multiply", "1.0", "0", ("tensor<5xf32>", "x")),
    # An initial value that is no identity counts once.
    "sum and five": reduction("add", "5.0", "0", ("tensor<5xf32>", "x")),
}
REDUCTIONS = {"sum", "sum of all", "sum and five"}
DIFFERENT = {"sum and five"}
"""Programs of which Shardy changes the result."""


@pytest.mark.parametrize("name", CASES)
def test_text(name: str) -> None:
    case = CASES[name]
    text = case.text()
    if case.is_new and not reference.IS_NEW:
        return
    mine, theirs = ours(text, PIPELINE), reference.run(text, PIPELINE)
    if name in DIFFERENT:
        assert mine != theirs
        return
    difference = explain(theirs, mine)
    assert not difference, f"\n{difference}"


# Before jaxlib 0.12, what is reduced includes the padding.
@pytest.mark.parametrize("name", [n for n in CASES if reference.IS_NEW or n not in REDUCTIONS])
def test_results(name: str) -> None:
    module = shardcore.Module.parse(CASES[name].text())
    random = np.random.default_rng(0)
    arrays = [
        # Indices may lie outside.
        random.integers(0, 2 if ty == INDEX else 14, value_shape(ty)).astype(element(ty))
        for ty, _ in CASES[name].inputs.values()
    ]
    before = module.simulate(*arrays)
    shardcore.PassManager.parse(PIPELINE).run(module)
    for old, new in zip(before, module.simulate(*arrays), strict=True):
        np.testing.assert_allclose(old, new, rtol=1e-6)


def value_shape(ty: str) -> tuple[int, ...]:
    return tuple(int(part) for part in ty[len("tensor<") : -1].split("x")[:-1])


def element(ty: str) -> str:
    return {"f32": "float32", "i32": "int32", "i1": "bool"}[ty[len("tensor<") : -1].split("x")[-1]]
