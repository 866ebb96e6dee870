"""What depends on the version of JAX, and whom errors blame."""

from __future__ import annotations

from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore.jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore import LoweringError, ShardcoreError, TensorSharding
from shardcore.calculus import parse_spec
from shardcore.jax import callbacks, equations, lower, private, versions
from shardcore.jax.refusals import ask
from shardcore.jax.specs import unreduced_kind

from tests.jax.versions import JAX, set_mesh, since

SIZES = {"x": 2, "y": 4}
EXPLICIT = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
X = jax.ShapeDtypeStruct((8, 16), jnp.float32)
UNREDUCED = P("x", unreduced={"y"})
NO_EXPLICIT = "it has no explicit axes without devices"


def product(a: Any) -> Any:
    return jnp.dot(a, a.T, out_sharding=UNREDUCED)


def test_versions_are_compared_by_their_numbers() -> None:
    assert versions.parsed("0.12.0.1") > versions.parsed("0.12.0") > versions.parsed("0.9.2.dev1")
    assert versions.parsed("0.10.0rc1") == (0, 10)
    assert not versions.is_older(versions.OLDEST)


def test_an_older_jax_is_refused_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "__version__", "0.6.2")
    assert versions.is_older(versions.OLDEST)


def test_an_exception_of_our_own_is_not_called_one_of_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: Any, **__: Any) -> Any:
        raise RecursionError("maximum recursion depth exceeded")

    for place, name in ((equations, "_replaced"), (callbacks, "_lowered"), (private, "over")):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, wrong)
            if name == "_replaced":
                with pytest.raises(RecursionError):
                    lower(jnp.sin, X, mesh=SIZES)
    # A rule of lowering of shardcore's, which JAX calls.
    rule = callbacks._TARGETS
    with monkeypatch.context() as patch:
        patch.setitem(rule, "debug_callback", object())
        patch.setitem(rule, "debug_print", object())
        with pytest.raises(Exception) as caught:  # noqa: PT011
            lower(lambda x: jax.debug.print("{}", x), X, mesh=SIZES)
    assert not isinstance(caught.value, LoweringError)
    assert "JAX refuses" not in str(caught.value)


def test_what_jax_refuses_is_said_to_be_its_refusal() -> None:
    with pytest.raises(LoweringError, match=r"JAX refuses .*: ") as caught:
        ask(NamedSharding, EXPLICIT, P("z"), what=str(P("z")))
    assert caught.value.code == "lowering"
    assert caught.value.__cause__ is not None


def test_a_private_name_that_is_gone_is_a_matter_of_the_version() -> None:
    class Later:
        _lowering = object()

    with pytest.raises(LoweringError, match=f"JAX {jax.__version__}") as caught:
        private.kept_arguments(Later(), 1)
    assert caught.value.code == "jax-version"
    assert versions.NEWEST in str(caught.value.hint)


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("deserialize unsupported version 99", "a later one"),
        ("older than the 6-month backward-compatibility window", "JAX 0.11.0 and earlier"),
    ],
)
def test_bytes_of_another_version_of_jax(
    said: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(_: bytearray) -> Any:
        raise ValueError(said)

    monkeypatch.setattr(jax.export, "deserialize", refuses)
    with pytest.raises(LoweringError, match="bytes of another version") as caught:
        lower(b"an exported function")
    assert (caught.value.code, hint in str(caught.value.hint)) == ("jax-version", True)


def test_kinds_of_reductions() -> None:
    if JAX >= (0, 11):
        assert unreduced_kind("max") is jax.sharding.UnreducedKind.max
        return
    with pytest.raises(LoweringError, match="by max") as caught:
        unreduced_kind("max")
    assert caught.value.code == "jax-version"
    assert "0.11" in str(caught.value.hint)


@pytest.mark.parametrize("kind", ["max", "min"])
def test_specs_say_the_kind_of_reduction(kind: str) -> None:
    """The engine reads it, or says that it does not: sums are never taken for it."""
    text = f"P('x', unreduced={{'y'}}, unreduced_kind={kind})"
    given: list[Any] = [text]
    if JAX >= (0, 11):
        given.append(P("x", unreduced={"y"}, unreduced_kind=unreduced_kind(kind)))
        assert str(given[1]) == str(parse_spec(text)) == text
    for spec in given:
        try:
            lowered = lower(jnp.sin, X, mesh=SIZES, in_shardings=spec)
        except ShardcoreError as error:
            assert f"unreduced={kind}{{" in str(error)  # noqa: PT017
        else:
            [sharding] = [port.sharding for port in lowered.module.arguments()]
            assert str(sharding) == f'<@mesh, [{{"x"}}, {{}}], unreduced={kind}{{"y"}}>'


def test_specs_as_jax_prints_them() -> None:
    for text in (
        "P('x', unreduced={'y'})",
        "P('x', unreduced={'y'}, unreduced_kind=sum)",
        "P('x', unreduced={'y'}, reduced={'z'})",
        str(UNREDUCED),
    ):
        assert parse_spec(text).unreduced == {"y"}
    assert parse_spec("P('x', reduced={'y'})") == parse_spec('P("x", reduced={"y"})')
    with pytest.raises(ShardcoreError, match="a kind, one of sum, max, min"):
        parse_spec("P('x', unreduced={'y'}, unreduced_kind=mean)")


def test_automatic_axes_may_be_unreduced() -> None:
    """JAX takes such specs over explicit axes only."""
    lowered = lower(lambda a: a, X, mesh=SIZES, in_shardings=UNREDUCED, out_shardings=UNREDUCED)
    [argument] = lowered.module.arguments()
    assert str(argument.sharding) == '<@mesh, [{"x"}, {}], unreduced={"y"}>'
    result = lowered.propagate()
    assert result.in_specs == (UNREDUCED,)
    with pytest.raises(LoweringError, match="not explicit") as caught:
        _ = result.in_shardings
    assert caught.value.code == "unsayable-sharding"
    with pytest.raises(LoweringError, match='names axis "z"'):
        lower(jnp.sin, X, mesh=SIZES, in_shardings=P("x", unreduced={"z"}))
    with pytest.raises(LoweringError, match="JAX refuses") as caught:
        lower(jnp.sin, X, mesh=SIZES, in_shardings=P("x", reduced={"y"}))
    assert "AxisType.Explicit" in str(caught.value.hint)


@since("0.8", NO_EXPLICIT)
def test_explicit_types_say_what_is_unreduced() -> None:
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(EXPLICIT, P("x", "y")))
    result = lower(product, x, mesh=EXPLICIT).propagate()
    assert result.out_specs == UNREDUCED
    assert result.out_shardings == NamedSharding(EXPLICIT, UNREDUCED)

    def reduced(a: Any) -> Any:
        return jax.sharding.reshard(product(a), P("x"))

    assert lower(reduced, x, mesh=EXPLICIT).propagate().out_specs == P("x")
    traced = jax.jit(product).trace
    with private.over(EXPLICIT):
        assert lower(traced(x)).propagate().out_specs == UNREDUCED


