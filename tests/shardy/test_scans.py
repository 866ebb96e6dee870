"""Scans of CHLO: which operands are inputs, and which are carried, is what their syntax says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shardcore import Module, hlo

from tests.shardy import reference
from tests.shardy.verification.compare import compare
from tests.shardy.xla import compiled, sent

LONG, SHORT = "tensor<4xf32>", "tensor<f32>"


def scan(inputs: str, inits: str, operands: str, args: str, returned: str, results: str) -> str:
    """A scan of two operands and results; types are letters, long or short."""

    def types(letters: str) -> str:
        return ", ".join(LONG if letter == "l" else SHORT for letter in letters)

    first, second = types(args).split(", ")
    return f"""func.func @f(%x: {LONG}, %c: {LONG}, %d: {SHORT}) {{
  %0:2 = chlo.scan({inputs}) inits ({inits}) dimension=0 {{
  ^bb0(%i: {first}, %j: {second}):
    stablehlo.return %i, %j : {types(returned)}
  }} : ({types(operands)}) -> ({types(results)})
  return
}}"""


SCANS = {
    "two inputs": scan("%x, %c", "", "ll", "ss", "ss", "ll"),
    "an input and an initial value": scan("%x", "%d", "ls", "ss", "ss", "ls"),
    "an initial value that looks like an input": scan("%x", "%c", "ll", "ss", "ss", "ls"),
    "an input without the dim": scan("%x, %d", "", "ls", "ss", "ss", "ls"),
    "neither inputs nor outputs": scan("", "%x, %d", "ls", "ls", "ls", "ls"),
    "initial values that look like inputs": scan("", "%x, %c", "ll", "ss", "ss", "ss"),
}


def test_scans() -> None:
    for name, answer in zip(SCANS, compare(list(SCANS.values())), strict=True):
        is_right = name in ("two inputs", "an input and an initial value")
        verdict = "both accept" if is_right else "both refuse alike"
        assert answer.verdict == verdict, (name, answer)


SUMS = """\
module @sums attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func public @main(
    %x: tensor<8x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}, {"b"}]>},
    %c: tensor<8x32xf32>) -> (tensor<8x16x32xf32>, tensor<8x32xf32>) {
  %0 = stablehlo.cosine %x : tensor<8x16x32xf32>
  %1:2 = chlo.scan(%0) inits (%c) dimension=1 attributes {MORE} {
  ^bb0(%p: tensor<8x32xf32>, %q: tensor<8x32xf32>):
    %3 = stablehlo.add %p, %q : tensor<8x32xf32>
    stablehlo.return %3, %3 : tensor<8x32xf32>, tensor<8x32xf32>
  } : (tensor<8x16x32xf32>, tensor<8x32xf32>) -> (tensor<8x16x32xf32>, tensor<8x32xf32>)
  %2 = stablehlo.sine %1#0 : tensor<8x16x32xf32>
  return %2, %1#1 : tensor<8x16x32xf32>, tensor<8x32xf32>
}
}"""
# Sharded along the dim that is scanned.
ALONG = SUMS.replace('[{"a"}, {?}, {"b"}]', '[{?}, {"a", "b"}, {?}]')
PROGRAMS = {
    "in order": SUMS.replace("MORE", "is_reverse = true"),
    "associative": SUMS.replace("MORE", "is_associative = true, is_reverse = false"),
    "along the dim in order": ALONG.replace("MORE", "is_associative = false"),
    "along the dim": ALONG.replace("MORE", "is_associative = true"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_scans_are_sharded_and_partitioned_as_in_xla(name: str, tmp_path: Path) -> None:
    # XLA for hosts cannot compile the windows that this pass makes of associative scans.
    off = "associative-scan-rewriter"
    compiled.executable(
        PROGRAMS[name],
        xla_dump_to=str(tmp_path),
        xla_dump_hlo_as_text=True,
        xla_dump_hlo_pass_re="shardy|spmd-partitioning",
        xla_dump_emitter_re="none",
        xla_disable_hlo_passes=off,
        **compiled.SIMPLE_EMITTER,
    )
    [before] = tmp_path.glob("**/*before_propagation.mlir")
    [after] = tmp_path.glob("**/*after_propagation.mlir")
    [hlo] = tmp_path.glob("*after_spmd-partitioning*.txt")

    def shardings(module: Module) -> list[tuple[str, str]]:
        return [(value.op, str(value.sharding)) for value in module.values()]

    ours = Module.from_file(before).propagate(legalize_chlo=True).module
    assert shardings(ours) == shardings(Module.from_file(after))
    result = Module.parse(PROGRAMS[name]).propagate(legalize_chlo=True)
    partitioned = result.partition(policy="xla")
    assert partitioned.sent_bytes == sum(sent.count(hlo.read_text(), 4).values())


def test_sharded_scans_are_printed_for_the_reference() -> None:
    ours = str(Module.parse(PROGRAMS["associative"]).propagate(legalize_chlo=True).module)
    assert reference.canonical(ours).count("chlo.scan") == 1


HLO = """\
HloModule sums, entry_computation_layout={(f32[8,4]{1,0}, f32[4]{0})->f32[8,4]{1,0}}
body {
  p = f32[4]{0} parameter(0)
  q = f32[4]{0} parameter(1)
  s = f32[4]{0} add(p, q)
  ROOT both = (f32[4]{0}, f32[4]{0}) tuple(s, s)
}
ENTRY main {
  x = f32[8,4]{1,0} parameter(0)
  c = f32[4]{0} parameter(1)
  y = (f32[8,4]{1,0}, f32[4]{0}) scan(x, c), dimensions={0}, num_carries=1, to_apply=body
  ROOT sums = f32[8,4]{1,0} get-tuple-element(y), index=0
}
"""


def test_scans_of_hlo_are_those_of_chlo() -> None:
    module = hlo.read(HLO)
    assert [op.name for op in module.ops() if "scan" in op.name] == ["chlo.scan"]
    assert module.propagate().cost().flops == 8 * 4
    x, start = np.arange(32, dtype=np.float32).reshape(8, 4), np.ones(4, np.float32)
    assert np.array_equal(module.simulate(x, start)[0], x.cumsum(axis=0) + 1)
    assert " scan(" in hlo.text(module)
