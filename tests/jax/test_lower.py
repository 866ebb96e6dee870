"""What ``shardcore.jax.lower`` takes, and what it refuses."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import jax
import jax.experimental
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore
import shardcore.jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore import LoweringError, Mesh, ParseError, PropagationError, ShardcoreError, bytecode
from shardcore.jax import JaxResult, Lowered, lower, partition_spec
from shardcore.jax.mistakes import CODES

from tests.deep import IS_DEEP
from tests.jax.versions import since, use_abstract_mesh

SIZES = {"data": 2, "model": 4}
AUTO = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
X = jax.ShapeDtypeStruct((64, 512), jnp.float32)
W = jax.ShapeDtypeStruct((512, 128), jnp.float32)
SPECS = (P("data"), P(None, "model"))


def product(x: Any, w: Any) -> Any:
    return {"y": x @ w}


def out(lowered: shardcore.jax.Lowered) -> Any:
    return lowered.propagate().out_specs


def jitted(**options: Any) -> Any:
    shardings = tuple(NamedSharding(AUTO, spec) for spec in SPECS)
    return jax.jit(product, in_shardings=shardings, **options)


@pytest.mark.parametrize(
    "mesh",
    [SIZES, Mesh(SIZES), AUTO, AUTO.update_axis_types({"data": AxisType.Explicit})],
    ids=["sizes", "ours", "abstract", "explicit"],
)
def test_meshes(mesh: Any) -> None:
    result = lower(product, X, W, mesh=mesh, in_shardings=SPECS).propagate()
    assert result.out_specs == {"y": P("data", "model")}
    mesh_of_result = result.out_shardings["y"].mesh
    assert dict(mesh_of_result.shape) == SIZES
    if isinstance(mesh, AbstractMesh):
        assert mesh_of_result == mesh


def test_a_mesh_of_one_device_that_exists() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]).reshape(1, 1), ("data", "model"))
    result = lower(product, X, W, mesh=mesh, in_shardings=SPECS).propagate()
    assert result.out_shardings["y"].mesh == mesh


def _printed(x: Any) -> Any:
    jax.debug.print("{}", x.sum())
    return x * 2


def _called(x: Any) -> Any:
    jax.debug.callback(print, x)
    return x * 2


def _inspected(x: Any) -> Any:
    jax.debug.inspect_array_sharding(x, callback=print)
    return x * 2


def _pure(x: Any) -> Any:
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def _effect(x: Any) -> Any:
    return jax.experimental.io_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def _nested(x: Any) -> Any:
    """In a loop, in a branch, in a function and in a checkpoint, the same one twice."""

    @jax.checkpoint
    def step(x: Any, _: Any) -> Any:
        return jax.lax.cond(x.sum() > 0, jax.jit(_printed), lambda x: x * 2, x), None

    return jax.lax.scan(step, jax.jit(_printed)(x), length=3)[0]


@pytest.mark.parametrize("fn", [_printed, _called, _inspected, _pure, _effect, _nested])
def test_callbacks_are_lowered_without_devices_as_with_them(fn: Callable[[Any], Any]) -> None:
    def ops(lowered: Lowered) -> list[str]:
        module = lowered.module
        return [op.name for op in module.ops() if op.name != "sdy.mesh"]

    def specs(lowered: Lowered) -> list[str]:
        values = lowered.propagate().values()
        return [str(value.sharding and value.sharding.dims) for value in values]

    with_devices = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(2, 4), tuple(SIZES))
    native = lower(fn, X, mesh=with_devices, in_shardings=P("data"))
    on_abstract = jax.jit(fn, in_shardings=NamedSharding(AUTO, P("data")))
    # Functions that are traced in a context are other ones to JAX than those outside.
    outside = lower(jax.jit(fn, in_shardings=NamedSharding(with_devices, P("data"))).lower(X))
    for lowered, wanted in (
        (lower(fn, X, mesh=SIZES, in_shardings=P("data")), native),
        (lower(on_abstract, X), outside),
        (lower(on_abstract.trace(X)), outside),
        (lower(on_abstract, X, platform="cpu"), outside),
    ):
        assert ops(lowered) == ops(wanted)
        assert specs(lowered) == specs(wanted)
        assert lowered.propagate().cost("tpu-v5p").collectives is not None
    if fn not in (_pure, _effect):
        gradient = jax.jit(jax.grad(lambda x: fn(x).sum()))
        assert "custom_call" in str(lower(gradient, X, mesh=AUTO).module)


@dataclass(frozen=True)
class _Traced:
    """Like the traced programs of ``nnx.jit``."""

    traced: jax.stages.Traced

    def lower(self, **options: Any) -> _Lowered:
        return _Lowered(self.traced.lower(**options))


@dataclass(frozen=True)
class _Lowered:
    lowered: jax.stages.Lowered


class _Wrapped:
    """Like the functions of ``nnx.jit``, which JAX takes for jitted ones."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.jitted = jax.jit(fn)

    def __call__(self, *args: Any) -> Any:
        return self.jitted(*args)

    def trace(self, *args: Any) -> _Traced:
        return _Traced(self.jitted.trace(*args))

    def lower(self, *args: Any) -> _Lowered:
        return self.trace(*args).lower()

    def eval_shape(self, *args: Any) -> Any:
        return self.jitted.eval_shape(*args)


