"""Functions that shardcore partitioned, on eight host devices, against JAX on one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore
import shardcore.jax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore import LoweringError, PartitionError
from shardcore.jax import lower

from tests.deep import sampled
from tests.jax import transformer
from tests.jax.programs import CASES
from tests.jax.versions import set_mesh, since

PERMUTED = [3, 1, 0, 2, 4, 5, 7, 6]


def mesh(order: list[int] | None = None, **sizes: int) -> Mesh:
    devices = np.array(jax.devices())[order or list(range(8))]
    return Mesh(devices.reshape(tuple(sizes.values())), tuple(sizes))


def array(like: Any, seed: int) -> Any:
    """Small integers, or a key."""
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.key(seed)
    found = np.random.default_rng(seed).integers(1, 5, like.shape)
    if jnp.issubdtype(like.dtype, jnp.floating):
        found = found / 8
    return np.asarray(found, like.dtype)


def arrays(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, [array(leaf, seed) for seed, leaf in enumerate(leaves)])


def plain(leaf: Any) -> np.ndarray[Any, Any]:
    """The numbers of ``leaf``: of keys, their data."""
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.extended)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def agree(found: Any, wanted: Any, tolerance: float = 2e-4) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        a, b = plain(mine), plain(theirs)
        scale = max(1.0, float(np.max(np.abs(b), initial=0)))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


def _over(leaf: Any, on: Mesh) -> Any:
    """``leaf``, its sharding over devices."""
    if leaf.sharding is None:
        return leaf
    sharding = NamedSharding(on, leaf.sharding.spec)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)


@pytest.mark.parametrize("name", CASES)
def test_programs_compute_what_jax_computes(name: str) -> None:
    case = CASES[name]
    given = {"in_shardings": case.in_shardings, "out_shardings": case.out_shardings}
    options = {key: tree for key, tree in given.items() if tree is not None}
    axes = case.mesh
    on = jax.make_mesh(axes.axis_sizes, axes.axis_names, axis_types=axes.axis_types)
    shapes = jax.tree.map(lambda leaf: _over(leaf, on), case.args)
    result = lower(case.fn, *shapes, mesh=on, **options, **case.jit).propagate()
    compiled = shardcore.jax.compile(result)
    args = arrays(case.args)
    found = compiled(*args)
    # On one device, but for functions that name axes of the mesh.
    with set_mesh(on):
        placed = jax.tree.map(
            lambda leaf, like: (
                leaf if like.sharding is None else jax.device_put(leaf, like.sharding)
            ),
            args,
            shapes,
        )
        wanted = jax.jit(case.fn)(*placed)
    agree(found, wanted)
    for leaf, sharding in zip(
        jax.tree.leaves(found), jax.tree.leaves(result.out_shardings), strict=True
    ):
        assert leaf.sharding.mesh == on
        assert leaf.sharding == sharding


@pytest.mark.parametrize("policy", sampled(["least", "shardy"], 2))
def test_steps_of_training_with_donation(policy: str) -> None:
    on = mesh(PERMUTED, data=2, model=4)
    params = transformer.parameters(jax.random.key(0))
    state = (params, jax.tree.map(jnp.zeros_like, params))
    shape = (transformer.BATCH, transformer.CONTEXT)
    tokens = np.random.default_rng(0).integers(0, transformer.VOCAB, shape, np.int32)
    lowered = lower(
        transformer.train_step,
        state,
        tokens,
        mesh=on,
        in_shardings=((transformer.specs(), transformer.specs()), P("data")),
        out_shardings=((transformer.specs(), transformer.specs()), P()),
        donate_argnums=0,
    )
    compiled = shardcore.jax.compile(lowered, policy=policy)
    reference = jax.jit(transformer.train_step)
    mine, theirs = jax.device_put(state, compiled.in_shardings[0]), state
    for _ in range(3):
        before = mine
        mine, my_loss = jax.block_until_ready(compiled(mine, tokens))
        theirs, their_loss = reference(theirs, tokens)
        # Arrays that NumPy has looked at cannot be donated in JAX 0.11.
        agree((jax.tree.map(jnp.copy, mine), my_loss), (theirs, their_loss))
        assert all(leaf.is_deleted() for leaf in jax.tree.leaves(before))
    for leaf, spec in zip(
        jax.tree.leaves(mine[0]), jax.tree.leaves(transformer.specs()), strict=True
    ):
        assert leaf.sharding == NamedSharding(on, spec)


def test_it_is_compiled_once() -> None:
    lowered = lower(jnp.tanh, jnp.ones((8, 8)), mesh=mesh(x=8), in_shardings=P("x"))
    compiled = shardcore.jax.compile(lowered, policy="shardy")
    compiled(np.ones((8, 8), np.float32))
    with jax.log_compiles(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.stages.Lowered, "compile", None)
        patch.setattr(jax.stages.Traced, "lower", None)
        for seed in range(3):
            agree(compiled(array(jnp.ones((8, 8)), seed)), jnp.tanh(array(jnp.ones((8, 8)), seed)))


def test_keys_and_unused_arguments_and_numbers() -> None:
    on = mesh(PERMUTED, x=2, y=4)

    def draw(params: Any, keys: Any, unused: Any, *, scale: float) -> Any:
        first, second = jax.random.split(keys[0])
        return {"w": params["w"] * scale + jax.random.normal(first, (8, 16))}, [second, keys]

    shapes = {"w": jax.ShapeDtypeStruct((8, 16), jnp.float32)}
    keys = jax.random.split(jax.random.key(7), 8)
    placed = jax.device_put(keys, NamedSharding(on, P("y")))
    lowered = lower(draw, shapes, placed, jnp.ones(3), scale=2.0)
    compiled = shardcore.jax.compile(lowered)
    args = ({"w": array(shapes["w"], 1)}, placed, np.ones(3))
    found = compiled(*args, scale=2.0)
    agree(found, jax.jit(draw)(args[0], keys, args[2], scale=2.0))
    assert compiled.in_shardings[2] is None
    assert found[1][1].sharding == NamedSharding(on, P("y"))
    assert (found[1][0].dtype, found[1][1].dtype) == (keys.dtype, keys.dtype)


def test_donated_memory_of_which_jax_leaves_the_use_to_xla() -> None:
    on = mesh(PERMUTED, x=2, y=4)
    sharding = NamedSharding(on, P("x", "y"))
    jitted = jax.jit(lambda x: (x + 1, x.sum()), in_shardings=sharding, donate_argnums=0)
    lowered = lower(jitted, jax.ShapeDtypeStruct((8, 8), jnp.float32))
    assert "jax.buffer_donor" in lowered.module.arguments()[0].attributes
    x = jax.device_put(jnp.ones((8, 8)), sharding)
    found, total = shardcore.jax.compile(lowered)(x)
    assert x.is_deleted()
    assert (found.sharding, float(found[3, 3]), float(total)) == (sharding, 2.0, 64.0)


TEXT = """
sdy.mesh @mesh = <["x"=2, "y"=4], device_ids=[3, 1, 0, 2, 4, 5, 7, 6]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
        tensor<16xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}]>}) {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1]
      : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.iota dim = 0 : tensor<16xi32>
  return %0, %1 : tensor<8x8xf32>, tensor<16xi32>
}"""


@pytest.mark.parametrize("devices", [None, PERMUTED], ids=["first", "given"])
def test_a_program_whose_mesh_lists_its_devices(devices: list[int] | None) -> None:
    chosen = None if devices is None else [jax.devices()[index] for index in devices]
    compiled = shardcore.jax.compile(shardcore.Module.parse(TEXT).propagate(), chosen)
    a = array(jnp.ones((8, 16)), 2)
    product, count = compiled(a)
    np.testing.assert_array_equal(product, a @ a.T)
    np.testing.assert_array_equal(count, np.arange(16))
    ids = [device.id for device in compiled.mesh.devices.flat]
    assert ids == (PERMUTED if devices is None else [PERMUTED[index] for index in PERMUTED])


def test_devices_can_be_given() -> None:
    lowered = lower(jnp.sort, jnp.ones((8, 8)), mesh={"x": 4}, in_shardings=P("x"), platform="cpu")
    devices = jax.devices()[4:]
    found = shardcore.jax.compile(lowered, devices)(array(jnp.ones((8, 8)), 3))
    assert [shard.device for shard in found.addressable_shards] == devices
    agree(found, jnp.sort(array(jnp.ones((8, 8)), 3)))


def refuse_devices(devices: Any, **sizes: int) -> None:
    lowered = lower(jnp.sin, jnp.ones(16), mesh=sizes, in_shardings=P("x"))
    shardcore.jax.compile(lowered, devices)


def refuse_call(*args: Any, **kwargs: Any) -> None:
    lowered = lower(lambda x, y: x * y, jnp.ones(8), 1.0, mesh={"x": 8}, in_shardings=(P("x"), P()))
    shardcore.jax.compile(lowered)(*args, **kwargs)


def uneven() -> None:
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<10xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> tensor<10xf32> {
  %0 = stablehlo.sine %a : tensor<10xf32>
  return %0 : tensor<10xf32>
}""")
    shardcore.jax.compile(module.propagate(keep_sub_axes_on_io=True))


