"""Programs for ``sdy-convert-global-to-local``, and what the reference makes of them.

Run as a program it prints that as JSON: the reference dies on some programs, so it has a process of
its own.
"""

from __future__ import annotations

import json
import sys

from shardcore.shardy import default_shardy

IS_NEW = default_shardy() != "0.10"
PASS = "builtin.module(sdy-convert-global-to-local{{{}}})"
OPTIONS = [
    "",
    "per-dim-all-gather=true",
    "enable-rgv3=true",
    "combine-multi-dimension-reduce-scatter=true",
]
if IS_NEW:
    OPTIONS += ["enable-rgv3=false", "replica-count=8"]
HEAD = 'sdy.mesh @mesh = <["x"=2, "y"=2, "z"=2]>\n'


def program(arguments: list[str], body: str, result: str) -> str:
    """A function over 8x16 matrices with these shardings."""
    matrix = "tensor<8x16xf32>"
    listed = ", ".join(
        f"%a{number}: {matrix} {{sdy.sharding = #sdy.sharding<@mesh, {sharding}>}}"
        for number, sharding in enumerate(arguments)
    )
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    lines = lines.replace("MATRIX", matrix)
    return (
        f"{HEAD}func.func @main({listed}) -> ({matrix} {{sdy.sharding = #sdy.sharding<@mesh, "
        f"{result}>}}) {{\n{lines}\n}}\n"
    )