@pytest.mark.parametrize("fn", [_printed, jnp.sin])
def test_jitted_functions_of_other_libraries(fn: Callable[[Any], Any]) -> None:
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(AUTO, P("data")))
    wrapped = _Wrapped(fn)
    assert isinstance(wrapped, jax.stages.Wrapped)
    expected = out(lower(jax.jit(fn), x))
    assert expected == P("data")
    assert out(lower(wrapped, x)) == out(lower(wrapped.trace(x))) == expected
    # JAX lowers by itself where there are devices.
    alone = jax.ShapeDtypeStruct(X.shape, X.dtype)
    assert len(lower(wrapped.lower(alone)).module.ops()) > 1


def test_ordered_callbacks_are_for_one_device() -> None:
    def fn(x: Any) -> Any:
        jax.debug.print("{}", x.sum(), ordered=True)
        return x

    with pytest.raises(LoweringError, match="ordered effects") as caught:
        lower(fn, X, mesh=SIZES, in_shardings=P("data"))
    assert "ordered=True" in str(caught.value.hint)


def test_programs_that_are_lowered_without_shardy() -> None:
    jax.config.update("jax_use_shardy_partitioner", False)
    try:
        lowered = lower(product, X, W, mesh=SIZES, in_shardings=SPECS)
    finally:
        jax.config.update("jax_use_shardy_partitioner", True)
    result = lowered.propagate()
    assert result.out_specs == {"y": P("data", "model")}
    assert result.out_shardings["y"].mesh == AUTO


def test_the_platform() -> None:
    def fn(x: Any) -> Any:
        return jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos)

    devices = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    for options, op in (
        ({"mesh": SIZES}, "cosine"),
        ({"mesh": SIZES, "platform": "cpu"}, "sine"),
        ({"mesh": devices}, "sine"),
    ):
        assert f"stablehlo.{op}" in str(lower(fn, X, **options).module)


def test_the_mesh_of_the_context() -> None:
    with use_abstract_mesh(AUTO):
        assert out(lower(product, X, W, in_shardings=SPECS)) == {"y": P("data", "model")}


def test_without_a_mesh_nothing_is_sharded() -> None:
    result = lower(product, X, W).propagate()
    assert result.out_specs == {"y": P()}
    assert result.out_shardings == {"y": None}


def test_everything_that_is_lowered() -> None:
    traced = jitted().trace(X, W)
    exported = jax.export.export(jitted(), platforms=("tpu",))(X, W)
    for fn in (traced, traced.lower(lowering_platforms=("tpu",)), exported, exported.serialize()):
        assert out(lower(fn)) == {"y": P("data", "model")}, type(fn)
    several = jax.export.export(jitted(), platforms=("cpu", "tpu"))(X, W)
    result = lower(several).propagate()
    assert (result.in_specs, result.out_specs) == (SPECS, {"y": P("data", "model")})
    assert out(lower(jitted(), X, W)) == {"y": P("data", "model")}
    assert out(lower(exported.mlir_module_serialized)) == (P("data", "model"),)