def sub_axes() -> None:
    x = jax.ShapeDtypeStruct((96,), jnp.float32)
    lowered = lower(lambda x: x.reshape(4, 24), x, mesh={"x": 8}, in_shardings=P("x"))
    shardcore.jax.compile(lowered.propagate(keep_sub_axes_on_io=True))


def other_mesh() -> None:
    module = shardcore.Module.parse("""
sdy.mesh @a = <["x"=4]>
sdy.mesh @b = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>},
                %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"y"}]>})
    -> (tensor<8xf32>, tensor<8xf32>) {
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}""")
    shardcore.jax.compile(module.propagate())


Refusal = tuple[str, str, Callable[[], Any]]
REFUSED: list[Refusal] = [
    ("devices", "for 16 devices, and JAX has 8", lambda: refuse_devices(None, x=16)),
    ("devices", "given 3", lambda: refuse_devices(jax.devices()[:3], x=4)),
    ("devices", "given 1", lambda: refuse_devices(jax.devices()[:1] * 4, x=4)),
    ("not-a-function", "a PjitFunction is no program", lambda: shardcore.jax.compile(jnp.sin)),
    ("unexpected-argument", "lowered for", lambda: refuse_call(np.ones(8, np.float32))),
    ("unexpected-argument", r"x is float32\[8\], not float32\[4\]",
     lambda: refuse_call(np.ones(4, np.float32), 1.0)),
    ("unexpected-argument", r"not int32\[8\]", lambda: refuse_call(np.ones(8, np.int32), 1.0)),
    ("unsayable-sharding", "%a is uneven: dim 0, of size 10, over 4", uneven),
    ("unsayable-sharding", "a part of an axis", sub_axes),
    ("unsayable-sharding", "%b is over", other_mesh),
]  # fmt: skip


