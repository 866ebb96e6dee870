"""Locations nested a hundred thousand levels deep, in the text and through aliases."""

from __future__ import annotations

import pytest
from shardcore import Module, ShardcoreError

NESTED = {
    "callees": lambda n: "callsite(" * n + '"x.py":1:2' + ' at "y.py":3:4)' * n,
    "callers": lambda n: 'callsite("x.py":1:2 at ' * n + '"y.py":3:4' + ")" * n,
    "fused": lambda n: "fused[" * n + '"x.py":1:2' + "]" * n,
    "names": lambda n: '"n"(' * n + '"x.py":1:2' + ")" * n,
}


def program(location: str, aliases: str = "") -> str:
    return f"""{aliases}func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = stablehlo.abs %a : tensor<4xf32> loc({location})
  return %0 : tensor<4xf32>
}}
"""


def location_of_abs(text: str) -> str | None:
    module = Module.parse(text)
    module.propagate()
    assert Module.parse(str(module)).values()
    [_, value] = module.values()
    return value.location


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("depth", [1, 1_000, 100_000])
def test_nested_locations(kind: str, depth: int) -> None:
    assert location_of_abs(program(NESTED[kind](depth))) == "x.py:1:2"


@pytest.mark.parametrize("depth", [1, 1_000, 100_000])
def test_locations_nested_through_aliases(depth: int) -> None:
    aliases = ['#l0 = loc("x.py":1:2)\n']
    aliases += [f"#l{n} = loc(callsite(#l{n - 1} at #l{n - 1}))\n" for n in range(1, depth)]
    assert location_of_abs(program(f"#l{depth - 1}", "".join(aliases))) == "x.py:1:2"


def test_names_that_double_at_each_level() -> None:
    aliases = ['#l0 = loc("name")\n']
    aliases += [f"#l{n} = loc(fused[#l{n - 1}, #l{n - 1}])\n" for n in range(1, 200)]
    assert location_of_abs(program("#l199", "".join(aliases))) == "name"


def test_a_location_that_is_never_defined() -> None:
    with pytest.raises(ShardcoreError) as caught:
        Module.parse(program("#nowhere"))
    error = caught.value
    assert error.message == "operation location alias was never defined"
    assert (error.line, error.column) == (2, 45)
    assert error.hint


@pytest.mark.parametrize("blob", ['"0x03000000"', '"0x0g"', "1"])
def test_a_resource_that_is_no_bytes(blob: str) -> None:
    with pytest.raises(ShardcoreError) as caught:
        Module.parse(
            program("unknown") + f"{{-# dialect_resources: {{ builtin: {{ x: {blob} }} }} #-}}"
        )
    assert "expected hex string blob for key 'x'" in caught.value.message
    assert caught.value.line == 5
    assert caught.value.hint