@since("0.8", NO_EXPLICIT)
def test_gradients_of_reduced_arguments_are_unreduced() -> None:
    def loss(w: Any, a: Any) -> Any:
        return jnp.sum(jnp.dot(a, w))

    w = jax.ShapeDtypeStruct(
        (16, 8), X.dtype, sharding=NamedSharding(EXPLICIT, P(None, "y", reduced={"x"}))
    )
    a = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(EXPLICIT, P("x")))
    lowered = lower(jax.grad(loss), w, a, mesh=EXPLICIT)
    assert lowered.propagate().out_specs == P(None, "y", unreduced={"x"})


@since("0.8", NO_EXPLICIT)
def test_unreduced_arrays_on_devices() -> None:
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    with set_mesh(mesh):
        a = jax.device_put(np.ones(X.shape, X.dtype), NamedSharding(mesh, P("x", "y")))
        lowered = lower(product, a)
        if (0, 8, 2) <= JAX < (0, 9, 1):
            with pytest.raises(LoweringError, match="has no jax") as caught:
                shardcore.jax.compile(lowered)
            assert (caught.value.code, "0.9.1" in str(caught.value.hint)) == ("jax-version", True)
            return
        compiled = shardcore.jax.compile(lowered)
        found = compiled(a)
        assert found.sharding.spec.unreduced == {"y"}
        twice = shardcore.jax.compile(lower(lambda u: jax.sharding.reshard(u, P("x")), found))
        np.testing.assert_array_equal(jax.device_get(twice(found)), np.full((8, 8), 16.0))


@since("0.8", NO_EXPLICIT)
def test_an_abstract_mesh_has_the_axes_that_this_jax_gives_it() -> None:
    """Explicit ones since JAX 0.11.1: shardings are in the types of arguments, as in JAX."""
    mesh = AbstractMesh((2, 4), ("x", "y"))
    explicit = JAX >= (0, 11, 1)
    assert (mesh.axis_types[0] is AxisType.Explicit) == explicit
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=NamedSharding(mesh, P("x", "y")))
    result = lower(lambda a: a * 2, x, mesh=mesh).propagate()
    assert result.out_specs == P("x", "y")
    assert result.out_shardings.mesh == mesh
    sizes = lower(lambda a: a * 2, X, mesh=SIZES, in_shardings=P("x", "y")).propagate()
    assert set(sizes.out_shardings.mesh.axis_types) == {AxisType.Auto}


def test_a_sharding_that_no_spec_of_this_jax_says() -> None:
    try:
        sharding = TensorSharding.parse('<mesh<["x"=2, "y"=4]>, [{"x"}], unreduced=max{"y"}>')
    except ShardcoreError:
        pytest.skip("the engine does not read kinds of reductions")
    if JAX >= (0, 11):
        assert shardcore.jax.partition_spec(sharding).unreduced_kind.name == "max"
        return
    with pytest.raises(LoweringError) as caught:
        shardcore.jax.partition_spec(sharding)
    assert caught.value.code == "jax-version"
