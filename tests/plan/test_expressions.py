"""Which values of a program a line of the user's constrains, and which together."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import shardcore.jax  # noqa: E402
from shardcore import Module  # noqa: E402
from shardcore._core import Value  # noqa: E402
from shardcore.plan.expressions import Expressions, Line, role  # noqa: E402

X, W, V = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((8, 4), (4, 4), (4, 6)))


def lowered(function: Callable[..., Any], *given: Any) -> Module:
    return shardcore.jax.lower(function, *given, platform="cpu").module


def made(module: Module, function: Callable[..., Any], code: str, op: str) -> list[Value]:
    """The results of the ops ``op`` at the place where ``code`` begins in ``function``."""
    lines, start = inspect.getsourcelines(function)
    [(number, line)] = [(at, text) for at, text in enumerate(lines, start) if code in text]
    place = f":{number}:{line.index(code)}"
    return [
        result
        for each in module.ops()
        if each.name.rpartition(".")[2] == op and (each.location or "").endswith(place)
        for result in each.results
    ]


def line(module: Module, value: Value) -> Line:
    found = Expressions(module).line(value)
    assert found is not None
    return found


def dense(x: Any, w: Any) -> Any:
    return x @ w + 1


def test_the_value_of_an_expression_stands_for_what_is_computed_on_the_way() -> None:
    def step(x: Any, w: Any, v: Any) -> Any:
        return jnp.tanh(dense(jnp.tanh(dense(x, w)), v))

    module = lowered(step, X, W, V)
    products = made(module, dense, "x @ w", "dot_general")
    sums = made(module, dense, "x @ w", "add")
    assert len(products) == len(sums) == 2
    for value in (*products, *sums):
        assert line(module, value).values == tuple(sums)
    found = role([line(module, sums[0])], (0, 1), "begun")
    assert (found.shape, found.name) == ((8, 2), ", ".join(each.name for each in sums))


def test_what_has_another_shape_than_the_value_has_no_line() -> None:
    def step(x: Any, w: Any) -> Any:
        return jnp.tanh(jnp.sum(x @ w, axis=0) * 2)

    module = lowered(step, X, W)
    [product] = made(module, step, "x @ w", "dot_general")
    [total] = made(module, step, "jnp.sum(", "reduce")
    assert line(module, product).values == (product,)
    assert line(module, total).op == "stablehlo.multiply"

    def mean(x: Any) -> Any:
        return jnp.tanh(jnp.var(x, axis=0))

    module = lowered(mean, X)
    inner = [value for value in module.values() if value.op == "stablehlo.subtract"]
    assert inner
    assert {Expressions(module).line(value) for value in inner if value.shape == X.shape} == {None}


def test_what_a_call_computes_is_its_result() -> None:
    def step(x: Any) -> Any:
        chosen = jnp.where(x > 0, x, -1e9)
        return chosen * 2

    module = lowered(step, X)
    [value] = made(module, step, "jnp.where(", "call")
    [filled] = made(module, step, "jnp.where(", "select")
    assert line(module, filled).values == (value,)


def squash(x: Any) -> Any:
    return jnp.tanh(x)


def test_calls_of_one_function_are_expressions_of_their_own() -> None:
    """What a function gives to one of those that call it can be constrained where it is called."""

    def step(x: Any, w: Any, v: Any) -> Any:
        y = squash(dense(x, w))
        return squash(dense(y, v))

    module = lowered(step, X, W, V)
    expressions = Expressions(module)
    sums = made(module, dense, "x @ w", "add")
    codes = ("dense(x, w)", "dense(y, v)")
    for value, code in zip(sums, codes, strict=True):
        assert line(module, value).values == tuple(sums)
        [found] = [each for each in expressions.lines(value) if each.values == (value,)]
        assert found == expressions.own_line(value, {value.shape})
        assert found.is_call
        lines, start = inspect.getsourcelines(step)
        [(at, text)] = [(n, text) for n, text in enumerate(lines, start) if code in text]
        assert found.location.endswith(f":{at}:{text.index(code)}")
    # The shapes of both are asked for.
    every = {each.shape for each in sums}
    assert expressions.own_line(sums[0], every) == line(module, sums[0])


def test_gradients_of_one_call_of_several() -> None:
    def loss(w: Any, v: Any, x: Any) -> Any:
        y = squash(x @ w)
        z = squash(y @ v)
        return jnp.sum(z * z)

    module = lowered(jax.grad(loss, (0, 1)), W, V, X)
    expressions = Expressions(module)
    [_, *products] = made(module, loss, "y @ v", "dot_general")
    [gradient] = [each for each in products if each.shape == X.shape]
    # Both gradients of what is squashed are constrained at its line.
    assert {each.shape for each in line(module, gradient).values} == {(8, 4), (8, 6)}
    found = expressions.own_line(gradient, {gradient.shape})
    assert found is not None
    assert (found.values, found.is_gradient, found.is_call) == ((gradient,), True, True)


def test_lines_are_found_again_in_a_program_that_computes_anew() -> None:
    def layer(x: Any, w: Any, v: Any) -> Any:
        y = squash(dense(x, w))
        return squash(dense(y, v))

    def loss(w: Any, v: Any, x: Any, remat: bool) -> Any:
        run = jax.checkpoint(layer) if remat else layer
        return jnp.sum(run(x, w, v) ** 2)

    one, other = (
        lowered(jax.grad(lambda w, v, x, remat=remat: loss(w, v, x, remat), (0, 1)), W, V, X)
        for remat in (False, True)
    )
    first, second = Expressions(one), Expressions(other)
    [value, _] = made(one, dense, "x @ w", "add")
    found = first.own_line(value, {value.shape})
    assert found is not None
    again = second.again(found)
    assert len(again) == 2
    assert {each.shape for each in again} == {value.shape}
    gradients = made(one, dense, "x @ w", "dot_general")[2:]
    [gradient] = [each for each in gradients if each.shape == X.shape]
    found = first.own_line(gradient, {gradient.shape})
    assert found is not None
    assert found.is_gradient
    [same] = second.again(found)
    assert same.shape == gradient.shape


def test_gradients_are_those_of_the_expression_whose_ops_take_them() -> None:
    def loss(w: Any, v: Any, x: Any) -> Any:
        y = x @ w
        z = y @ v
        return jnp.sum(z * z)

    module = lowered(jax.grad(loss, (0, 1)), W, V, X)
    [_, *products] = made(module, loss, "y @ v", "dot_general")
    [gradient] = [each for each in products if each.shape == X.shape]
    found = line(module, gradient)
    assert (found.values, found.is_gradient) == ((gradient,), True)
    assert found.location == made(module, loss, "x @ w", "dot_general")[0].location
    # The gradient of a parameter is a result, which is sharded as one.
    [result] = made(module, loss, "y @ v", "transpose")
    assert Expressions(module).line(result) is None


def test_values_that_are_computed_anew_are_constrained_as_well() -> None:
    def layer(x: Any, w: Any) -> Any:
        y = jnp.tanh(x @ w)
        return jnp.sin(y @ w)

    def loss(w: Any, x: Any) -> Any:
        return jnp.sum(jax.checkpoint(layer)(x, w))

    module = lowered(jax.value_and_grad(loss), W, X)
    once, again = made(module, layer, "jnp.tanh(", "tanh")
    for value in (once, again):
        found = line(module, value)
        assert (found.values, found.is_gradient) == ((once, again), False)


def test_values_of_mapped_code_have_other_dims_there() -> None:
    def one(x: Any) -> Any:
        y = jnp.tanh(x)
        return jnp.sin(y)

    module = lowered(jax.vmap(one), X)
    [value] = made(module, one, "jnp.tanh(", "tanh")
    assert Expressions(module).line(value) is None


def test_values_without_a_place_are_constrained_alone() -> None:
    module = Module.parse("""
    func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.tanh %arg0 : tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    argument, value = module.values()
    assert line(module, value) == Line("", "stablehlo.tanh", (value,), False)
    assert Expressions(module).line(argument) is None
