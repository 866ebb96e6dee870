"""What `check` takes as a sharding: text in each notation, and the objects that have one."""

from __future__ import annotations

import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore import ExpectationError, Module, Result


@pytest.fixture(scope="module")
def result() -> Result:
    return Module.parse("""
    sdy.mesh @mesh = <["x"=4, "y"=2]>
    func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
        -> tensor<8x8xf32> {
      %0 = stablehlo.negate %a : tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }""").propagate()


def test_shardings_themselves(result: Result) -> None:
    mesh = AbstractMesh((4, 2), ("x", "y"))
    own = result["%0"].sharding
    for right in (P("x"), P("x", None), P("x", P.UNCONSTRAINED), NamedSharding(mesh, P("x")), own):
        assert result.check({"shardings": {"%0": right}}), right
    for wrong in (P(), P("y"), P(None, "x"), P(("x", "y"))):
        assert not result.check({"shardings": {"%0": wrong}}), wrong
    assert "- P('y',)" in str(result.check({"shardings": {"%0": P("y")}}))


def test_the_text_of_a_whole_sharding(result: Result) -> None:
    own = result["%0"].sharding
    for right in (str(own), f"#sdy.sharding{own}", '<mesh<["x"=4]>, [{"x"}, {?}]>'):
        assert result.check({"shardings": {"%0": right}}), right
    assert not result.check({"shardings": {"%0": '<@mesh, [{"y"}, {}]>'}})


def test_what_is_none(result: Result) -> None:
    for value in (3, None, ["x", None], "x", "<@mesh, [{x}]>"):
        with pytest.raises(ExpectationError, match="is no sharding"):
            result.check({"shardings": {"%0": value}})
