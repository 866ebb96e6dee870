"""GSPMD, part I: the examples of the text, run."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
import shardcore.jax
from jax.sharding import PartitionSpec as P
from shardcore import HloSharding, Mesh, TensorSharding

ARGUMENTS = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((48, 24), (24, 48), (48,))]
MESH = {"x": 2, "y": 4}


def perceptron(x, w, b):
    return jnp.dot(x, w) + jax.lax.broadcast(b, [x.shape[0]])


def lowered(function=perceptron, **how):
    return shardcore.jax.lower(
        function,
        *ARGUMENTS,
        mesh=MESH,
        in_shardings=(P("x", None), P(None, "y"), P()),
        out_shardings=P(),
        **how,
    )


def test_004_111_the_lowered_program_has_shardings_and_shapes() -> None:
    module = lowered().module
    assert [port.shape for port in module.arguments()] == [(48, 24), (24, 48), (48,)]
    assert [port.shape for port in module.results()] == [(48, 48)]
    ops = [op.name for op in module.ops()]
    for name in ("stablehlo.dot_general", "stablehlo.broadcast_in_dim", "stablehlo.add"):
        assert name in ops
    assert [str(port.sharding.to_hlo()) for port in module.arguments()] == [
        "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
        "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
        "{replicated}",
    ]


def test_004_139_a_device_has_shards_and_sends_them() -> None:
    partitioned = lowered().propagate().partition()
    assert [port.local_shape for port in partitioned.arguments] == [(24, 24), (24, 12), (48,)]
    assert [port.local_shape for port in partitioned.results] == [(48, 48)]
    kinds = {each.kind for each in partitioned.collectives}
    assert kinds == {"all_gather"}


INSPECTED = [
    ("208: x", "stablehlo.dot_general", 0, "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"),
    ("209: w", "stablehlo.dot_general", 1, "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"),
    # Line 211 writes [2,4]0,1,...: the same list of devices.
    ("211: the dot", "stablehlo.dot_general", None, "{devices=[2,4]<=[8]}"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("op", "operand", "text"), [row[1:] for row in INSPECTED], ids=[row[0] for row in INSPECTED]
)
def test_004_208_what_inspection_prints(op: str, operand: int | None, text: str) -> None:
    result = lowered().propagate()
    (found,) = [each for each in result.module.ops() if each.name == op]
    value = found.results[0] if operand is None else found.operands[operand]
    assert str(value.sharding.to_hlo()) == text


def test_004_212_the_broadcast_bias_is_sharded_by_now() -> None:
    # The text shows it replicated, as XLA was then; Shardy shards it as the dot, which sends less.
    result = lowered().propagate()
    (bias,) = [op for op in result.module.ops() if op.name == "stablehlo.broadcast_in_dim"]
    assert str(bias.results[0].sharding.to_hlo()) == "{devices=[2,4]<=[8]}"


def test_004_251_a_constraint_inside_of_the_function() -> None:
    def constrained(x, w, b):
        mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"))
        dot = jax.lax.with_sharding_constraint(
            jnp.dot(x, w), jax.sharding.NamedSharding(mesh, P("x", None))
        )
        return dot + jax.lax.broadcast(b, [x.shape[0]])

    result = lowered(constrained).propagate()
    expected = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"
    (add,) = [op for op in result.module.ops() if op.name == "stablehlo.add"]
    assert str(add.operands[0].sharding.to_hlo()) == expected


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (
            "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
            [[0, 4], [1, 5], [2, 6], [3, 7]],
        ),
    ],
    ids=["215: a reshape of 0 to 7", "217: transposed before"],
)
def test_004_215_device_lists_are_read(text: str, devices: list[list[int]]) -> None:
    sharding = HloSharding.parse(text).to_sharding(Mesh(MESH), rank=2)
    slices = sharding.device_slices((8, 8))
    groups: dict[str, list[int]] = {}
    for device, held in slices.items():
        groups.setdefault(str(held), []).append(device)
    assert sorted(map(sorted, groups.values())) == devices


def test_004_258_a_full_sharding_is_a_spec() -> None:
    found = HloSharding.parse("{devices=[2,4]0,1,2,3,4,5,6,7}").to_sharding(Mesh(MESH), rank=2)
    assert found == TensorSharding(Mesh(MESH), ["x", "y"])


def test_004_171_shardings_of_operands_are_merged() -> None:
    # "Where operands have different shardings they are merged, if possible."
    def add(x, y):
        return x + y

    result = shardcore.jax.lower(
        add,
        jax.ShapeDtypeStruct((8, 8), jnp.float32),
        jax.ShapeDtypeStruct((8, 8), jnp.float32),
        mesh=MESH,
        in_shardings=(P("x", None), P(None, "y")),
    ).propagate()
    assert result.out_specs == P("x", "y")


def zeros_first(x):
    return jnp.concatenate([jnp.zeros((1, *x.shape[1:]), x.dtype), x[:-1]])


def padded(x):
    return jax.lax.pad(x, jnp.zeros((), x.dtype), [(1, -1, 0), (0, 0, 0), (0, 0, 0)])


def rolled_and_set(x):
    return jnp.roll(x, 1, axis=0).at[0].set(0)


@pytest.mark.parametrize("scanned", [False, True], ids=["once", "in a scan"])
@pytest.mark.parametrize("shift", [zeros_first, padded, rolled_and_set], ids=lambda f: f.__name__)
def test_004_057_stages_that_are_shifted_send_one_permute(shift, scanned: bool) -> None:
    def pipeline(x):
        if not scanned:
            return shift(jnp.tanh(x))
        return jax.lax.scan(lambda carry, _: (shift(jnp.tanh(carry)), ()), x, jnp.arange(5))[0]

    result = shardcore.jax.lower(
        pipeline,
        jax.ShapeDtypeStruct((4, 16, 8), jnp.float32),
        mesh={"stage": 4},
        in_shardings=P("stage"),
        out_shardings=P("stage"),
    ).propagate()
    (permute,) = result.partition().collectives
    assert (permute.kind, permute.count) == ("collective_permute", 5 if scanned else 1)
    assert permute.wire_bytes == 16 * 8 * 4
    (priced,) = result.cost("tpu-v5p", policy="least").collectives
    assert (priced.kind, priced.count) == (permute.kind, permute.count)


def test_004_057_a_stage_takes_a_new_microbatch_in_each_step() -> None:
    def pipeline(x, batches):
        def step(carry, batch):
            return jnp.tanh(jnp.concatenate([batch[None], carry[:-1]])), carry[-1]

        return jax.lax.scan(step, x, batches)[0]

    result = shardcore.jax.lower(
        pipeline,
        jax.ShapeDtypeStruct((4, 16, 8), jnp.float32),
        jax.ShapeDtypeStruct((5, 16, 8), jnp.float32),
        mesh={"stage": 4},
        in_shardings=(P("stage"), P()),
        out_shardings=P("stage"),
    ).propagate()
    permutes = [
        each for each in result.partition().collectives if each.kind == "collective_permute"
    ]
    assert [(each.count, each.wire_bytes) for each in permutes] == [(5, 16 * 8 * 4)]


CONSTRAINED = [
    ("251: x", 0, "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"),
    ("252: w", 1, "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}"),
    ("253: b", 2, "{replicated}"),
    ("256: the output", None, "{replicated}"),
]


@pytest.mark.parametrize(
    ("port", "text"), [row[1:] for row in CONSTRAINED], ids=[row[0] for row in CONSTRAINED]
)
@pytest.mark.parametrize("dot", [None, P("x", None)], ids=["without", "with a constraint"])
def test_004_251_inputs_and_outputs_stay(dot: P | None, port: int | None, text: str) -> None:
    # Lines 208 to 213 without a constraint on the dot, 251 to 256 with one.
    def function(x, w, b):
        out = jnp.dot(x, w)
        if dot is not None:
            mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"))
            out = jax.lax.with_sharding_constraint(out, jax.sharding.NamedSharding(mesh, dot))
        return out + jax.lax.broadcast(b, [x.shape[0]])

    result = lowered(function).propagate()
    (found,) = [result.module.results()[0]] if port is None else [result.module.arguments()[port]]
    assert str(found.sharding.to_hlo()) == text


def test_004_157_completion_then_partitioning() -> None:
    # "One computation graph in, one for each device out", in two phases.
    import numpy as np

    module = lowered().module
    completed = module.propagate()
    assert all(value.sharding is not None for value in completed.values())
    assert {port.local_shape for port in completed.arguments()} == {(24, 24), (24, 12), (48,)}
    partitioned = completed.partition()
    assert partitioned.num_devices == 8
    assert "sdy." not in str(partitioned.module)
    random = np.random.default_rng(0)
    x, w, b = (random.integers(-4, 5, each.shape).astype(np.float32) for each in ARGUMENTS)
    (found,) = partitioned.simulate(x, w, b)
    np.testing.assert_array_equal(found, x @ w + b)


def test_004_129_the_graph_of_the_lowered_function_is_that_of_the_python_one() -> None:
    graph = lowered().propagate().graph()
    ops = [node.name for node in graph.nodes if node.kind == "op"]
    assert sorted(ops) == ["add", "broadcast_in_dim", "dot_general"]
    tensors = [node.type for node in graph.nodes if node.kind == "tensor"]
    assert sorted(tensors) == sorted(["48x24xf32", "24x48xf32", "48xf32"] + ["48x48xf32"] * 3)
