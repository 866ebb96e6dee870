"""What a program costs is what XLA says of the compiled one, but for what is explained."""

from __future__ import annotations

import pytest
from shardcore import Module

from tests.deep import sampled
from tests.shardy.xla.cases import CASES
from tests.shardy.xla.compare import rows
from tests.shardy.xla.compiled import flops


@pytest.mark.parametrize("name", sampled(CASES, 3))
def test_cost(name: str) -> None:
    differ = {row.figure for row in rows(name).values() if not row.agrees}
    assert differ == CASES[name].keys(), [rows(name)[figure] for figure in differ]


@pytest.mark.parametrize(
    "name", ["bessel_i1e", "digamma", "erf_inv", "lgamma", "zeta", "polygamma"]
)
def test_functions_that_xla_expands(name: str) -> None:
    operands = "%a, %b" if name in {"zeta", "polygamma"} else "%a"
    types = ", ".join(["tensor<1000xf32>"] * operands.count("%"))
    signature = f"{types} -> tensor<1000xf32>"
    text = f"""module attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%a: tensor<1000xf32>, %b: tensor<1000xf32>)
      -> tensor<1000xf32> {{
    %0 = chlo.{name} {operands} : {signature}
    return %0 : tensor<1000xf32>
  }}
}}"""
    cost = Module.parse(text).propagate().cost(compiler="none")
    assert cost.uncounted == ()
    assert cost.flops == pytest.approx(flops(text), rel=0.05)
