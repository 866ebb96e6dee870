"""Custom calls on shards: those that are known, and those of which users say how."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import shardcore
import shardcore.rules
import shardcore.simulate
from shardcore import Module, PartitionError, PartitionRule
from shardcore.simulate.registry import arrays

TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<6x9x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}, {}]>})
    -> (TYPE {sdy.sharding = #sdy.sharding<@mesh, OUT>}) {
  %0 = sdy.sharding_constraint %a <@mesh, IN> : tensor<6x9x8xf32>
  %1 = stablehlo.custom_call @TARGET(%0) {backend_config = "whole"} : (tensor<6x9x8xf32>) -> TYPE
  return %1 : TYPE
}"""


def program(target: str, inner: str, out: str, type_: str = "tensor<6x9x8xf32>") -> Any:
    text = TEXT.replace("TARGET", target).replace("TYPE", type_)
    # What arguments hold is even; inside dims need not be.
    text = text.replace('[{"x"}, {"y"}, {}]', '[{"x"}, {}, {"y"}]')
    return Module.parse(text.replace("IN", inner).replace("OUT", out)).propagate()


@pytest.fixture(autouse=True)
def targets() -> Iterator[None]:
    """Calls that the simulator knows: a norm of the last dim, and a sum over it."""
    own = {
        "my_norm": lambda site: arrays(lambda x: x - x.max(-1, keepdims=True)),
        "my_sum": lambda site: arrays(lambda x: x.sum(-1)),
        "my_local_norm": lambda site: arrays(lambda x: x - x.max(-1, keepdims=True)),
    }
    shardcore.simulate.TARGETS.update(own)
    yield
    for name in own:
        del shardcore.simulate.TARGETS[name]
        shardcore.rules.unregister_partition_rule(name)


def proven(result: Any) -> Any:
    partitioned = result.partition()
    assert shardcore.prove(partitioned).is_proven
    return partitioned


def test_dims_that_pass_through_stay_sharded() -> None:
    shardcore.partition_rule("my_norm", "a b c -> a b c need_replication={c}")
    # Nine over four: the last shards are padded.
    result = program("my_norm", '[{"x"}, {"y"}, {}]', '[{"x"}, {}, {}]')
    partitioned = proven(result)
    assert "@my_norm(" in str(partitioned.module)
    assert "(tensor<3x3x8xf32>) -> tensor<3x3x8xf32>" in str(partitioned.module)


def test_dims_that_do_not_are_made_whole() -> None:
    shardcore.partition_rule("my_norm", "a b c -> a b c need_replication={c}")
    partitioned = proven(program("my_norm", '[{}, {"x"}, {"y"}]', '[{}, {}, {"y"}]'))
    [outcome] = [row for row in partitioned.outcomes if row.name == "stablehlo.custom_call"]
    # The dim is exchanged with another one, before and after.
    assert (outcome.kind, outcome.reason) == ("collective", "moved: operand 0, result 0")


def test_reductions_leave_terms_that_are_added() -> None:
    shardcore.partition_rule("my_sum", "a b c -> a b")
    result = program("my_sum", '[{"x"}, {}, {"y"}]', '[{"x"}, {}]', "tensor<6x9xf32>")
    partitioned = proven(result)
    assert [row.kind for row in partitioned.collectives] == ["all_reduce"]
    assert "(tensor<3x9x2xf32>) -> tensor<3x9xf32>" in str(partitioned.module)


def test_shards_may_have_a_target_and_attributes_of_their_own() -> None:
    @shardcore.partition_rule("my_norm")
    def rule(signature: shardcore.rules.Signature) -> PartitionRule:
        assert signature.attributes["backend_config"] == "whole"
        [operand] = signature.operand_types
        assert operand is not None
        config = {"backend_config": f'"shards of {operand.shape[-1]}"'}
        return PartitionRule("... c -> ... c need_replication={c}", "my_local_norm", config)

    text = str(proven(program("my_norm", '[{"x"}, {"y"}, {}]', '[{"x"}, {}, {}]')).module)
    assert 'call_target_name = "my_local_norm"' in text
    assert 'backend_config = "shards of 8"' in text
    assert "whole" not in text
    # Where every device computes everything the call is that of the program.
    text = str(proven(program("my_norm", "[{}, {}, {}]", "[{}, {}, {}]")).module)
    assert "my_local_norm" not in text


