"""XLA's own compilers, where they are installed; `make test-oracle` installs all."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest
import shardcore
from shardcore.calculus.hardware import hardware
from shardcore.xla import against, compile_for, target_of
from shardcore.xla.compile_runner import PACKAGES
from shardcore.xla.gpus import GPUS
from shardcore.xla.targets import TPUS

from tests.xla.recorded import CHIPS, cost, replay

CHIPS_OF = {"tpu": [*TPUS], "cuda": [*GPUS]}
SMALL = """
sdy.mesh @mesh = <["x"=COUNT]>
func.func public @main(%a: tensor<96x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<32x16xf32>) -> tensor<16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<96x32xf32>, tensor<32x16xf32>) -> tensor<96x16xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<96x16xf32>, tensor<f32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}
"""


def is_installed(platform: str) -> bool:
    """Whether the compiler of a platform is there."""
    try:
        for package in PACKAGES[platform].values():
            version(package)
    except PackageNotFoundError:
        return False
    return True


def needs(platform: str) -> pytest.MarkDecorator:
    reason = "make test-oracle installs it" if platform != "cpu" else "jax needs Python 3.11"
    return pytest.mark.skipif(not is_installed(platform), reason=reason)


def small(count: int) -> shardcore.Result:
    return shardcore.Module.parse(SMALL.replace("COUNT", str(count))).propagate()


@needs("cpu")
@pytest.mark.parametrize("count", [1, 6])
def test_hosts(count: int) -> None:
    found = against(small(count).cost("tpu-v5e", compiler="xla-cpu"))
    rows = {row.name: row for row in found.figures}
    for figure in ("argument_bytes", "output_bytes", "alias_bytes", "flops"):
        assert rows[figure].ratio == 1, figure
    sent = [(row.name, row.ours, row.theirs) for row in found.sent]
    assert sent == ([("all_reduce", 64, 64)] if count > 1 else [])
    assert found.compiled.hlo.startswith("HloModule")


@needs("cpu")
def test_a_program_that_xla_refuses() -> None:
    target = target_of("xla-cpu", hardware("h100"), 1)
    with pytest.raises(shardcore.CompilerError) as raised:
        compile_for(target, "func.func @main() { return 1 }")
    assert raised.value.code == "not-compiled"
    assert "refuses the program" in raised.value.message


@needs("cpu")
def test_options_reach_xla() -> None:
    target = target_of("xla-cpu", hardware("h100"), 1)
    with pytest.raises(shardcore.CompilerError, match="xla_no_such_flag"):
        compile_for(target, SMALL.replace("COUNT", "1"), options={"xla_no_such_flag": 1})


@pytest.mark.parametrize(
    ("platform", "chip"),
    [
        pytest.param(platform, chip, marks=needs(platform))
        for platform, chips in CHIPS_OF.items()
        for chip in chips
    ],
)
def test_every_chip_compiles(platform: str, chip: str) -> None:
    found = against(small(8).cost(chip))
    assert [(row.name, row.ours, row.theirs) for row in found.sent] == [("all_reduce", 64, 64)]
    assert next(row for row in found.figures if row.name == "argument_bytes").ratio == 1
    assert (found.compiled.heap_bytes is None) == (platform == "cuda")


@pytest.mark.parametrize(
    "chip", [pytest.param(chip, marks=needs("tpu" if "tpu" in chip else "cuda")) for chip in CHIPS]
)
def test_what_is_recorded_is_what_is_compiled(chip: str) -> None:
    ours = cost(chip)
    with replay(chip):
        kept = against(ours)
    assert against(ours).record() == kept.record()


@needs("tpu")
@pytest.mark.parametrize("count", [1, 3, 32])
def test_slices_of_other_sizes(count: int) -> None:
    found = against(small(count).cost("tpu-v5e"))
    assert next(row for row in found.figures if row.name == "argument_bytes").ratio == 1