@pytest.mark.parametrize(("code", "said", "wrong"), REFUSED)
def test_mistakes_are_named(code: str, said: str, wrong: Callable[[], Any]) -> None:
    with pytest.raises(LoweringError, match=said) as caught:
        wrong()
    assert caught.value.code == code
    assert caught.value.hint


def called_back(x: Any) -> Any:
    jax.debug.callback(print, x)
    return x * 2


def computed_by_the_host(x: Any) -> Any:
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@pytest.mark.parametrize("fn", [called_back, computed_by_the_host])
def test_callbacks_into_the_host_are_refused_by_name_and_line(fn: Callable[[Any], Any]) -> None:
    lowered = lower(fn, jnp.ones(8), mesh=mesh(x=8), in_shardings=P("x"))
    with pytest.raises(PartitionError, match="callback") as caught:
        shardcore.jax.compile(lowered)
    assert caught.value.code == "unpartitionable"
    assert caught.value.line is not None


def test_a_policy_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="policy is"):
        shardcore.jax.compile(lower(jnp.sin, jnp.ones(8), mesh=mesh(x=8)), policy="most")


@since("0.9", "XLA computes products of sharded int4 wrongly, without shardcore too")
@pytest.mark.parametrize("dtype", [jnp.int4, jnp.uint4])
def test_elements_may_take_less_than_a_byte(dtype: Any) -> None:
    def fn(a: Any, b: Any) -> Any:
        return (a.astype(jnp.int8) // 2).astype(dtype)[:, ::-1], a.astype(jnp.int32) @ b

    on = mesh(x=2, y=4)
    given = (jnp.asarray(np.arange(128).reshape(8, 16) % 2, dtype), jnp.ones((16, 8), jnp.int32))
    shardings = (NamedSharding(on, P("x", "y")), NamedSharding(on, P("y")))
    compiled = shardcore.jax.compile(lower(jax.jit(fn, in_shardings=shardings), *given))
    for _ in range(2):
        agree(compiled(*given), fn(*given))
    assert compiled.executable.as_text()
