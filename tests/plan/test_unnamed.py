"""Plans of programs whose arguments have no paths: layers are told by how they are used."""

from __future__ import annotations

import doctest
import re
from typing import Any

import pytest
import shardcore
from shardcore import Module
from shardcore.plan import alike
from shardcore.plan.alike import Uses
from shardcore.session.targets import listed

from tests.plan.test_layers import residual

CHIP = "tpu-v5e"


def without_paths(module: Module) -> Module:
    return Module.parse(re.sub(r' loc\("[^"]*"\)(?=[,)])', "", str(module)))


def chain(layers: int, width: int = 4096) -> Module:
    """Layers whose columns are the rows of the next."""
    x, w = f"tensor<256x{width}xf32>", f"tensor<{width}x{width}xf32>"
    lines = [
        f"func.func @main(%x0: {x}, {', '.join(f'%w{n}: {w}' for n in range(layers))}) -> {x} {{"
    ]
    for n in range(layers):
        lines += [
            f"  %a{n} = stablehlo.dot_general %x{n}, %w{n}, contracting_dims = [1] x [0]"
            f" : ({x}, {w}) -> {x}",
            f"  %x{n + 1} = stablehlo.tanh %a{n} : {x}",
        ]
    return Module.parse("\n".join([*lines, f"  return %x{layers} : {x}", "}"]))


def blocks(layers: int) -> Module:
    """Layers with a hidden width of their own between two products, and a residual stream."""
    x, h = "tensor<2048x4096xf32>", "tensor<2048x16384xf32>"
    up, down = "tensor<4096x16384xf32>", "tensor<16384x4096xf32>"
    names = ", ".join(f"%u{n}: {up}, %d{n}: {down}" for n in range(layers))
    lines = [f"func.func @main(%x0: {x}, {names}) -> {x} {{"]
    for n in range(layers):
        lines += [
            f"  %a{n} = stablehlo.dot_general %x{n}, %u{n}, contracting_dims = [1] x [0]"
            f" : ({x}, {up}) -> {h}",
            f"  %b{n} = stablehlo.tanh %a{n} : {h}",
            f"  %c{n} = stablehlo.dot_general %b{n}, %d{n}, contracting_dims = [1] x [0]"
            f" : ({h}, {down}) -> {x}",
            f"  %x{n + 1} = stablehlo.add %x{n}, %c{n} : {x}",
        ]
    return Module.parse("\n".join([*lines, f"  return %x{layers} : {x}", "}"]))


def test_the_example_of_uses() -> None:
    assert doctest.testmod(alike).failed == 0


def test_classes_that_are_used_elsewhere_or_more_often_are_not_alike() -> None:
    uses = Uses({1, 2, 3, 4})
    for number in (1, 2, 3):
        uses.add("up", 1, (0, number))
    uses.add("up", 1, (4, 0))
    uses.add("up", 1, (0, 3))
    assert list(uses.alike()) == [[1, 2]]


def test_a_layer_that_lacks_few_of_the_places_of_others_is_alike() -> None:
    """The first layer of a training step needs no gradient of what it takes."""
    uses = Uses({1, 2, 3, 4})
    for number in (1, 2, 3, 4):
        for place in range(3 if number == 1 else 4):
            uses.add("layer", place, (0, number))
    uses.add("other", 0, (0, 4))
    uses.add("other", 1, (0, 4))
    assert list(uses.alike()) == [[1, 2, 3]]


def training(layers: int) -> Module:
    """A step of layers with experts: products with a batch dim of weights."""
    jax = pytest.importorskip("jax")
    from shardcore.jax import lower

    def loss(params: Any, x: Any) -> Any:
        for weights in params:
            hidden = jax.nn.relu(jax.numpy.einsum("bd,edf->ebf", x, weights["up"]))
            x = x + jax.numpy.einsum("ebf,efd->bd", hidden, weights["down"])
        return jax.numpy.mean(x**2)

    of = jax.ShapeDtypeStruct
    weights = {"up": of((6, 256, 1024), "float32"), "down": of((6, 1024, 256), "float32")}
    lowered = lower(jax.grad(loss), [weights] * layers, of((3072, 256), "float32"), mesh={"x": 1})
    return Module.parse(lowered.as_text())


@pytest.mark.parametrize("layers", [2, 3])
def test_a_training_step_without_paths_costs_what_it_costs_with_them(layers: int) -> None:
    plans = [
        shardcore.plan(module, CHIP, devices=12, seconds=60)
        for module in (training(layers), without_paths(training(layers)))
    ]
    assert plans[0].value == plans[1].value
    assert len(plans[0].specs) == len(plans[1].specs)


def test_classes_of_one_tensor_stay_apart() -> None:
    uses = Uses(range(6))
    for number in range(5):
        uses.add("layer", 0, (number, number + 1))
    uses.add("layer", 0, (5, 0))
    assert list(uses.alike()) == [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize("layers", [2, 3, 12])
def test_layers_of_any_number_are_two_annotations_at_most(layers: int) -> None:
    plan = shardcore.plan(blocks(layers), CHIP, "2GiB", mesh={"a": 2, "b": 4}, seconds=60)
    weights = [target for target in plan.specs if target.startswith(("%u", "%d"))]
    assert 1 <= len(weights) <= 2
    assert {len(listed(target)) for target in weights} == {layers}
    assert len(plan.annotations) == len(plan.specs)


def test_layers_whose_columns_are_the_rows_of_the_next_come_in_pairs() -> None:
    plan = shardcore.plan(chain(6), CHIP, "150MiB", mesh={"a": 4}, seconds=60)
    assert plan.kind == "tensor"
    assert set(plan.specs) <= {"%w0", "%w1, %w3", "%w2, %w4", "%w5"}
    assert len(plan.specs) > 1


def test_paths_make_no_difference_to_the_cost() -> None:
    plans = [
        shardcore.plan(module, CHIP, mesh={"a": 4}, seconds=60)
        for module in (residual(24), without_paths(residual(24)))
    ]
    assert plans[0].value == plans[1].value
    assert len(plans[0].specs) == len(plans[1].specs)


def test_a_list_of_many_names_is_shortened_in_the_table_only() -> None:
    plan = shardcore.plan(blocks(12), CHIP, "2GiB", mesh={"a": 2, "b": 4}, seconds=60)
    [target, *_] = [target for target in plan.specs if len(listed(target)) == 12]
    first, second, third, *_ = listed(target)
    assert f"{first}, {second}, {third}, ... 9 more" in str(plan)
    assert target in [row["target"] for row in plan.record()["annotations"]]
    session = blocks(12).session(mesh={"a": 2, "b": 4})
    session.set(dict(plan.specs))
    assert session.cost(CHIP).record() == plan.cost.record()
