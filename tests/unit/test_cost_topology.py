"""A topology and a mapping are looked at even where no collective is timed."""

from __future__ import annotations

from typing import Any

import pytest
import shardcore
from shardcore import Module, ShardcoreError

WITHOUT_COLLECTIVE = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.abs %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
WITHOUT_MESH = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"

WRONG: list[dict[str, Any]] = [
    {"topology": "0x0"},
    {"topology": ""},
    {"topology": "4x-2"},
    {"topology": (0, 0)},
    {"topology": (-4, -2)},
    {"topology": [10**5000]},
    {"topology": []},
    {"topology": "4x2", "mapping": "z=0"},
    {"topology": "4x2", "mapping": {"z": (0,)}},
    {"mapping": "x=0"},
]


@pytest.mark.parametrize("text", [WITHOUT_COLLECTIVE, WITHOUT_MESH])
@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("hardware", ["tpu-v5p", "h100"])
def test_what_makes_no_sense_is_refused(text: str, how: dict[str, Any], hardware: str) -> None:
    with pytest.raises(ShardcoreError) as caught:
        shardcore.cost(Module.parse(text), hardware, **how)
    assert caught.value.code in ("invalid-topology", "unknown-axis")


def test_what_does_not_fit_the_mesh_is_refused() -> None:
    module = Module.parse(WITHOUT_COLLECTIVE)
    for how in ({"topology": "3x3"}, {"topology": "4x2", "mapping": "x=1 y=0"}):
        with pytest.raises(ShardcoreError):
            shardcore.cost(module, "tpu-v5p", **how)
    assert shardcore.cost(module, "tpu-v5p", topology="4x2", mapping="x=0 y=1").collectives == ()
    assert shardcore.cost(module, "tpu-v5p", topology=iter((4, 2))).collectives == ()


def test_a_program_without_mesh_takes_any_topology() -> None:
    assert shardcore.cost(Module.parse(WITHOUT_MESH), "tpu-v5p", topology="4x4").collectives == ()


def test_one_mesh_of_several_lies_on_the_topology() -> None:
    text = WITHOUT_COLLECTIVE.replace("sdy.mesh", 'sdy.mesh @other = <["z"=3]>\nsdy.mesh', 1)
    text = text.replace(
        "%0 = ", '%1 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>\n%0 = '
    )
    cost = shardcore.cost(Module.parse(text), "tpu-v5p", topology="4x2")
    assert cost.notes == ()
