"""Modules that JAX lowers without Shardy propagate like the same ones lowered with it."""

from functools import partial

import pytest
from shardcore import Mesh, Module, ShardcoreError, import_hlo_shardings
from shardcore.gspmd.modules import import_located

jax = pytest.importorskip("jax")
from jax.sharding import AbstractMesh, AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from tests.shardy import reference  # noqa: E402

MESH = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def named(*spec):
    return NamedSharding(MESH, P(*spec))


def perceptron(x, w, b, *, constrained):
    out = jax.numpy.dot(x, w)
    if constrained:
        out = jax.lax.with_sharding_constraint(out, named("x", None))
    return out + jax.lax.broadcast(b, [x.shape[0]])


def manual(x):
    psum = jax.shard_map(
        lambda part: jax.lax.psum(part, "x"),
        mesh=MESH,
        in_specs=P("x", "y"),
        out_specs=P(None, "y"),
    )
    return psum(x) + 1


def partly_manual(x):
    body = jax.shard_map(
        lambda part: jax.lax.psum(part, "x"),
        mesh=MESH,
        in_specs=P("x"),
        out_specs=P(),
        axis_names={"x"},
    )
    return body(jax.lax.with_sharding_constraint(x, named(P.UNCONSTRAINED, "y"))) + 1


def two_bodies(x, y):
    body = jax.shard_map(
        lambda a, b: (a + b, a * 2), mesh=MESH, in_specs=(P("x"), P("x")), out_specs=P("x", None)
    )
    first, second = body(x, y)
    return body(first * 2, second)


SHARDINGS = {
    "in_shardings": (named("x", None), named(None, "y"), named()),
    "out_shardings": named(),
}
CASES = {
    "perceptron": (partial(perceptron, constrained=False), [(48, 24), (24, 48), (48,)], SHARDINGS),
    "constraint": (partial(perceptron, constrained=True), [(48, 24), (24, 48), (48,)], SHARDINGS),
    "manual": (manual, [(48, 24)], {}),
    "partly": (partly_manual, [(48, 24)], {}),
    "two": (two_bodies, [(48, 24), (48, 24)], {}),
}


def lowered(name, *, shardy):
    function, shapes, options = CASES[name]
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        jax.clear_caches()
        shaped = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
        trace = jax.jit(function, **options).trace(*shaped)
        return trace.lower(lowering_platforms=("cpu",)).as_text()
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)


def shardings(module):
    return [(value.op, str(value.sharding)) for value in module.values()]


@pytest.mark.parametrize("name", CASES)
def test_completes_as_the_reference_with_shardy(name):
    old, new = lowered(name, shardy=False), lowered(name, shardy=True)
    assert "mhlo.sharding" in old
    assert "sdy" not in old
    judge = Module.parse(reference.run(new, reference.PROPAGATION))
    assert shardings(Module.parse(old).propagate().module) == shardings(judge)
    named = import_hlo_shardings(Module.parse(old), Mesh({"x": 2, "y": 4}))
    assert shardings(named.propagate().module) == shardings(judge)


def test_the_perceptron_shards_the_product_and_the_sum():
    result = Module.parse(lowered("perceptron", shardy=False)).propagate()
    assert {str(result[name].sharding.to_hlo()) for name in ("%0", "%1", "%2")} == {
        "{devices=[2,4]<=[8]}"
    }


PROGRAM = """module {
  func.func @main(%a: tensor<8x8xf32> {mhlo.sharding = "FIRST"}) -> tensor<8x8xf32> {
    %0 = stablehlo.add %a, %a {mhlo.sharding = "SECOND"} : tensor<8x8xf32>
    return %0 : tensor<8x8xf32>
  }
}
"""


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("{devices=[2,2]<=[4]}", "{devices=[2,2]<=[5]}", "4 tiles and 5 devices"),
        ("{devices=[2,2]<=[4]}", "{devices=[2,4]<=[8]}", "tiles"),
        ("{devices=[2,2]<=[4]}", "{devices=[4]<=[4]}", "rank|dims"),
        ("{devices=[2,3]<=[6]}", "{devices=[3,2]<=[6]}", "no mesh"),
        ("{devices=[2,2]<=[4]}", "{manual}", "manual"),
    ],
)
def test_errors_point_into_the_program(first, second, words):
    text = PROGRAM.replace("FIRST", first).replace("SECOND", second)
    with pytest.raises(ShardcoreError, match=words) as caught:
        import_located(Module.parse(text), text, "model.mlir")
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.filename == "model.mlir"
    assert diagnostic.line in (2, 3)


def test_ops_keep_their_shardings():
    text = PROGRAM.replace("FIRST", "{replicated}").replace("SECOND", "{devices=[2,2]<=[4]}")
    imported = import_hlo_shardings(Module.parse(text))
    assert str(imported["%0"].sharding) == '<@mesh, [{"x"}, {"y"}]>'
    assert str(imported["%a"].sharding) == "<@mesh, [{}, {}]>"


def test_layout_does_not_matter():
    text = lowered("manual", shardy=False)
    flat = "\n".join(line.lstrip() for line in text.split("\n"))
    broken = text.replace(", %arg1", ",\n    %arg1").replace(" -> (", " // a {comment\n    -> (")
    expected = shardings(Module.parse(text).propagate().module)
    assert shardings(Module.parse(flat).propagate().module) == expected
    assert shardings(Module.parse(broken).propagate().module) == expected


def test_generic_calls_are_refused():
    text = """func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.custom_call"(%a) <{call_target_name = "Sharding"}> {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""  # noqa: E501
    with pytest.raises(ShardcoreError, match="generic"):
        Module.parse(text).propagate()
    constant = text.replace("stablehlo.custom_call", "stablehlo.abs").replace(
        '<{call_target_name = "Sharding"}> ', ""
    )
    result = Module.parse(constant).propagate()
    assert str(result["%0"].sharding) == '<@mesh, [{"x"}]>'