def test_bytecode_is_a_program_like_any_other(tmp_path: Path) -> None:
    exported = jax.export.export(jitted(), platforms=("tpu",))(X, W)
    file = tmp_path / "program.mlirbc"
    file.write_bytes(exported.mlir_module_serialized)
    for module in (
        shardcore.Module.from_file(file),
        shardcore.Module.parse(exported.mlir_module_serialized),
    ):
        [result] = module.propagate().results()
        assert str(result.sharding) == '<@mesh, [{"data"}, {"model"}]>'


def test_damaged_bytecode_is_a_mistake_and_no_crash(capfd: pytest.CaptureFixture[str]) -> None:
    whole = jax.export.export(jitted(), platforms=("tpu",))(X, W).mlir_module_serialized
    random = Random(0)
    for _ in range(100 if IS_DEEP else 4):
        damaged = bytearray(whole)
        for _ in range(random.randint(2, 6)):
            damaged[random.randrange(4, len(damaged))] = random.randrange(256)
        # Some damage does no harm.
        with contextlib.suppress(ParseError):
            shardcore.Module.parse(bytes(damaged))
    with pytest.raises(ParseError, match="cannot read the bytecode of <string>: ") as caught:
        shardcore.Module.parse(whole[:60])
    assert caught.value.code == "bytecode"
    assert caught.value.hint
    assert capfd.readouterr() == ("", "")


def test_a_reader_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bytecode, "SECONDS", 0.5)
    endless = tmp_path / "endless.py"
    endless.write_text("while True: pass")
    assert bytecode.converted(endless, b"").reason == "it did not end within 0 s"
    monkeypatch.undo()
    monkeypatch.setattr(bytecode, "BYTES", 1 << 28)
    greedy = tmp_path / "greedy.py"
    greedy.write_text("bytes(1 << 30)")
    found = bytecode.converted(greedy, b"")
    assert found.text is None
    assert found.reason == "it gave up"


def test_bytecode_without_jaxlib_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "jaxlib.py").write_text("raise ImportError")
    script = r"import shardcore; shardcore.Module.parse(b'ML\xefR')"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
    assert "pip install jaxlib" in done.stderr


def test_options_of_a_jitted_function_hold() -> None:
    def scaled(x: Any, w: Any, n: int, *, bias: Any = None) -> Any:
        return (x @ w) * n + (0 if bias is None else bias)

    fn = jax.jit(scaled, static_argnums=2, donate_argnums=0)
    bias = jax.ShapeDtypeStruct((512,), jnp.float32)
    square = jax.ShapeDtypeStruct((512, 512), jnp.float32)
    given = {"in_shardings": (P("data"), None), "out_shardings": P("data")}
    result = lower(fn, X, square, 3, mesh=SIZES, **given).propagate()
    assert result.out_specs == P("data")
    donated = {"jax.buffer_donor", "tf.aliasing_output"}
    assert donated & set(result.module.arguments()[0].attributes)
    with_bias = lower(fn, X, square, 3, bias=bias, mesh=SIZES, out_shardings=P())
    assert with_bias.propagate().kwarg_specs == {"bias": P()}
    with pytest.raises(LoweringError, match="jitted with donate_argnums"):
        lower(fn, X, square, 3, mesh=SIZES, donate_argnums=1)
    inner = jax.jit(product, in_shardings=(None, NamedSharding(AUTO, P(None, "model"))))
    assert out(lower(inner, X, W, mesh=SIZES, out_shardings=P("data"))) == {"y": P("data")}
    with pytest.raises(LoweringError, match="jitted with in_shardings"):
        lower(inner, X, W, mesh=SIZES, in_shardings=SPECS)


