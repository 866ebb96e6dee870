"""``custom_partitioning`` functions, next to what JAX compiles them to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore
import shardcore.jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore.errors import PartitionError, SimulationError
from shardcore.partition.proof import prove

from tests.jax.versions import set_mesh

Partition = Callable[..., tuple[Any, ...]]


def mesh_of(order: Any = range(8), **axes: int) -> Mesh:
    devices = np.array(jax.devices())[list(order)].reshape(tuple(axes.values()))
    return Mesh(devices, tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


def partitioned(function: Any, partition: Partition, rule: Any, **options: Any) -> Any:
    """``function`` with a ``partition`` callback and a rule."""
    wrapped = custom_partitioning(function)
    wrapped.def_partition(partition, sharding_rule=rule, **options)
    return wrapped


def as_given(function: Any) -> Partition:
    """A callback that computes ``function`` on shards, sharded as propagation found."""

    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        shardings = jax.tree.map(lambda each: each.sharding, (arguments, result))
        return mesh, function, shardings[1], shardings[0]

    return partition


class Case(NamedTuple):
    """A program, and the arguments that it is lowered for."""

    function: Any
    specs: tuple[Any, ...]
    shapes: tuple[tuple[int, ...], ...] = ((16, 8),)
    dtypes: tuple[Any, ...] = (np.float32, np.float32)


def elementwise() -> Case:
    def gelu(x: Any) -> Any:
        return jnp.tanh(x) * x

    call = partitioned(gelu, as_given(gelu), "i j -> i j")
    return Case(lambda x: call(x) + 1, (P("x", "y"),))


def product(**options: Any) -> Case:
    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        x, w = (each.sharding.spec for each in arguments)

        def on_shards(a: Any, b: Any) -> Any:
            return jax.lax.psum(a @ b, x[1])

        over = NamedSharding(mesh, P(x[0], w[1]))
        return mesh, on_shards, over, tuple(each.sharding for each in arguments)

    call = partitioned(lambda x, w: x @ w, partition, "i k, k j -> i j", **options)
    specs = (P("x", "y"), P("y", None))
    return Case(lambda x, w: call(jnp.sin(x), w), specs, ((16, 8), (8, 32)))


def spectrum() -> Case:
    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        over = NamedSharding(mesh, P(arguments[0].sharding.spec[0], None))
        return mesh, jnp.fft.rfft, over, (over,)

    call = partitioned(lambda x: jnp.fft.rfft(x), partition, "i n -> i m")
    return Case(lambda x: jnp.abs(call(x)), (P("x", "y"),))


def reversal() -> Any:
    def flipped(x: Any) -> Any:
        return jnp.flip(x, 1) * 2

    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        over = NamedSharding(mesh, P(arguments[0].sharding.spec[0], None))
        return mesh, flipped, over, (over,)

    return partitioned(flipped, partition, "i j -> i j", need_replication_factors=("j",))


def loop(spec: Any) -> Case:
    call = reversal()

    def run(x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (call(jnp.sin(c)), None), x, None, length=3)[0]

    return Case(run, (spec,), ((64, 16),))


def branch() -> Case:
    call = reversal()
    return Case(
        lambda x, i: jax.lax.cond(i[0] > 0, call, lambda x: x, x),
        (P("x", "y"), P()),
        ((64, 16), (2,)),
        (np.float32, np.int32),
    )


def gradient() -> Case:
    def square(x: Any) -> Any:
        return x * x

    def pull(x: Any, g: Any) -> Any:
        return 2 * x * g

    forward = partitioned(square, as_given(square), "i j -> i j")
    backward = partitioned(pull, as_given(pull), "i j, i j -> i j")

    @jax.custom_vjp
    def squared(x: Any) -> Any:
        return forward(x)

    squared.defvjp(lambda x: (forward(x), x), lambda x, g: (backward(x, g),))
    return Case(jax.grad(lambda x: jnp.sum(jnp.sin(squared(x)))), (P("x", "y"),))


def extremes() -> Case:
    def both(x: Any) -> Any:
        return jnp.min(x, 1), jnp.max(x, 1)

    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        [x] = arguments
        row, column = x.sharding.spec
        over = NamedSharding(mesh, P(row))

        def on_shards(x: Any) -> Any:
            low, high = both(x)
            return jax.lax.pmin(low, column), jax.lax.pmax(high, column)

        return mesh, on_shards, (over, over), (x.sharding,)

    call = partitioned(both, partition, "i j -> i, i", reduction_factors=("j",))

    def run(x: Any) -> Any:
        low, high = call(x)
        return low - high

    return Case(run, (P("x", "y"),))


def halo() -> Case:
    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        over = arguments[0].sharding
        axis = over.spec[0]
        count = mesh.shape[axis]

        def on_shards(x: Any) -> Any:
            pairs = [(at, (at + 1) % count) for at in range(count)]
            last = jax.lax.ppermute(x[-1:], axis, pairs)
            return jnp.concatenate([last, x[:-1]])

        return mesh, on_shards, over, (over,)

    call = partitioned(
        lambda x: jnp.roll(x, 1, 0), partition, "i j -> i j", permutation_factors=("i",)
    )
    return Case(lambda x: call(x), (P("x", "y"),))


def trees() -> Case:
    @partial(custom_partitioning, static_argnums=(1,))
    def scaled(pair: Any, scale: float) -> Any:
        return {"sum": pair["a"] * scale + pair["b"]}

    def partition(scale: float, mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        over = result["sum"].sharding

        def on_shards(pair: Any) -> Any:
            return {"sum": pair["a"] * scale + pair["b"]}

        return mesh, on_shards, {"sum": over}, ({"a": over, "b": over},)

    scaled.def_partition(partition, sharding_rule=lambda *_: "i j, i j -> i j")
    return Case(lambda x: scaled({"a": x, "b": jnp.cos(x)}, 3.0)["sum"], (P("x", "y"),))


def position() -> Case:
    """Which device it is, control flow, a captured array and a call, on shards."""
    constant = jnp.arange(4.0)

    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        over = arguments[0].sharding

        def on_shards(x: Any) -> Any:
            start = jax.lax.axis_index(over.spec[1]) * 4
            x = jax.lax.fori_loop(0, 2, lambda _, c: jax.jit(jnp.square)(c), x)
            return x + constant + start.astype(x.dtype)

        return mesh, on_shards, over, (over,)

    call = partitioned(lambda x: x**4 + jnp.arange(8.0), partition, "i j -> i j")
    return Case(lambda x: call(x), (P("x", "y"),))


def names_hidden() -> Case:
    wrapped = custom_partitioning(lambda x: jnp.cos(x))
    wrapped.def_partition(as_given(jnp.cos), sharding_rule="i j -> i j", decode_shardings=False)
    return Case(lambda x: wrapped(x), (P("x", "y"),))


def uneven() -> Case:
    call = partitioned(lambda x: jnp.cos(x), as_given(jnp.cos), "i j -> i j")

    def run(x: Any) -> Any:
        return call(jax.lax.with_sharding_constraint(jnp.sin(x), P("x", "y"))) + 1

    return Case(run, (P(None, "y"),), ((10, 8),))


CASES: dict[str, Callable[[], Case]] = {
    "elementwise": elementwise,
    "product": product,
    "product with a reduction": partial(product, reduction_factors=("k",)),
    "spectrum": spectrum,
    "loop": partial(loop, P("x", None)),
    "loop with gathers": partial(loop, P("x", "y")),
    "branch": branch,
    "gradient": gradient,
    "extremes": extremes,
    "halo": halo,
    "trees": trees,
    "position": position,
    "names hidden": names_hidden,
    "uneven": uneven,
}
COLLECTIVES = re.compile(
    r" = \S+ (all-reduce|all-gather|reduce-scatter|collective-permute|all-to-all)\("
)


def lowered(case: Case, mesh: Any) -> shardcore.jax.Lowered:
    shapes = map(jax.ShapeDtypeStruct, case.shapes, case.dtypes)
    return shardcore.jax.lower(case.function, *shapes, mesh=mesh, in_shardings=case.specs)


def compiled(case: Case, mesh: Mesh) -> Any:
    shapes = map(jax.ShapeDtypeStruct, case.shapes, case.dtypes)
    shardings = tuple(NamedSharding(mesh, spec) for spec in case.specs)
    with set_mesh(mesh):
        return jax.jit(case.function, in_shardings=shardings).lower(*shapes).compile()


@pytest.mark.parametrize("name", CASES)
def test_programs_of_one_device_are_those_that_jax_compiles(name: str) -> None:
    case, mesh = CASES[name](), mesh_of(x=4, y=2)
    local = lowered(case, mesh).propagate().partition("xla")
    executable = compiled(case, mesh)
    expected = Counter(COLLECTIVES.findall(executable.as_text()))
    found = Counter(row.kind.replace("_", "-") for row in local.collectives)
    assert found == expected
    random = np.random.default_rng(0)
    arrays = [
        random.integers(-3, 4, shape).astype(dtype)
        for shape, dtype in zip(case.shapes, case.dtypes, strict=False)
    ]
    shardings = [NamedSharding(mesh, spec) for spec in case.specs]
    [expected_array] = jax.tree.leaves(executable(*map(jax.device_put, arrays, shardings)))
    [array] = local.simulate(*arrays)
    np.testing.assert_allclose(array, np.asarray(expected_array), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("policy", ["least", "shardy"])
@pytest.mark.parametrize("name", CASES)
def test_programs_are_proven_without_devices(name: str, policy: str) -> None:
    local = lowered(CASES[name](), {"x": 4, "y": 2}).propagate().partition(policy)
    assert prove(local).is_proven


def test_calls_are_those_that_jax_makes() -> None:
    case, mesh = product(reduction_factors=("k",)), mesh_of(x=4, y=2)
    shapes = map(jax.ShapeDtypeStruct, case.shapes, case.dtypes)
    shardings = tuple(NamedSharding(mesh, spec) for spec in case.specs)
    own = jax.jit(case.function, in_shardings=shardings).lower(*shapes).as_text()
    ours = str(shardcore.Module.parse(lowered(case, mesh).as_text()))

    def call(text: str) -> str:
        [line] = [line for line in text.splitlines() if "CustomSPMDPartitioning" in line]
        line = re.sub(r' backend_config = "[^"]*",', "", line)
        return re.sub(r" loc\(.*", "", line).strip()

    assert call(ours) == call(own)


def test_no_gathers_in_loops_over_dims_that_are_whole() -> None:
    result = lowered(loop(P("x", None)), {"x": 4, "y": 2}).propagate()
    assert not result.cost().collectives
    text = re.sub(r"flipped#\w+", "140559091728016", str(result.result.module))
    assert not shardcore.Module.parse(text).propagate().cost().collectives


def test_jax_lowers_and_the_callback_is_found() -> None:
    case, mesh = loop(P("x", "y")), mesh_of(x=4, y=2)
    shapes = [jax.ShapeDtypeStruct((64, 16), jnp.float32)]
    over = NamedSharding(mesh, P("x", "y"))
    jitted = jax.jit(case.function, in_shardings=over)
    local = shardcore.jax.lower(jitted.lower(*shapes)).propagate().partition("xla")
    assert "stablehlo.reverse" in str(local.module)
    with pytest.raises(SimulationError, match="its function is not known here"):
        prove(local)
    assert prove(shardcore.jax.lower(jitted.trace(*shapes)).propagate().partition()).is_proven


def test_callbacks_run_when_a_program_is_partitioned() -> None:
    asked = []

    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        asked.append((mesh, arguments, result))
        return mesh, jnp.cos, result.sharding, (arguments[0].sharding,)

    call = partitioned(lambda x: jnp.cos(x), partition, "i j -> i j")
    mesh = mesh_of(x=4, y=2)
    result = lowered(Case(lambda x: call(x), (P("x", "y"),)), mesh).propagate()
    assert not asked
    result.partition("xla")
    result.cost()
    [(given, arguments, shape)] = asked
    assert given == Mesh(mesh.devices, ("x", "y"))
    over = NamedSharding(given, P("x", "y"))
    assert arguments[0] == shape == jax.ShapeDtypeStruct((16, 8), jnp.float32, sharding=over)


def fails(partition: Partition) -> str:
    def unlucky(x: Any) -> Any:
        return jnp.cos(x)

    call = partitioned(unlucky, partition, "i j -> i j")
    result = lowered(Case(lambda x: call(x), (P("x", "y"),)), mesh_of(x=4, y=2)).propagate()
    with pytest.raises(PartitionError) as caught:
        result.cost()
    assert caught.value.diagnostics[0].code == "invalid-rule"
    message = caught.value.message
    assert "function unlucky, called at" in message
    assert "test_custom_partitioning.py" in message
    return str(message)


def test_errors_name_the_function_and_what_it_raised() -> None:
    def raises(*_: Any) -> tuple[Any, ...]:
        raise KeyError("no such thing")

    assert "raised KeyError: 'no such thing'" in fails(raises)
    assert "raised ValueError: not enough values" in fails(lambda mesh, a, r: (mesh, jnp.cos))
    assert "must return Sharding" in fails(lambda mesh, a, r: (mesh, jnp.cos, None, (None,)))
    halves = fails(lambda mesh, a, r: (mesh, lambda x: x[:1], r.sharding, (r.sharding,)))
    assert "Mismatch in result shapes. float32[1, 4] vs float32[4, 4]" in halves
    unbound = fails(
        lambda mesh, a, r: (mesh, lambda x: jax.lax.psum(x, "z"), r.sharding, (r.sharding,))
    )
    assert "unbound axis name: z" in unbound


def test_callbacks_that_need_devices_say_so() -> None:
    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        assert mesh.devices.size == 8
        return mesh, jnp.cos, result.sharding, (result.sharding,)

    call = partitioned(lambda x: jnp.cos(x), partition, "i j -> i j")
    case = Case(lambda x: call(x), (P("x", "y"),))
    lowered(case, mesh_of(x=4, y=2)).propagate().partition()
    with pytest.raises(PartitionError, match=r"give a jax\.sharding\.Mesh with devices"):
        lowered(case, {"x": 4, "y": 2}).propagate().partition()


def test_shardings_of_another_mesh_are_read() -> None:
    other = Mesh(np.array(jax.devices()[:8]), ("all",))

    def partition(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        over = NamedSharding(other, P("all"))
        return mesh, jnp.cos, over, (over,)

    call = partitioned(lambda x: jnp.cos(x), partition, "i j -> i j")
    case = Case(lambda x: call(x), (P("x", None),))
    local = lowered(case, mesh_of(x=4, y=2)).propagate().partition("xla")
    assert "tensor<2x8xf32>" in str(local.module)
    assert prove(local).is_proven


def test_sessions_ask_for_other_shardings_and_meshes() -> None:
    session = lowered(loop(P("x", None)), mesh_of(x=4, y=2)).session()
    assert session.result.partition().sent_bytes == 0
    session.set("x", '[{"y"}, {"x"}]')
    local = session.result.partition()
    assert local.sent_bytes > 0
    assert prove(local).is_proven
    wide = lowered(loop(P("x", "y")), mesh_of(x=4, y=2)).session(mesh={"x": 2, "y": 4})
    assert prove(wide.result.partition()).is_proven


def test_functions_without_a_rule() -> None:
    def opaque(x: Any) -> Any:
        return jnp.cos(x)

    def whole(mesh: Any, arguments: Any, result: Any) -> tuple[Any, ...]:
        over = NamedSharding(mesh, P())
        return mesh, opaque, over, (over,)

    call = custom_partitioning(opaque)
    call.def_partition(whole)
    result = lowered(Case(lambda x: call(x), (P("x", "y"),)), mesh_of(x=4, y=2)).propagate()
    assert result.out_specs == P()
    [warning] = [each for each in result.diagnostics() if each.code == "no-rule"]
    assert "propagation stops at custom_partitioning function opaque" in warning.message
    assert warning.hint is not None
    assert 'def_partition(..., sharding_rule="i j -> i j")' in warning.hint
    assert "at custom_call @opaque" in str(result.why_not("result", 0, "x"))
    assert prove(result.partition()).is_proven
    call.def_partition(whole, infer_sharding_from_operands=lambda mesh, a, r: a[0].sharding)
    # JAX's own exception, where the user's function calls it.
    with pytest.raises(NotImplementedError, match="sharding_rule"):
        lowered(Case(lambda x: call(x), (P("x", "y"),)), mesh_of(x=4, y=2))


def test_costs_name_the_function() -> None:
    result = lowered(loop(P("x", "y")), {"x": 4, "y": 2}).propagate()
    cost = result.cost()
    assert {row.cause for row in cost.collectives} == {"stablehlo.custom_call @flipped"}
    module = shardcore.Module.parse(re.sub("flipped#", "other#", str(result.module)))
    told = str(module.propagate().cost())
    assert "custom_call @other" in told
    assert "CustomSPMDPartitioning" not in told


@pytest.mark.parametrize("axes", [{"x"}, {"x", "y"}])
def test_calls_in_shard_map(axes: set[str]) -> None:
    mesh = mesh_of(x=4, y=2)

    def gelu(x: Any) -> Any:
        return jnp.tanh(x) * x

    call = partitioned(gelu, as_given(gelu), "i j -> i j")
    spec = P(*(axis if axis in axes else None for axis in ("x", "y")))
    mapped = jax.shard_map(
        lambda x: call(x), mesh=mesh, in_specs=spec, out_specs=spec, axis_names=axes
    )
    local = lowered(Case(mapped, (P("x", "y"),)), mesh).propagate().partition("xla")
    assert not local.collectives
    assert prove(local).is_proven


def test_one_device_computes_the_function_itself() -> None:
    text = str(lowered(elementwise()._replace(specs=(P(),)), {"x": 1}).module)
    assert "custom_call" not in text
    assert "stablehlo.tanh" in text


@pytest.mark.parametrize("order", [range(8), (3, 1, 0, 2, 4, 5, 7, 6)])
@pytest.mark.parametrize("name", ["product", "halo", "position"])
def test_compiled_programs_run(name: str, order: Any) -> None:
    case, mesh = CASES[name](), mesh_of(order, x=4, y=2)
    random = np.random.default_rng(0)
    arrays = [random.integers(-3, 4, shape).astype(np.float32) for shape in case.shapes]
    shardings = [NamedSharding(mesh, spec) for spec in case.specs]
    given = list(map(jax.device_put, arrays, shardings))
    found = shardcore.jax.compile(lowered(case, mesh).propagate())(*given)
    np.testing.assert_allclose(found, np.asarray(compiled(case, mesh)(*given)), rtol=1e-6)
