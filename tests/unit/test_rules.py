"""Rules and data-flow edges that users give to ops at run time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import shardcore
from shardcore.rules import EdgeGroup, Signature, registered, unregister

POPULATE = "builtin.module(func.func(sdy-populate-op-sharding-rules))"
OPS = ("my.op", "my.loop", "stablehlo.add")


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    for name in OPS:
        unregister(name)
        shardcore.data_flow_edges(name)


def populated(op: str, args: str) -> str:
    module = shardcore.Module.parse(f"func.func @main({args}) {{\n  {op}\n  return\n}}\n")
    shardcore.PassManager.parse(POPULATE).run(module)
    return str(module)


def rule_of(op: str, args: str) -> str:
    text = populated(op, args)
    return text.partition("#sdy.op_sharding_rule")[2].partition(">}")[0]


MATMUL = (
    '%0 = "my.op"(%a, %b) {k = 3 : i64} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>',
    "%a: tensor<4x8xf32>, %b: tensor<8x2xf32>",
)


def test_a_string_gives_an_op_a_rule() -> None:
    assert rule_of(*MATMUL) == ""
    shardcore.rule("my.op", "i k, k j -> i j")
    expected = "<([i, j], [j, k])->([i, k]) {i=4, j=8, k=2} reduction={j}"
    assert rule_of(*MATMUL) == expected
    assert registered()["my.op"] == "user"
    unregister("my.op")
    assert rule_of(*MATMUL) == ""
    assert "my.op" not in registered()


def test_a_function_is_called_once_for_each_signature() -> None:
    seen: list[Signature] = []

    @shardcore.rule("my.op")
    def own(signature: Signature) -> str:
        seen.append(signature)
        return "i k, k j -> i j"

    line, args = MATMUL
    for _ in range(2):
        populated(f"{line}\n  {line.replace('%0', '%1')}", args)
    [signature] = seen
    assert signature.name == "my.op"
    assert signature.operand_types == (((4, 8), "f32"), ((8, 2), "f32"))
    assert signature.result_types[0] is not None
    assert signature.result_types[0].shape == (4, 2)
    assert signature.attributes == {"k": 3}
    assert not signature.conservative


def test_functions_may_return_rules_and_none() -> None:
    text = "#sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=4, j=2, k=8} reduction={k}>"

    @shardcore.rule("my.op")
    def typed(signature: Signature) -> shardcore.OpShardingRule | None:
        keep = signature.attributes["k"] == 3
        return shardcore.OpShardingRule.parse(text) if keep else None

    assert rule_of(*MATMUL)
    assert not rule_of(MATMUL[0].replace("k = 3", "k = 4"), MATMUL[1])

    @shardcore.rule("my.op")
    def untyped(signature: Signature) -> str:
        return text

    assert rule_of(*MATMUL)


def test_built_in_rules_can_be_replaced() -> None:
    op = "%0 = stablehlo.add %a, %a : tensor<4xf32>", "%a: tensor<4xf32>"
    assert rule_of(*op) == "<([i], [i])->([i]) {i=4}"
    shardcore.rule("stablehlo.add", "i, i -> i need_replication={i}")
    assert rule_of(*op) == "<([i], [i])->([i]) {i=4} need_replication={i}"
    unregister("stablehlo.add")
    assert rule_of(*op) == "<([i], [i])->([i]) {i=4}"
    assert registered()["stablehlo.add"] == "pointwise"


def test_attributes_are_plain_values() -> None:
    attributes = (
        "a = [1, 2.5, true], b = dense<0> : tensor<2x2xi64>, c = array<i64: 1>, d = {e = @f}, "
        'g = "h", i, j = dense<[[1, 2]]> : tensor<1x2xi64>, k = f32'
    )
    seen: list[Signature] = []

    @shardcore.rule("my.op")
    def own(signature: Signature) -> None:
        seen.append(signature)

    populated(
        f'%0 = "my.op"(%a) {{{attributes}}} : (tensor<4xf32>) -> tensor<4xf32>', "%a: tensor<4xf32>"
    )
    assert seen[0].attributes == {
        "a": [1, 2.5, True],
        "b": [[0, 0], [0, 0]],
        "c": [1],
        "d": {"e": "f"},
        "g": "h",
        "i": True,
        "j": [[1, 2]],
        "k": "f32",
    }


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("i -> i", 'rule of my.op: rule "i -> i": it has 1 operands, and the op has 2'),
        (
            "<([i])->([i]) {i=4}>",
            "rule of my.op: number of operands and mappings must match: 2 != 1",
        ),
        ("<([i", "rule of my.op: "),
        (7, "rule of my.op: the function returned int, not an OpShardingRule, a string or None"),
        (ZeroDivisionError("no"), "rule of my.op: the function raised ZeroDivisionError: no"),
    ],
)
def test_mistakes_of_functions_point_at_the_op(answer: object, message: str) -> None:
    @shardcore.rule("my.op")
    def own(signature: Signature) -> str:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    with pytest.raises(shardcore.ShardcoreError) as raised:
        populated(*MATMUL)
    assert message in str(raised.value)
    assert raised.value.line == 2


@pytest.mark.parametrize("notation", ["i", "i -> i -> i*", "(i -> i", "i -> i k={i}"])
def test_bad_notation_is_refused_at_once(notation: str) -> None:
    with pytest.raises(shardcore.ShardcoreError, match="invalid-rule"):
        shardcore.rule("my.op", notation)


def test_names_and_kinds_of_rules_are_checked() -> None:
    with pytest.raises(ValueError, match="op names have a dialect"):
        shardcore.rule("op", "i -> i")
    with pytest.raises(TypeError, match="a string or a function"):
        shardcore._core.set_rule("my.op", 3)


def test_rules_may_use_the_engine() -> None:
    @shardcore.rule("my.op")
    def own(signature: Signature) -> str:
        populated("%0 = stablehlo.add %a, %a : tensor<4xf32>", "%a: tensor<4xf32>")
        return "i k, k j -> i j"

    assert rule_of(*MATMUL)


LOOP = """
sdy.mesh @m = <["x"=2]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
  %0 = "my.loop"(%a) ({
  ^bb0(%b: tensor<4xf32>):
    %1 = stablehlo.tanh %b : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def test_data_flow_edges_carry_shardings_through_regions() -> None:
    def sharded() -> int:
        module = shardcore.Module.parse(LOOP)
        shardcore.PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module)
        return str(module).count("#sdy.sharding")

    assert sharded() == 1
    shardcore.data_flow_edges("my.loop", EdgeGroup(first_operand=0, returns=[0], block_args=[0]))
    # The argument, the loop, what is inside of it, and the function's result.
    assert sharded() == 4
    shardcore.data_flow_edges("my.loop")
    assert sharded() == 1
