"""What people read: tables, errors and drawings, character by character.

Each case prints to a file beside this one. After a change on purpose, write them anew with
`python -m tests.golden.test_golden` and look at the difference.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from shardcore import Module, PassManager, ShardcoreError, TensorSharding
from shardcore.report.console import UNBOUNDED, show
from shardcore.report.table import print_result, values_table

HERE = Path(__file__).parent
PROGRAM = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<64x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>} loc("x"),
    %w: tensor<512x2048xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"model"}]>})
    -> tensor<2048xbf16> {
  %c = stablehlo.constant dense<0.0> : tensor<bf16>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x512xbf16>, tensor<512x2048xbf16>) -> tensor<64x2048xbf16> loc("model.py":7:3)
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
      : (tensor<64x2048xbf16>, tensor<bf16>) -> tensor<2048xbf16> loc("model.py":8:10)
  return %1 : tensor<2048xbf16>
}
"""


def table() -> str:
    printed = io.StringIO()
    console = Console(file=printed, width=UNBOUNDED)
    print_result(Module.parse(PROGRAM).propagate(), limit=60, console=console)
    return printed.getvalue()


def narrow_table() -> str:
    printed = io.StringIO()
    result = Module.parse(PROGRAM).propagate()
    show([values_table(result, result.values())], Console(file=printed, width=72))
    return printed.getvalue()


def factor_table() -> str:
    module = Module.parse(PROGRAM)
    return f"{module.factor_table('%0')}\n\n{module.factor_table('%1')}\n"


def program() -> str:
    return str(Module.parse(PROGRAM).propagate().module)


MISTAKES: list[Callable[[], object]] = [
    lambda: Module.parse(PROGRAM.replace("@mesh, [{?}", "@msh, [{?}")),
    lambda: Module.parse(PROGRAM.replace('{?}, {"model"}', '{"modle"}, {"data":(1)3}')),
    lambda: Module.parse(PROGRAM.replace('{?}, {"model"}', '{"data", "model"}, {"data"}')),
    lambda: Module.parse(PROGRAM.replace("-> tensor<2048xbf16> {", "-> tensor<2048xbf16 {")),
    lambda: Module.parse(PROGRAM.replace("return %1", "return %2")),
    lambda: Module.parse(PROGRAM.replace("%0 = ", "%x = ")),
    lambda: Module.parse(PROGRAM.replace("return %1 : tensor<2048xbf16>", "return")),
    lambda: Module.parse(PROGRAM.rstrip("}\n")),
    lambda: Module.parse(PROGRAM).factor_table("%c"),
    lambda: PassManager.parse("builtin.module(sdy-propagation-pipelin)"),
    lambda: PassManager.parse("builtin.module(sdy-basic-propagate{keep-rules=true})"),
    lambda: TensorSharding.parse('<@mesh, [{"x"}, {"x"}]>'),
]


def errors() -> str:
    shown = []
    for mistake in MISTAKES:
        try:
            mistake()
        except ShardcoreError as error:
            shown.append(f"{type(error).__name__}\n{error}\n")
    assert len(shown) == len(MISTAKES)
    return "\n".join(shown)


CASES = [table, narrow_table, factor_table, program, errors]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_golden(case: Callable[[], str]) -> None:
    assert case() == (HERE / f"{case.__name__}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    for case in CASES:
        (HERE / f"{case.__name__}.txt").write_text(case(), encoding="utf-8")