def test_a_jitted_function_may_have_specs_over_a_mesh_without_devices() -> None:
    fn = jax.jit(jnp.dot, in_shardings=(P("data"), P(None, "model")), out_shardings=P())
    lowered = lower(fn, X, W, mesh=SIZES)
    assert [port.sharding is not None for port in lowered.module.arguments()] == [True, True]
    assert lowered.propagate().in_specs == (P("data"), P(None, "model"))
    again = lowered.anew(contextlib.nullcontext)
    assert again.propagate().in_specs == (P("data"), P(None, "model"))


class Scaled:
    @functools.partial(jax.jit, static_argnums=0)
    def run(self, x: Any) -> Any:
        return x * 2


def test_a_jitted_method_is_lowered_for_its_object() -> None:
    lowered = lower(Scaled().run, X)
    assert [port.label for port in lowered.module.arguments()] == ["x"]
    found = lowered.signature()
    assert (found.file, found.is_jitted, found.positional) == (__file__, True, (0,))
    assert lower(jax.grad(lambda x: x.sum()), X).signature().file is None


def test_a_result_has_all_that_the_result_of_a_program_has() -> None:
    public = {name for name in dir(shardcore.Result) if not name.startswith("_")}
    assert public <= set(dir(JaxResult))

    matmul = lower(
        jnp.dot,
        jax.ShapeDtypeStruct((8, 16), jnp.float32),
        jax.ShapeDtypeStruct((16, 4), jnp.float32),
        mesh={"x": 4},
        in_shardings=(P(None, "x"), P("x")),
        out_shardings=P(),
    )
    result = matmul.propagate()
    assert [port.name for port in result.arguments()] == ["%arg0", "%arg1"]
    assert str(result.with_collectives) == str(result.result.with_collectives)
    partitioned = result.partition("shardy")
    assert [collective.kind for collective in partitioned.collectives] == ["all_reduce"]
    assert shardcore.prove(partitioned).is_proven


@since("0.8", "it takes no specs in constraints over a mesh without devices")
def test_keyword_arguments_have_a_tree_of_their_own() -> None:
    def fn(x: Any, *, w: Any) -> Any:
        return jax.lax.with_sharding_constraint(x @ w, P("data", "model"))

    result = lower(fn, X, w=W, mesh=SIZES).propagate()
    assert result.in_specs == (P("data"),)
    assert result.kwarg_specs == {"w": P(None, "model")}
    assert set(result.kwarg_shardings) == {"w"}


def test_arrays_are_taken_for_their_shapes() -> None:
    class Model:
        @functools.partial(jax.jit, static_argnums=0)
        def __call__(self, x: Any, w: Any) -> Any:
            return x @ w

    x, w = np.zeros((64, 512), np.float32), jnp.zeros((512, 128))
    assert out(lower(product, x, w, mesh=SIZES, in_shardings=SPECS)) == {"y": P("data", "model")}
    assert out(lower(lambda x, w: Model()(x, w), x, w, mesh=SIZES, in_shardings=SPECS)) == P(
        "data", "model"
    )
    key = jax.random.key(0)
    drawn = lower(lambda key: jax.random.normal(key, (8, 4)), key, mesh=SIZES)
    assert drawn.propagate().result.results()[0].shape == (8, 4)


def test_specs_are_as_short_as_those_of_jax() -> None:
    def spec(text: str) -> Any:
        return partition_spec(shardcore.TensorSharding.parse(text, mesh=Mesh(SIZES)))

    assert spec('<@m, [{"data"}, {}]>') == P("data")
    assert spec('<@m, [{}, {"model", "data"}]>') == P(None, ("model", "data"))
    assert spec("<@m, [{}, {}]>") == P()
    assert spec('<@m, [{"data"}], unreduced={"model"}>') == P("data", unreduced={"model"})


