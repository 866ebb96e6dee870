"""The memory on a page: over time, by kind, by layer, and by scope or line."""

from __future__ import annotations

import pytest
from shardcore import Module

from tests.page.test_page import EXAMPLES, MESH, data_of

LAYERS = 20


def test_columns_end_with_the_step() -> None:
    result = Module.from_file(EXAMPLES / "gpt_step.mlir").propagate()
    memory = data_of(result.show("tpu-v5p").html)["cost"]["memory"]
    starts = memory["starts"]
    assert len(starts) == len(memory["name"]) + 1
    assert starts == sorted(starts)
    assert starts[0] == 0
    assert starts[-1] == pytest.approx(result.cost("tpu-v5p").step_seconds * 1e12, rel=1e-6)
    # The forward pass, up to the peak, takes about a third of three passes, and sends more.
    assert 0.3 < starts[memory["peak"]] / starts[-1] < 0.6


def test_layers_are_drawn_by_themselves_or_in_runs() -> None:
    weights = ", ".join(
        f"%w{n}: tensor<256x256xf32> loc(\"params['layers'][{n}]['w']\")" for n in range(LAYERS)
    )
    ops = "\n".join(
        f"  %x{n + 1} = stablehlo.dot_general %x{n}, %w{n}, contracting_dims = [1] x [0] "
        ": (tensor<8x256xf32>, tensor<256x256xf32>) -> tensor<8x256xf32>"
        for n in range(LAYERS)
    )
    text = (
        f"{MESH}func.func @main(%x0: tensor<8x256xf32>, {weights}) -> tensor<8x256xf32> {{\n"
        f"{ops}\n  return %x{LAYERS} : tensor<8x256xf32>\n}}"
    )
    memory = data_of(Module.parse(text).propagate().show("tpu-v5p").html)["cost"]["memory"]
    charts = {chart["by"]: chart for chart in memory["charts"]}
    assert list(charts) == ["kind", "layer", "line"]
    names = charts["layer"]["names"]
    assert {"layer 0", "layers 3 to 4", "layers 18 to 19", "outside of layers"} <= set(names)
    sums = [
        [sum(sizes) for sizes in zip(*chart["bytes"], strict=True)] for chart in charts.values()
    ]
    assert sums[0] == sums[1] == sums[2]
    assert charts["layer"]["bytes"][names.index("layer 0")][0] == 4 * 256 * 256
