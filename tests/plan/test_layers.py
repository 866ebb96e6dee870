"""Programs with fewer layers: what follows from them is close to the whole program."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import shardcore
from shardcore import Module
from shardcore.calculus import hardware
from shardcore.plan.layers import shallow
from shardcore.plan.trials import Trials

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gpt_step.mlir"
EDITS = {
    "data": {"batch/*": "P(('data', 'fsdp'))"},
    "tensor": {
        "batch/*": "P('data')",
        "state/**/up": "P(None, 'tensor')",
        "state/**/down": "P('tensor')",
        "state/**/qkv": "P(None, 'tensor')",
        "state/**/out": "P('tensor')",
    },
}


def residual(layers: int) -> Module:
    """A residual network without a backward pass."""
    x, w = "tensor<64x256xf32>", "tensor<256x256xf32>"
    names = ", ".join(f"""%w{n}: {w} loc("p['layers'][{n}]['w']")""" for n in range(layers))
    lines = [f'  func.func public @main(%x0: {x} loc("x"), {names}) -> ({x}) {{']
    for n in range(layers):
        lines += [
            f"    %a{n} = stablehlo.tanh %x{n} : {x}",
            f"    %b{n} = stablehlo.negate %a{n} : {x}",
            f"    %c{n} = stablehlo.dot_general %b{n}, %w{n}, contracting_dims = [1] x [0]"
            f" : ({x}, {w}) -> {x}",
            f"    %x{n + 1} = stablehlo.add %x{n}, %c{n} : {x}",
        ]
    lines += [f"    return %x{layers} : {x}", "  }"]
    return Module.parse("\n".join(lines) + "\n")


def kept(layers: int) -> Module:
    """A wide value at first, then layers whose activations are kept until all have gone back.

    The peak is at the wide value if there are few layers, else between the two halves.
    """
    x, w, wide = "tensor<1024x256xf32>", "tensor<256x256xf32>", "tensor<1024x8192xf32>"
    up, down = "tensor<256x8192xf32>", "tensor<8192x256xf32>"
    names = "".join(f""", %w{n}: {w} loc("p['layers'][{n}]['w']")""" for n in range(layers))

    def dot(operands: str, columns: int, types: str) -> str:
        dims = f"contracting_dims = [1] x [{columns}]"
        return f"stablehlo.dot_general {operands}, {dims} : {types}"

    lines = [
        f'  func.func public @main(%in: {x} loc("x"), %up: {up} loc("p[\'up\']"),'
        f" %down: {down} loc(\"p['down']\"){names}) -> ({x}) {{",
        f"    %wide = {dot('%in, %up', 0, f'({x}, {up}) -> {wide}')}",
        f"    %act = stablehlo.tanh %wide : {wide}",
        f"    %x0 = {dot('%act, %down', 0, f'({wide}, {down}) -> {x}')}",
    ]
    for n in range(layers):
        lines += [
            f"    %a{n} = stablehlo.tanh %x{n} : {x}",
            f"    %b{n} = {dot(f'%a{n}, %w{n}', 0, f'({x}, {w}) -> {x}')}",
            f"    %c{n} = stablehlo.sine %b{n} : {x}",
            f"    %x{n + 1} = stablehlo.add %x{n}, %c{n} : {x}",
        ]
    lines.append(f"    %y{layers} = stablehlo.cosine %x{layers} : {x}")
    for n in reversed(range(layers)):
        lines += [
            f"    %d{n} = stablehlo.multiply %y{n + 1}, %c{n} : {x}",
            f"    %e{n} = {dot(f'%d{n}, %w{n}', 1, f'({x}, {w}) -> {x}')}",
            f"    %f{n} = stablehlo.multiply %e{n}, %a{n} : {x}",
            f"    %y{n} = stablehlo.add %y{n + 1}, %f{n} : {x}",
        ]
    lines += [f"    return %y0 : {x}", "  }"]
    return Module.parse("\n".join(lines) + "\n")


def test_costs_grow_by_the_same_with_each_layer() -> None:
    found = shallow(residual(24))
    assert found is not None
    small, large, missing = found
    sizes = [len(module.arguments()) for module in (small, large)]
    assert (sizes, missing) == ([3, 4], 22)
    ops = [module.session(mesh={"a": 4}).cost("tpu-v5e").flops for module in (small, large)]
    whole = residual(24).session(mesh={"a": 4}).cost("tpu-v5e").flops
    assert ops[0] + (ops[1] - ops[0]) * missing == whole


def test_few_layers_are_not_cut() -> None:
    assert shallow(residual(4)) is None
    assert shallow(Module.parse("func.func @main() { return }")) is None


@pytest.mark.parametrize("kind", EDITS)
def test_the_layers_of_a_training_step_can_be_cut(kind: str) -> None:
    module = Module.from_file(EXAMPLE)
    session = module.session()
    bare = session._copy(dict.fromkeys(session.annotations)).module
    found = shallow(bare)
    assert found is not None
    small, large, missing = found
    programs = (small, large, bare)
    rows = [next(p.session().evaluate([EDITS[kind]], "tpu-v5p")) for p in programs]
    slacks = {"compute_seconds": 0.02, "argument_bytes": 0.02, "peak_bytes": 0.01}
    for figure, slack in slacks.items():
        one, other, whole = (getattr(row, figure) for row in rows)
        assert one + (other - one) * missing == pytest.approx(whole, rel=slack)


def test_a_plan_of_many_layers_is_evaluated_on_all_of_them() -> None:
    plan = shardcore.plan(residual(24), "tpu-v5e", mesh={"a": 4}, seconds=60)
    session = residual(24).session(mesh={"a": 4})
    session.set(dict(plan.specs))
    assert session.cost("tpu-v5e").record() == plan.cost.record()
    assert len(plan.specs) <= 3
    values = [each.figures.serial_seconds or 0.0 for each in plan.alternatives]
    assert all(one <= other for one, other in pairwise([plan.value, *values]))


@pytest.mark.parametrize("far", [0.5, math.inf])
def test_a_plan_fits_where_fewer_layers_have_their_peak_elsewhere(
    far: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No value is in vector memory.
    chip = replace(hardware("tpu-v5e"), compiler="none")
    module, mesh, limit = kept(32), {"a": 8}, 30 * 2**20
    found = shallow(module)
    assert found is not None
    by_batch = [
        next(each.session(mesh=mesh).evaluate([{"x": "P('a')"}], chip))
        for each in (*found[:2], module)
    ]
    small, large, whole = (row.peak_bytes or 0 for row in by_batch)
    assert small + (large - small) * found[2] <= limit < whole
    # However far the peak of fewer layers is taken to be from the limit.
    monkeypatch.setattr(sys.modules[Trials.__module__], "_FAR", far)
    plan = shardcore.plan(module, chip, limit, mesh=mesh, seconds=60)
    assert plan.cost.peak_bytes <= limit
    assert plan.value <= 1.03 * (by_batch[2].serial_seconds or 0.0)