def test_sub_axes_are_reported_all_at_once() -> None:
    def fn(x: Any) -> Any:
        return x.reshape(16, 6), x

    x = jax.ShapeDtypeStruct((96,), jnp.float32)
    module = lower(fn, x, mesh={"model": 32}, in_shardings=P("model"))
    assert module.propagate().out_specs == (P(), P("model"))
    with pytest.raises(LoweringError) as caught:
        _ = module.propagate(keep_sub_axes_on_io=True).out_shardings
    assert caught.value.code == "unsayable-sharding"
    assert "result[0]" in caught.value.message
    assert caught.value.hint == 'split axis "model"=32 of the mesh into axes of 16 and 2'


def test_arguments_that_jax_adds_are_no_leaves() -> None:
    table = jnp.arange(4.0)
    jax.config.update("jax_use_simplified_jaxpr_constants", True)
    try:
        lowered = lower(lambda x: x * table, jax.ShapeDtypeStruct((8, 4), jnp.float32))
    finally:
        jax.config.update("jax_use_simplified_jaxpr_constants", False)
    assert lowered.propagate().in_specs == (P(),)


def test_what_is_wrong_with_a_program_names_the_function() -> None:
    (size,) = jax.export.symbolic_shape("n")
    shape = jax.ShapeDtypeStruct((size, 4), jnp.float32)
    exported = jax.export.export(jax.jit(lambda x: jnp.sin(x)), platforms=("tpu",))(shape)
    with pytest.raises(PropagationError, match="--> <lambda>:"):
        lower(exported).propagate()


REFUSED = [
    ("invalid-mesh", lambda: lower(product, X, W, mesh={"data": 0})),
    ("invalid-mesh", lambda: lower(product, X, W, mesh={"data": "two"})),
    ("invalid-mesh", lambda: lower(product, X, W, mesh=8)),
    ("invalid-mesh", lambda: lower(product, X, W, mesh=Mesh.maximal(3))),
    ("invalid-mesh", lambda: lower(product, X, W, mesh=Mesh({"x": 2}, device_ids=[1, 0]))),
    ("missing-mesh", lambda: lower(product, X, W, in_shardings=SPECS)),
    ("unknown-axis", lambda: lower(product, X, W, mesh=SIZES, in_shardings=(P("modle"), None))),
    ("lowering", lambda: lower(product, X, W, mesh=SIZES, in_shardings=(P("data"),))),
    ("lowering", lambda: lower(product, X, W, mesh=SIZES, in_shardings=P("data", "data"))),
    ("lowering", lambda: lower(product, X, W, mesh={"data": 3}, in_shardings=P("data"))),
    ("lowering", lambda: lower(product, X, mesh=SIZES)),
    ("not-a-function", lambda: lower("module {}")),
    ("not-a-function", lambda: lower(3)),
    ("unexpected-argument", lambda: lower(jitted().trace(X, W), X)),
    ("unexpected-argument", lambda: lower(b"ML\xefR", in_shardings=P(), mesh=SIZES)),
    ("artifact", lambda: lower(b"")),
    ("artifact", lambda: lower(b"no artifact of any kind, but long enough to look like one")),
]


@pytest.mark.parametrize(("code", "mistake"), REFUSED)
def test_mistakes_have_a_code_and_a_hint(code: str, mistake: Any) -> None:
    with pytest.raises(LoweringError) as caught:
        mistake()
    assert caught.value.code == code
    assert caught.value.hint


def test_every_code_is_raised() -> None:
    # tests/jax/test_compile.py and tests/jax/test_versions.py raise the others.
    elsewhere = {"unsayable-sharding", "devices", "jax-version"}
    assert {code for code, _ in REFUSED} | elsewhere == set(CODES)


def test_what_the_function_raises_is_its_own() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        lower(fails, X, mesh=SIZES)
    assert not isinstance(caught.value, ShardcoreError)


def test_importing_shardcore_does_not_import_jax() -> None:
    script = "import sys, shardcore; assert 'jax' not in sys.modules; shardcore.jax.lower"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_without_jax_the_error_says_what_to_install() -> None:
    script = "import sys; sys.modules['jax'] = None\nimport shardcore\nimport shardcore.jax"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'shardcore[jax]'" in done.stderr


