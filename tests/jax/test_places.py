"""Source lines of a JAX function and the values they made."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore.jax
from jax.sharding import PartitionSpec as P
from shardcore import LocationError

X = jax.ShapeDtypeStruct((64, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 512), jnp.float32)


def layer(x: Any, w: Any) -> Any:
    y = x @ w
    return jnp.tanh(y)


def model(x: Any, w: Any) -> Any:
    for _ in range(2):
        x = layer(x, w)
    return jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, length=3)[0]


def line_of(fn: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(fn)
    [number] = [number for number, line in enumerate(lines) if text in line]
    return first + number


@pytest.fixture(scope="module")
def result() -> shardcore.jax.JaxResult:
    lowered = shardcore.jax.lower(
        model, X, W, mesh={"data": 2, "model": 4}, in_shardings=(P("data"), P(None, "model"))
    )
    return lowered.propagate()


def ops_at(result: shardcore.jax.JaxResult, line: int) -> list[str]:
    return [str(value.op) for value in result.at(f"test_places.py:{line}")]


def test_a_line_has_the_values_it_made(result: shardcore.jax.JaxResult) -> None:
    values = result.at(f"jax/test_places.py:{line_of(layer, 'x @ w')}")
    assert [value.op for value in values] == ["stablehlo.dot_general"] * 2
    assert {value.shape for value in values} == {(64, 512)}
    assert [str(value.sharding) for value in values] == ['<@mesh, [{"data"}, {"model"}]>'] * 2


def test_a_call_has_what_it_called(result: shardcore.jax.JaxResult) -> None:
    ops = ops_at(result, line_of(model, "layer(x, w)"))
    assert ops == ["stablehlo.dot_general", "stablehlo.tanh"] * 2


def test_loops_are_looked_into(result: shardcore.jax.JaxResult) -> None:
    line = line_of(model, "jnp.sin")
    assert "stablehlo.sine" in ops_at(result, line)
    [sine] = [v for v in result.at(f"test_places.py:{line}") if v.op == "stablehlo.sine"]
    assert str(sine.sharding) == '<@mesh, [{"data"}, {"model"}]>'


def test_a_traceback_is_the_users_own(result: shardcore.jax.JaxResult) -> None:
    [first, *_] = result.at(f"test_places.py:{line_of(layer, 'x @ w')}")
    lines = [frame.rsplit(":", 2)[:2] for frame in first.traceback]
    assert lines[0] == [__file__, str(line_of(layer, "x @ w"))]
    assert lines[1] == [__file__, str(line_of(model, "layer(x, w)"))]
    assert not any("shardcore/jax" in frame for frame in first.traceback)


def test_all_lines_at_once(result: shardcore.jax.JaxResult) -> None:
    lines = result.by_line()
    place = f"{__file__}:{line_of(layer, 'jnp.tanh')}"
    assert [value.op for value in lines[place]] == ["stablehlo.tanh"] * 2


def test_a_line_that_made_nothing_names_those_near(result: shardcore.jax.JaxResult) -> None:
    with pytest.raises(LocationError) as caught:
        result.at(f"test_places.py:{line_of(layer, 'def layer')}")
    assert str(line_of(layer, "x @ w")) in str(caught.value.hint)
    with pytest.raises(LocationError, match=r'did you mean "test_places.py"'):
        result.at("test_place.py:3")


@pytest.mark.parametrize(
    "helper",
    [
        lambda x: jnp.linalg.norm(x),
        lambda x: jax.nn.one_hot(jnp.argmax(x, axis=1), 8),
        lambda x: jnp.tril(x[:, :64]),
        lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1),
        lambda x: jnp.var(x, axis=0),
    ],
)
def test_what_helpers_of_jax_make_comes_from_the_line_that_calls_them(helper: Any) -> None:
    lowered = shardcore.jax.lower(helper, X, mesh={"data": 8}, in_shardings=P("data"))
    result = lowered.propagate()
    line = inspect.getsourcelines(helper)[1]
    made = {(value.function, value.name) for value in result.at(f"test_places.py:{line}")}
    # JAX gives a literal that main hands to a helper the place of the jit.
    literals = {("main", value.name) for value in result.values() if value.op == "sdy.constant"}
    everything = {(value.function, value.name) for value in result.values() if value.op} - literals
    assert everything <= made
    cost = result.cost()
    places = [row.cause_location for row in cost.collectives] + [row.location for row in cost.ops]
    assert places
    assert all(f"test_places.py:{line}:" in str(place) for place in places)
