"""Where shardings come from: origins and propagation edges agree with the reference.

The reference looks origins up in tables without checking that they are there: where a sharding
stands on an op that is no origin, it reads what happens to lie in memory, and where an op was
erased, it writes there. Such programs are only asked of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import shardcore
from hypothesis import given

from benches.every import ALL
from tests.deep import IS_DEEP
from tests.oracle.graph import Program
from tests.oracle.printing import to_mlir
from tests.property.programs import Features, programs
from tests.shardy import reference, wide_programs
from tests.shardy.diff import explain, ours
from tests.shardy.programs import registry
from tests.shardy.worker import Worker

MESH = 'sdy.mesh @m = <["x"=2, "y"=4, "z"=6]>\n'
ORIGINS = "debug-sharding-origins=true"
EDGES = "debug-propagation-edge-sharding=true"
SINK = f"func.func(sdy-sink-data-flow-edges{{sink-{EDGES} sink-{ORIGINS}}})"
PROPAGATIONS = [
    "sdy-basic-propagate{*}",
    "sdy-aggressive-propagate{*}",
    "sdy-aggressive-propagate{* propagation-strategy=basic-then-aggressive}",
    "sdy-op-priority-propagate{*}",
    "sdy-op-priority-propagate{* conservative-propagation=true}",
    "sdy-user-priority-propagate{*}",
    "sdy-user-priority-propagate{* run-op-priority-propagation=false}",
]

CASES = {
    "axes split and merge at reshapes": """
        func.func @main(%a: tensor<12x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"z", ?}, {?}]>})
            -> tensor<96xf32> {
          %0 = stablehlo.reshape %a : (tensor<12x8xf32>) -> tensor<2x6x8xf32>
          %1 = stablehlo.reshape %0 : (tensor<2x6x8xf32>) -> tensor<96xf32>
          %2 = stablehlo.reshape %1 : (tensor<96xf32>) -> tensor<32x3xf32>
          return %1 : tensor<96xf32>
        }""",
    "sub-axes grow": """
        func.func @main(
            %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"y":(1)2, ?}, {?}]>},
            %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"y", ?}, {"x"}]>})
            -> (tensor<64xf32>, tensor<8x8xf32>) {
          %0 = stablehlo.add %a, %a : tensor<8x8xf32>
          %1 = stablehlo.add %0, %b : tensor<8x8xf32>
          %2 = stablehlo.reshape %1 : (tensor<8x8xf32>) -> tensor<64xf32>
          return %2, %0 : tensor<64xf32>, tensor<8x8xf32>
        }""",
    "a value is returned twice": """
        func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", ?}, {?}]>},
            %b: tensor<8x8xf32>) -> (tensor<8x8xf32>,
            tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{?}, {"y", ?}]>}, tensor<8x8xf32>) {
          %0 = stablehlo.add %a, %b : tensor<8x8xf32>
          return %0, %0, %a : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
        }""",
    "priorities": """
        func.func @main(
            %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", ?}p1, {"y", ?}p0]>},
            %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"y", ?}, {?}]>})
            -> tensor<8x8xf32> {
          %0 = stablehlo.add %a, %b : tensor<8x8xf32>
          %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0]
            : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
          return %1 : tensor<8x8xf32>
        }""",
    "an op has many results": """
        func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", ?}, {?}]>},
            %b: tensor<8x8xi32> {sdy.sharding = #sdy.sharding<@m, [{?}, {"y", ?}]>})
            -> (tensor<8x8xf32>, tensor<8x8xi32>) {
          %0:2 = "stablehlo.sort"(%a, %b) ({
          ^bb0(%c: tensor<f32>, %d: tensor<f32>, %e: tensor<i32>, %f: tensor<i32>):
            %p = stablehlo.compare GT, %c, %d : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %p : tensor<i1>
          }) {dimension = 0 : i64}
            : (tensor<8x8xf32>, tensor<8x8xi32>) -> (tensor<8x8xf32>, tensor<8x8xi32>)
          return %0#0, %0#1 : tensor<8x8xf32>, tensor<8x8xi32>
        }""",
    "branches": """
        func.func @main(%a: tensor<8x8xf32>, %i: tensor<i32>)
            -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"y":(2)2, ?}, {?}]>}) {
          %0 = "stablehlo.case"(%i) ({
            %c = stablehlo.add %a, %a : tensor<8x8xf32>
            stablehlo.return %c : tensor<8x8xf32>
          }, {
            %c = stablehlo.negate %a : tensor<8x8xf32>
            %d = sdy.sharding_constraint %c <@m, [{?}, {"x"}]> : tensor<8x8xf32>
            stablehlo.return %d : tensor<8x8xf32>
          }) : (tensor<i32>) -> tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }""",
    "a loop": """
        func.func @main(%a: tensor<8x8xf32>, %b: tensor<i32>) -> tensor<8x8xf32> {
          %0:2 = stablehlo.while(%i = %a, %j = %b) : tensor<8x8xf32>, tensor<i32> cond {
            %c = stablehlo.compare LT, %j, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1>
          } do {
            %k = stablehlo.add %i, %i : tensor<8x8xf32>
            %l = sdy.sharding_constraint %k <@m, [{"x"}, {?}]> : tensor<8x8xf32>
            stablehlo.return %l, %j : tensor<8x8xf32>, tensor<i32>
          }
          return %0#0 : tensor<8x8xf32>
        }""",
    "manual computations, one in another": """
        func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
          %0 = stablehlo.negate %a : tensor<8x8xf32>
          %1 = sdy.manual_computation(%0) in_shardings=[<@m, [{"x"}, {"z", ?}]>]
              out_shardings=[<@m, [{"x"}, {?}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
            %2 = sdy.manual_computation(%b) in_shardings=[<@m, [{?}, {"y"}]>]
                out_shardings=[<@m, [{?}, {"y"}]>] manual_axes={"y"} (%c: tensor<4x2xf32>) {
              %3 = stablehlo.add %c, %c : tensor<4x2xf32>
              sdy.return %3 : tensor<4x2xf32>
            } : (tensor<4x8xf32>) -> tensor<4x8xf32>
            %4 = sdy.sharding_constraint %2 <@m, [{}, {"y"}]> : tensor<4x8xf32>
            sdy.return %4 : tensor<4x8xf32>
          } : (tensor<8x8xf32>) -> tensor<8x8xf32>
          return %1 : tensor<8x8xf32>
        }""",
    "constraints on one value": """
        func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{?}, {"y", ?}]>})
            -> tensor<8x8xf32> {
          %0 = sdy.sharding_constraint %a <@m, [{"x"}, {}]> : tensor<8x8xf32>
          %1 = stablehlo.add %a, %0 : tensor<8x8xf32>
          %2 = sdy.sharding_constraint %1 <@m, [{}, {"z"}]> : tensor<8x8xf32>
          %3 = sdy.sharding_constraint %2 <@m, [{"y", ?}, {?}]> : tensor<8x8xf32>
          return %3 : tensor<8x8xf32>
        }""",
    "more operands than are told apart": """
        func.func @main(%a: tensor<1x8xf32> {sdy.sharding = #sdy.sharding<@m, [{?}, {"x", ?}]>},
            %b: tensor<1x8xf32> {sdy.sharding = #sdy.sharding<@m, [{?}, {"x", "y", ?}]>},
            %c: tensor<1x8xf32>) -> tensor<20x8xf32> {
          %0 = "stablehlo.concatenate"(OPERANDS) {dimension = 0 : i64}
            : (TYPES) -> tensor<20x8xf32>
          return %0 : tensor<20x8xf32>
        }""".replace("OPERANDS", ", ".join(["%c, %a, %b, %c"] * 5)).replace(
        "TYPES", ", ".join(["tensor<1x8xf32>"] * 20)
    ),
}
every_case = pytest.mark.parametrize("name", CASES)

# Shardings from nowhere, erased ops, constraints without a number: the reference may die of each.
UNSAFE = {
    "a sharding that is on an op from the start": """
        func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
          %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>}
            : tensor<8xf32>
          %1 = stablehlo.negate %0 : tensor<8xf32>
          return %1 : tensor<8xf32>
        }""",
    "a dead op": """
        func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>})
            -> tensor<8xf32> {
          %0 = stablehlo.add %a, %a : tensor<8xf32>
          %1 = stablehlo.negate %0 : tensor<8xf32>
          return %a : tensor<8xf32>
        }""",
    "a sharding group": """
        func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x", ?}]>},
            %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
          sdy.sharding_group %a group_id=0 : tensor<8xf32>
          sdy.sharding_group %b group_id=0 : tensor<8xf32>
          %0 = stablehlo.add %b, %b : tensor<8xf32>
          return %0, %a : tensor<8xf32>, tensor<8xf32>
        }""",
    "a constraint made by the pass": """
        func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
          %0 = stablehlo.optimization_barrier %a : tensor<8xf32>
          %1 = sdy.manual_computation(%0) in_shardings=[<@m, [{"x"}]>]
              out_shardings=[<@m, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
            sdy.return %b : tensor<4xf32>
          } : (tensor<8xf32>) -> tensor<8xf32>
          return %1 : tensor<8xf32>
        }""",
}


def pipeline(*passes: str) -> str:
    """These passes on a module, each `*` being the options that record everything."""
    return reference.join_passes([one.replace("*", f"{EDGES} {ORIGINS}") for one in passes])


# Ops with many tensors, of which few have the same factors or the same shardings, or many have.
WIDE_FAMILIES = [
    "barrier",
    "carried",
    "concatenate",
    "own-factors",
    "own-factors-backward",
    "reduce",
    "results-of-one",
    "rotating",
    "shared-factor",
]


FLOW = r'\{"[^"]*"(?::\(\d+\)\d+)? = \w+-\d+ -> \[[^]]*\]\}'
FLOWS = re.compile(rf"{FLOW}(?:, {FLOW})+")


def in_order(text: str) -> str:
    """`text` with the flows of each step sorted.

    The reference sorts them by axis only; several sources of one axis come in the order of their
    addresses in memory.
    """
    return FLOWS.sub(lambda match: ", ".join(sorted(re.findall(FLOW, match[0]))), text)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.close()


def assert_agree(text: str, passes: str, worker: Worker | None = None) -> None:
    """Both say the same, or the reference does not survive the question, asked of `worker`."""
    run = worker.run if worker else reference.run
    # The reference's verifier counts the sources of a data-flow edge as operands, of which the op
    # has one, and so refuses what the reference itself has recorded about a loop.
    mine = ours(text, passes)
    try:
        theirs = run(text, passes, verify=False)
    except reference.DiedError:
        return
    difference = explain(in_order(theirs), in_order(mine))
    assert not difference, f"\n{difference}"


def with_debug_info(passes: str) -> str:
    """A pipeline that records and keeps everything."""
    return passes.replace(f"{EDGES[:-4]}false", EDGES).replace(f"{ORIGINS[:-4]}false", ORIGINS)


@every_case
@pytest.mark.parametrize("propagation", PROPAGATIONS)
def test_cases(name: str, propagation: str) -> None:
    apply = "sdy-apply-sharding-constraints{*}"
    passes = pipeline("sdy-add-data-flow-edges", apply, propagation, SINK)
    assert_agree(MESH + CASES[name], passes)


@every_case
@pytest.mark.parametrize("kind", [ORIGINS, EDGES])
def test_one_kind_alone(name: str, kind: str) -> None:
    options = f"{{{kind}}}"
    passes = reference.join_passes(
        [
            "sdy-add-data-flow-edges",
            f"sdy-apply-sharding-constraints{options}",
            f"sdy-user-priority-propagate{options}",
            f"func.func(sdy-sink-data-flow-edges{{sink-{kind}}})",
        ]
    )
    assert_agree(MESH + CASES[name], passes)


@every_case
def test_steps_go_on_in_the_next_pass(name: str) -> None:
    twice = ["sdy-basic-propagate{*}", "sdy-aggressive-propagate{*}"]
    assert_agree(MESH + CASES[name], pipeline("sdy-add-data-flow-edges", *twice, SINK))


@every_case
def test_removal(name: str) -> None:
    passes = ["sdy-add-data-flow-edges", "sdy-aggressive-propagate{*}", SINK]
    passes.append("sdy-remove-propagation-debug-info")
    assert_agree(MESH + CASES[name], pipeline(*passes))


@pytest.mark.parametrize("dump", ["dump-sharding-origins", "dump-propagation-edges"])
def test_export_pipeline_dumps(dump: str) -> None:
    text = MESH + CASES["a loop"]
    passes = ["sdy-add-data-flow-edges", "sdy-aggressive-propagate{*}"]
    text = reference.run(text, pipeline(*passes, SINK), verify=False)
    text = text.replace(reference.NO_EDGES, reference.STAND_IN)
    assert_agree(text, f"builtin.module(sdy-export-pipeline{{{dump}=true}})")


@pytest.mark.parametrize("name", UNSAFE)
@pytest.mark.parametrize("propagation", PROPAGATIONS)
def test_unsafe_programs_have_a_result(name: str, propagation: str) -> None:
    text = MESH + UNSAFE[name]
    before = ["sdy-add-data-flow-edges", "sdy-apply-sharding-constraints{*}"]
    clean = "sdy-remove-propagation-debug-info"
    mine = ours(text, pipeline(*before, propagation, SINK, clean))
    without = propagation.replace("{*}", "").replace("* ", "")
    plain = reference.join_passes(
        [
            "sdy-add-data-flow-edges",
            "sdy-apply-sharding-constraints",
            without,
            "func.func(sdy-sink-data-flow-edges)",
        ]
    )
    named = re.sub(r'(, )?sdy\.sharding_origin_name = "\w+"', "", mine).replace(" {}", "")
    assert named == reference.run(text, plain).replace(" {}", "")


LARGE = (
    *("calls-and-gradients", "convolutions", "decode", "derivatives", "encoder", "generate", "gpt"),
    *("indexing-dropout", "indexing-gumbel", "indexing-random", "indexing-s", "indexing-top-p"),
    *("library", "linalg-gaussian", "linalg-least", "linalg-matrix-exp", "linalg-svd", "llama"),
    *("lstm", "moe", "resnet", "ring", "state-space", "unet", "vision"),
)
"""How names of programs begin that the reference takes more than a moment for."""


@pytest.mark.parametrize("name", [name for name in registry.names() if not name.startswith(LARGE)])
def test_programs(name: str, worker: Worker) -> None:
    passes = with_debug_info(reference.join_passes(reference.expand()))
    assert EDGES in passes
    assert ORIGINS in passes
    assert_agree(registry.text(name), passes, worker)


@given(programs(Features(max_ops=10)))
def test_random_programs(worker: Worker, program: Program) -> None:
    # Shardings are on any op here, and so without an origin.
    passes = f"builtin.module(sdy-op-priority-propagate{{{EDGES}}})"
    assert_agree(to_mlir(program), passes, worker)


@given(programs(Features(regions=True)))
def test_random_programs_with_regions(worker: Worker, program: Program) -> None:
    sink = f"func.func(sdy-sink-data-flow-edges{{sink-{EDGES}}})"
    passes = ["sdy-add-data-flow-edges", f"sdy-aggressive-propagate{{{EDGES}}}", sink]
    assert_agree(to_mlir(program), reference.join_passes(passes), worker)


@pytest.mark.parametrize("family", WIDE_FAMILIES)
@pytest.mark.parametrize("propagation", PROPAGATIONS)
def test_ops_of_many_tensors(family: str, propagation: str, worker: Worker) -> None:
    passes = pipeline("sdy-add-data-flow-edges", propagation, SINK)
    assert_agree(ALL[family](20), passes, worker)


@pytest.mark.parametrize("propagation", PROPAGATIONS)
def test_ops_of_random_rules(propagation: str, worker: Worker) -> None:
    # Of axes in parts with several origins the reference names one by their addresses in memory.
    passes = reference.join_passes([propagation.replace("*", EDGES)])
    for seed in range(20 if IS_DEEP else 8):
        assert_agree(wide_programs.program(seed), passes, worker)


def test_refused_when_it_makes_no_sense() -> None:
    flow = '{step-1 = [{"x" = operand-0 -> [operand-0]}]}'
    attr = f"sdy.propagation_edges = #sdy.propagation_edges<[{flow}]>"
    text = f"""{MESH}func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {{
      %0 = stablehlo.add %a, %a {{{attr}}} : tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    with pytest.raises(shardcore.ShardcoreError, match="same as a target") as error:
        shardcore.PassManager.parse("builtin.module(sdy-basic-propagate)").run(
            shardcore.Module.parse(text)
        )
    assert "sdy.propagation_edges" in str(error.value)
    with pytest.raises(reference.RejectedError, match="same as a target"):
        reference.run(text, "builtin.module(sdy-basic-propagate)")