def test_shardings_that_only_sdy_can_say() -> None:
    tree = {"layers": [{"w": W, "b": None}, {"w": W, "unused": X}], "x": X}
    sharding = shardcore.TensorSharding.parse('<@mesh, [{"model":(1)2, ?}p1, {?}]>')

    def products(tree: Any, scale: Any) -> Any:
        return [tree["x"] @ layer["w"] * scale for layer in tree["layers"]]

    lowered = lower(
        products,
        tree,
        1.0,
        mesh=SIZES,
        in_shardings=({"layers": sharding, "x": P("data")}, None),
        out_shardings=[None, sharding],
    )
    found = {port.label: str(port.sharding) for port in lowered.module.arguments()}
    assert found["tree['layers'][0]['w']"] == found["tree['layers'][1]['w']"] == str(sharding)
    assert found["tree['x']"] == '<@mesh, [{"data"}, {}]>'
    assert found["scale"] == "None"
    results = [port.sharding for port in lowered.module.results()]
    assert list(map(str, results)) == ["None", str(sharding)]
    with pytest.raises(ShardcoreError, match="doesn't match tensor rank"):
        lower(products, tree, 1.0, mesh=SIZES, in_shardings=(None, sharding))


def test_shardings_as_text() -> None:
    """Leaves take what a session takes."""
    for text in ('[{"data"}, {}]', '<@mesh, [{"data"}, {}]>', 'P("data")', "P('data', None)"):
        result = lower(product, X, W, mesh=SIZES, in_shardings=(text, None)).propagate()
        assert result.in_specs[0] == P("data")
        result = lower(product, X, W, mesh=SIZES, out_shardings={"y": text}).propagate()
        assert result.out_specs == {"y": P("data")}
    # One text is a prefix of all leaves.
    both = lower(product, X, W, mesh=SIZES, in_shardings='[{?}, {"model":(1)2, ?}p1]')
    assert [str(port.sharding) for port in both.module.arguments()] == [
        '<@mesh, [{?}, {"model":(1)2, ?}p1]>'
    ] * 2
    with pytest.raises(ShardcoreError, match="unknown-axis"):
        lower(product, X, W, mesh=SIZES, in_shardings=('[{"dta"}, {}]', None))
    with pytest.raises(LoweringError, match="missing-mesh"):
        lower(product, X, W, in_shardings=('[{"data"}, {}]', None))


def test_specs_with_unconstrained_dims_leave_them_open() -> None:
    """JAX takes such specs in constraints only."""
    open_rows = P(P.UNCONSTRAINED, "model")
    turned = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    on_mesh = NamedSharding(turned, open_rows)
    for sharding in (open_rows, on_mesh):
        lowered = lower(product, X, W, mesh=SIZES, in_shardings=(P("data"), sharding))
        given = [str(port.sharding) for port in lowered.module.arguments()]
        assert given == ['<@mesh, [{"data"}, {}]>', '<@mesh, [{?}, {"model"}]>']
    lowered = lower(product, X, W, mesh=SIZES, out_shardings={"y": P(None, P.UNCONSTRAINED)})
    assert [str(port.sharding) for port in lowered.module.results()] == ["<@mesh, [{}, {?}]>"]
    with pytest.raises(LoweringError, match='names axis "dta"'):
        lower(product, X, W, mesh=SIZES, in_shardings=P(P.UNCONSTRAINED, "dta"))
    with pytest.raises(LoweringError, match="missing-mesh"):
        lower(product, X, W, in_shardings=open_rows)
    with pytest.raises(ShardcoreError, match="x: the spec has 3 entries"):
        lower(product, X, W, mesh=SIZES, in_shardings=P(None, None, P.UNCONSTRAINED))


def test_a_session_of_a_function() -> None:
    session = lower(product, X, W, mesh=SIZES).session()
    session.set({"x": P("data"), "w": P(None, "model")})
    assert session.result.in_specs == SPECS
    assert session.result.out_specs == {"y": P("data", "model")}
    session.set("x", P(P.UNCONSTRAINED, None))
    assert session.result.out_specs == {"y": P(None, "model")}