def test_a_rule_is_asked_for_each_signature_once_and_taken_back() -> None:
    asked = []

    @shardcore.partition_rule("my_norm")
    def rule(signature: shardcore.rules.Signature) -> str:
        asked.append(signature.operand_types)
        return "a b c -> a b c need_replication={c}"

    result = program("my_norm", '[{"x"}, {}, {}]', '[{"x"}, {}, {}]')
    result.partition("xla")
    assert len(asked) == 1
    shardcore.rules.unregister_partition_rule("my_norm")
    with pytest.raises(PartitionError, match='"my_norm"'):
        result.partition()


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (lambda signature: None, "nothing is known of custom call target"),
        (lambda signature: "a b -> a b", "has 2 dims in it, and 3 in the op"),
        (lambda signature: "a b c", "->"),
        (lambda signature: 1 // 0, "the function raised ZeroDivisionError"),
        (lambda signature: 3, "the function raised AttributeError"),
    ],
)
def test_what_is_wrong_is_said_at_the_call(rule: Any, said: str) -> None:
    shardcore.partition_rule("my_norm")(rule)
    with pytest.raises(PartitionError, match=said) as caught:
        program("my_norm", '[{"x"}, {}, {}]', '[{"x"}, {}, {}]').partition()
    assert caught.value.line == 6
    assert '"my_norm"' in caught.value.message


def test_attributes_have_to_be_attributes() -> None:
    shardcore.partition_rule("my_norm", PartitionRule("a b c -> a b c", None, {"b": "{"}))
    with pytest.raises(shardcore.ParseError):
        program("my_norm", '[{"x"}, {}, {}]', '[{"x"}, {}, {}]').partition()


def test_a_sharding_rule_alone_does_not_say_how_shards_are_computed() -> None:
    with pytest.raises(PartitionError, match="my_norm") as caught:
        program("my_norm", '[{"x"}, {}, {}]', '[{"x"}, {}, {}]').partition()
    assert caught.value.hint is not None
    assert "shardcore.partition_rule" in caught.value.hint


@pytest.mark.parametrize("target", ["xla_ffi_python_cpu_callback", "xla_python_gpu_callback"])
def test_callbacks_are_refused_whatever_a_rule_says(target: str) -> None:
    shardcore.partition_rule(target, "a b c -> a b c")
    with pytest.raises(PartitionError, match="calls back into the host"):
        program(target, '[{"x"}, {}, {}]', '[{"x"}, {}, {}]').partition()
    shardcore.rules.unregister_partition_rule(target)


def test_an_annotation_of_the_other_partitioner_is_a_reshard() -> None:
    partitioned = proven(program("Sharding", '[{"x"}, {}, {"y"}]', '[{}, {}, {"y", "x"}]'))
    assert [row.kind for row in partitioned.collectives] == ["all_to_all"]


BODY = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>]
      out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<2x4xf32>) {
    %1 = stablehlo.custom_call @my_norm(%b) : (tensor<2x4xf32>) -> tensor<2x4xf32>
    sdy.return %1 : tensor<2x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}"""


def test_what_is_manual_already_is_called_as_it_is() -> None:
    partitioned = Module.parse(BODY).propagate().partition()
    [found] = partitioned.simulate(np.arange(32, dtype=np.float32).reshape(8, 4))
    np.testing.assert_array_equal(found[:, 3], 0)
    assert "(tensor<2x4xf32>) -> tensor<2x4xf32>" in str(partitioned.module)
