"""Plans keep to their time, end when they are interrupted, and take any mesh."""

from __future__ import annotations

import time

import pytest
import shardcore
from shardcore import Module

from tests.plan.programs import mlp


def layers(count: int, width: int = 1024) -> Module:
    """Products of a batch with the weights of each of ``count`` layers, one after the other."""
    x, w = f"tensor<{4 * width}x{width}xbf16>", f"tensor<{width}x{width}xbf16>"
    names = [f"%w{number}: {w} loc(\"p['w{number}']\")" for number in range(count)]
    lines, last = [], "%x"
    for number in range(count):
        dims = f"contracting_dims = [1] x [0] : ({x}, {w}) -> {x}"
        lines.append(f"%d{number} = stablehlo.dot_general {last}, %w{number}, {dims}")
        lines.append(f"%t{number} = stablehlo.tanh %d{number} : {x}")
        last = f"%t{number}"
    head = f'func.func @main(%x: {x} loc("x"), {", ".join(names)}) -> {x} {{'
    return Module.parse("\n".join([head, *lines, f"return {last} : {x}", "}"]))


@pytest.mark.parametrize("size", [64, 200, 500])
def test_a_plan_over_many_devices_keeps_to_its_seconds(size: int) -> None:
    program, start = layers(6), time.process_time()
    shardcore.plan(program, "tpu-v5p", mesh={"x": size, "y": size}, seconds=3)
    # Processor seconds, as many other programs may run, on two threads.
    assert time.process_time() - start < 2 * 3 * 1.2


@pytest.mark.parametrize("devices", [1, 4096])
def test_any_number_of_devices_is_planned_for(devices: int) -> None:
    plan = shardcore.plan(layers(2), "tpu-v5p", devices=devices, seconds=3)
    assert plan.mesh.num_devices == devices
    assert plan.bound <= plan.value


def test_a_mesh_of_one_device_needs_no_annotation() -> None:
    plan = shardcore.plan(mlp(), "tpu-v5p", mesh={"data": 1, "model": 1}, seconds=3)
    assert not plan.specs
    assert plan.stopped == "done"
    assert [str(spec) for spec in plan.in_shardings] == ["P()"] * 3


def test_an_interrupted_plan_is_the_best_so_far_at_once() -> None:
    interrupted_at = 0.0

    def interrupt(text: str, fraction: float) -> None:
        nonlocal interrupted_at
        if not interrupted_at and "tried 5" in text:
            interrupted_at = time.process_time()
            raise KeyboardInterrupt

    plan = shardcore.plan(
        layers(4), "tpu-v5p", mesh={"x": 8, "y": 8}, seconds=600, progress=interrupt
    )
    assert plan.stopped == "interrupted"
    assert time.process_time() - interrupted_at < 5