PROGRAMS = {
    "gathers_of_two_dims": program(
        ['[{"x"}, {"y", "z"}]'],
        """%0 = sdy.all_gather [{"x"}, {"z"}] %a0 out_sharding=<@mesh, [{}, {"y"}]> : MATRIX
        %1 = sdy.all_gather [{}, {"y"}] %0 out_sharding=<@mesh, [{}, {}]> : MATRIX
        return %1 : MATRIX""",
        "[{}, {}]",
    ),
    "slices_and_permutes": program(
        ["[{}, {}]"],
        """%0 = sdy.all_slice [{"y", "x"}, {}] %a0 out_sharding=<@mesh, [{"y", "x"}, {}]> : MATRIX
        %1 = sdy.collective_permute %0 out_sharding=<@mesh, [{"x", "z"}, {}]> : MATRIX
        return %1 : MATRIX""",
        '[{"x", "z"}, {}]',
    ),
    "exchanges": program(
        ['[{"x", "z"}, {}]'],
        """%0 = sdy.all_to_all [{"z"}: 0->1] %a0 out_sharding=<@mesh, [{"x"}, {"z"}]> : MATRIX
        %1 = stablehlo.negate %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"z"}]>]>} : MATRIX
        return %1 : MATRIX""",  # noqa: E501
        '[{"x"}, {"z"}]',
    ),
    "terms": program(
        ['[{}, {"x", "y"}]'],
        """%0 = stablehlo.transpose %a0, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}, {}]>]>} : (MATRIX) -> tensor<16x8xf32>
        %1 = stablehlo.dot_general %a0, %0, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"x", "y"}>]>} : (MATRIX, tensor<16x8xf32>) -> tensor<8x8xf32>
        %2 = sdy.all_reduce {"x", "y"} %1 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
        %3 = stablehlo.dot_general %2, %a0, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x", "y"}]>]>} : (tensor<8x8xf32>, MATRIX) -> MATRIX
        return %3 : MATRIX""",  # noqa: E501
        '[{}, {"x", "y"}]',
    ),
    "terms_scattered": program(
        ['[{"z"}, {"y"}]'],
        """%c = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        %0 = stablehlo.reduce(%a0 init: %c) applies stablehlo.add across dimensions = [1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z"}], unreduced={"y"}>]>} : (MATRIX, tensor<f32>) -> tensor<8xf32>
        %1 = sdy.reduce_scatter [{"y"}] %0 out_sharding=<@mesh, [{"z", "y"}]> : tensor<8xf32>
        %2 = stablehlo.broadcast_in_dim %1, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z", "y"}, {}]>]>} : (tensor<8xf32>) -> MATRIX
        return %2 : MATRIX""",  # noqa: E501
        '[{"z", "y"}, {}]',
    ),
    "arguments_reduced": program(
        ['[{}, {"z"}]'],
        """%0 = sdy.all_reduce {"x", "y"} %a0 out_sharding=<@mesh, [{}, {"z"}]> : MATRIX
        return %0 : MATRIX""",
        '[{}, {"z"}]',
    ),
    "arguments_scattered": program(
        ['[{"y"}, {}]'],
        """%0 = sdy.reduce_scatter [{}, {"x"}] %a0 out_sharding=<@mesh, [{"y"}, {"x"}]> : MATRIX
        return %0 : MATRIX""",
        '[{"y"}, {"x"}]',
    ),
    "constants": program(
        ['[{"x"}, {}]'],
        """%c = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} dense<2.0> : MATRIX
        %0 = stablehlo.add %a0, %c {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : MATRIX
        return %0 : MATRIX""",  # noqa: E501
        '[{"x"}, {}]',
    ),
    "manual": program(
        ['[{"x"}, {}]'],
        """%0 = sdy.manual_computation(%a0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x16xf32>) {
          %1 = stablehlo.negate %b : tensor<4x16xf32>
          sdy.return %1 : tensor<4x16xf32>
        } : (MATRIX) -> MATRIX
        return %0 : MATRIX""",  # noqa: E501
        '[{"x"}, {}]',
    ),
}
WINDOW = "window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 4>"
LATER = {
    "greatest": program(
        ['[{}, {"y"}], unreduced=max{"x", "z"}'],
        """%0 = sdy.all_reduce max {"z"} %a0 out_sharding=<@mesh, [{}, {"y"}], unreduced=max{"x"}> : MATRIX
        %1 = sdy.reduce_scatter max [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {"y"}]> : MATRIX
        return %1 : MATRIX""",  # noqa: E501
        '[{"x"}, {"y"}]',
    ),
    "least": program(
        ['[{}, {}], unreduced=min{"x", "z"}'],
        """%0 = sdy.reduce_scatter min [{"x"}, {"z"}] %a0 out_sharding=<@mesh, [{"x"}, {"z"}]> : MATRIX
        return %0 : MATRIX""",  # noqa: E501
        '[{"x"}, {"z"}]',
    ),
    "windows": program(
        ['[{"y"}, {"x"}]'],
        f"""%c = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = "stablehlo.reduce_window"(%a0, %c) <{{{WINDOW}}}> ({{
        ^bb0(%s: tensor<f32>, %t: tensor<f32>):
          %m = stablehlo.maximum %s, %t : tensor<f32>
          stablehlo.return %m : tensor<f32>
        }}) {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"y"}}, {{"x"}}]>]>}} : (MATRIX, tensor<f32>) -> tensor<8x4xf32>
        %1 = "stablehlo.select_and_scatter"(%a0, %0, %c) <{{{WINDOW}}}> ({{
        ^bb0(%s: tensor<f32>, %t: tensor<f32>):
          %m = stablehlo.compare GE, %s, %t : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %m : tensor<i1>
        }}, {{
        ^bb0(%s: tensor<f32>, %t: tensor<f32>):
          %m = stablehlo.add %s, %t : tensor<f32>
          stablehlo.return %m : tensor<f32>
        }}) {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"y"}}, {{"x"}}]>]>}} : (MATRIX, tensor<8x4xf32>, tensor<f32>) -> MATRIX
        return %1 : MATRIX""",  # noqa: E501
        '[{"y"}, {"x"}]',
    ),
    "calls": program(
        ["[{}, {}]"],
        """%0 = func.call @f(%a0) {kept} : (MATRIX) -> MATRIX
        return {kept} %0 : MATRIX
        }
        func.func private @f(%a: MATRIX) -> MATRIX {
        return %a : MATRIX""",
        "[{}, {}]",
    ),
    "parts_of_axes": """sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {}]>}, %b: tensor<f32>) -> (tensor<8x16xf32>, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(4)2}, {}]>}) {
  %0 = sdy.all_slice [{"x":(2)2}, {"x":(4)2}] %a out_sharding=<@mesh, [{"x":(1)4}, {"x":(4)2}]> : tensor<8x16xf32>
  %1 = sdy.all_gather [{"x":(1)4}, {"x":(4)2}] %0 out_sharding=<@mesh, [{}, {}]> : tensor<8x16xf32>
  %2 = sdy.collective_permute %a out_sharding=<@mesh, [{"x":(4)2}, {}]> : tensor<8x16xf32>
  return %1, %2 : tensor<8x16xf32>, tensor<8x16xf32>
}
""",  # noqa: E501
    "results_without_sharding": """sdy.mesh @empty = <[]>
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}], replicated={"x"}>]>} : tensor<8xf32>
  return %0, %a : tensor<8xf32>, tensor<8xf32>
}
""",  # noqa: E501
    "no_main": """sdy.mesh @mesh = <["x"=2]>
func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = sdy.all_gather [{"x"}] %a out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
""",
}
if IS_NEW:
    PROGRAMS |= LATER


def convert(text: str, options: str) -> str:
    """What the reference makes of ``text``."""
    from jax._src.interpreters import mlir as jax_mlir
    from jax._src.lib.mlir import ir, passmanager

    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        passmanager.PassManager.parse(PASS.format(options)).run(module.operation)
        return str(module)


if __name__ == "__main__":
    from tests.shardy.global_to_local_ops import PROGRAMS as PROGRAMS_WITH_OPS

    found = {f"{name} {o}": convert(t, o) for name, t in PROGRAMS.items() for o in OPTIONS}
    found |= {name: convert(text, "") for name, text in PROGRAMS_WITH_OPS.items()}
    json.dump(found, sys.stdout)
