"""Random bits, Fourier transforms, linear algebra, and what is called by a target's name."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from jax._src.lax import linalg as lax_linalg
from shardcore import Module

from tests.simulate import agree, xla
from tests.simulate.check import check, check_text, few, function, lowered

SHAPES = st.lists(st.integers(1, 6), max_size=3).map(tuple)


@few
@given(
    SHAPES,
    st.sampled_from(["ui32", "ui64", "ui8", "ui16"]),
    st.sampled_from([("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 2)]),
    st.integers(0, 2**32),
)
def test_random_bits_are_those_of_xla(
    shape: tuple[int, ...], element: str, algorithm: tuple[str, int], seed: int
) -> None:
    name, words = algorithm
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 2**64, words, np.uint64)
    # A counter that overflows into its upper half.
    if seed % 2:
        state[1] = 2**64 - 2
    kinds = f"tensor<{words}xui64>", f"tensor<{'x'.join(map(str, (*shape, element)))}>"
    body = [
        f"%s, %b = stablehlo.rng_bit_generator %x, algorithm = {name} : "
        f"({kinds[0]}) -> ({kinds[0]}, {kinds[1]})"
    ]
    check_text(function(body, {"x": kinds[0]}, {"s": kinds[0], "b": kinds[1]}), state)


def test_keys_of_jax() -> None:
    def drawn(seed: Any) -> Any:
        key = jax.random.wrap_key_data(jnp.stack([seed, seed + 1]))
        one, two = jax.random.split(key)
        return jax.random.bits(one, (3, 5)), jax.random.randint(two, (7,), 0, 100)

    check(drawn, np.uint32(12))
    check(lambda s: jax.random.uniform(jax.random.key(s), (50,)), np.uint32(3))
    check(lambda s: jax.random.normal(jax.random.key(s), (50,)), np.uint32(3), bound=64)
    check(lambda s: jax.random.bits(jax.random.key(s, impl="rbg"), (5, 3)), np.uint32(3))


@few
@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=4).map(tuple),
    st.integers(1, 3),
    st.sampled_from(list(lax.FftType)),
    st.booleans(),
)
def test_fourier_transforms(shape: tuple[int, ...], rank: int, kind: Any, is_double: bool) -> None:
    lengths = shape[-min(rank, len(shape)) :]
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    if kind == lax.FftType.RFFT:
        x = x.real
    if kind == lax.FftType.IRFFT:
        lengths = (*lengths[:-1], 2 * lengths[-1] - 1)
    x = x.astype({True: np.float64, False: np.float32}[is_double] if x.dtype.kind == "f"
                 else {True: np.complex128, False: np.complex64}[is_double])  # fmt: skip
    text = lowered(lambda x: lax.fft(x, kind, lengths), x)
    [got], [want] = Module.parse(text).simulate(x), xla.run(text, x)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    size = np.abs(want).max(initial=1)
    assert np.abs(got - want).max(initial=0) <= 16 * np.finfo(got.dtype).eps * size


def spd(rng: np.random.Generator, dtype: Any, size: int = 5) -> Any:
    """Three positive definite matrices."""
    x = rng.standard_normal((3, size, size))
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(x.shape)
    return (x @ x.conj().swapaxes(-1, -2) + np.eye(size)).astype(dtype)


def close(text: str, *arrays: Any, scale: float = 200) -> None:
    """Fails unless results are within ``scale`` units of the largest number."""
    for got, want in zip(Module.parse(text).simulate(*arrays), xla.run(text, *arrays), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if not agree.is_inexact(got.dtype):
            assert np.array_equal(got, want)
            continue
        assert np.array_equal(np.isnan(got), np.isnan(want))
        distance = np.nan_to_num(np.abs(got - want)).max(initial=0)
        assert distance <= scale * np.finfo(got.dtype).eps * np.nanmax(np.abs(want), initial=1)


DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky(dtype: str, lower: bool) -> None:
    x = spd(np.random.default_rng(0), dtype)
    x[1, 2, 2] = -1
    element = {"float32": "f32", "float64": "f64", "complex64": "complex<f32>",
               "complex128": "complex<f64>"}[dtype]  # fmt: skip
    kind = f"tensor<3x5x5x{element}>"
    body = [f"%r = stablehlo.cholesky %x, lower = {str(lower).lower()} : {kind}"]
    found = Module.parse(function(body, {"x": kind}, {"r": kind})).simulate(x)[0]
    wanted = np.linalg.cholesky(x[[0, 2]])
    wanted = wanted if lower else wanted.conj().swapaxes(-1, -2)
    assert np.abs(found[[0, 2]] - wanted).max() < 1e-5
    assert np.isnan(found[1]).any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_systems(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = spd(rng, dtype), spd(rng, dtype)[:, :, :4]
    for left in (True, False):
        for lower in (True, False):
            for how in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
                for unit in (True, False):
                    flags = {
                        "left_side": left, "lower": lower, "unit_diagonal": unit
                    }  # fmt: skip
                    other = b if left else b.swapaxes(-1, -2).copy()
                    assert solves(a, other, how, **flags)


def solves(a: Any, b: Any, how: str, **flags: bool) -> bool:
    """Whether the simulator's solution is one."""
    element = {"f": "f32", "d": "f64", "F": "complex<f32>", "D": "complex<f64>"}[a.dtype.char]
    kinds = [f"tensor<{'x'.join(map(str, (*x.shape, element)))}>" for x in (a, b)]
    written = ", ".join(f"{name} = {str(flag).lower()}" for name, flag in flags.items())
    body = [
        f'%r = "stablehlo.triangular_solve"(%a, %b) <{{{written}, '
        f"transpose_a = #stablehlo<transpose {how}>}}> : ({kinds[0]}, {kinds[1]}) -> {kinds[1]}"
    ]
    text = function(body, {"a": kinds[0], "b": kinds[1]}, {"r": kinds[1]})
    [x] = Module.parse(text).simulate(a, b)
    t = np.tril(a) if flags["lower"] else np.triu(a)
    if flags["unit_diagonal"]:
        t = t - t * np.eye(5) + np.eye(5)
    t = {"NO_TRANSPOSE": t, "TRANSPOSE": t.swapaxes(-1, -2), "ADJOINT": t.conj().swapaxes(-1, -2)}[
        how
    ]
    back = t @ x if flags["left_side"] else x @ t
    scale = np.abs(t).max() * np.abs(x).max()
    return bool(np.abs(back - b).max() <= 50 * np.finfo(a.dtype).eps * max(scale, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_lapack(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = spd(rng, dtype)
    tall = np.concatenate([x, 2 * x[:, :2]], axis=1)
    close(lowered(lambda x: lax.linalg.lu(x)[:2], x), x)
    close(lowered(lambda x: jnp.linalg.cholesky(x), x), x)
    close(lowered(lambda x: jnp.linalg.qr(x), tall), tall, scale=2000)
    close(lowered(lambda x: jnp.linalg.solve(x, x[:, :, :2]), x), x, scale=5000)
    close(lowered(lambda x: jnp.linalg.eigvalsh(x), x), x)
    close(lowered(lambda x: jnp.linalg.svd(x, compute_uv=False), tall), tall)

    def multiplied(a: Any, c: Any) -> Any:
        packed, scales = lax_linalg.geqrf(a)
        return (
            lax_linalg.ormqr(packed, scales, c, left=True),
            lax_linalg.ormqr(packed, scales, c, left=True, transpose=True),
            lax_linalg.ormqr(packed, scales, c.swapaxes(-1, -2), left=False),
        )

    close(lowered(multiplied, tall, tall[:, :, :3]), tall, tall[:, :, :3], scale=2000)
    diagonals = [x[:, 0] * 0.1, x[:, 1] + 3, x[:, 2] * 0.1]
    close(lowered(lax.linalg.tridiagonal_solve, *diagonals, x), *diagonals, x, scale=2000)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_eigenvectors_on_both_sides(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 5, 5)).astype(dtype)
    text = lowered(lax.linalg.eig, x)
    values, left, right = Module.parse(text).simulate(x)
    assert np.abs(x @ right - right * values[:, None]).max() < 1e-5
    turned = left.conj().swapaxes(-1, -2)
    assert np.abs(turned @ x - values[..., None] * turned).max() < 1e-5
    lengths = np.linalg.norm(right, axis=1), np.linalg.norm(left, axis=1)
    assert np.allclose(lengths, 1, atol=1e-6)


@pytest.mark.parametrize("full", [True, False])
def test_factors_that_have_a_free_sign_multiply_to_the_matrix(full: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 6, 4)).astype(np.float32)
    text = lowered(lambda x: jnp.linalg.svd(x, full_matrices=full), x)
    u, s, vh = Module.parse(text).simulate(x)
    assert np.abs((u[..., :4] * s[..., None, :]) @ vh - x).max() < 1e-5
    square = x @ x.swapaxes(-1, -2)
    text = lowered(lambda x: jnp.linalg.eigh(x), square)
    values, vectors = Module.parse(text).simulate(square)
    assert np.abs((vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2) - square).max() < 1e-4


def test_batch_norms() -> None:
    rng = np.random.default_rng(0)
    x, grad = (rng.standard_normal((4, 3, 5)).astype(np.float32) for _ in range(2))
    scale, offset, mean = (rng.standard_normal(3).astype(np.float32) for _ in range(3))
    variance = np.abs(mean) + np.float32(0.5)
    kind, feature = "tensor<4x3x5xf32>", "tensor<3xf32>"
    how = "<{epsilon = 0.001 : f32, feature_index = 1 : i64}>"
    body = [
        f'%0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {how} '
        f": ({kind}, {feature}, {feature}, {feature}, {feature}) -> {kind}",
        f'%1, %2, %3 = "stablehlo.batch_norm_training"(%x, %s, %o) {how} '
        f": ({kind}, {feature}, {feature}) -> ({kind}, {feature}, {feature})",
        f'%4, %5, %6 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) {how} '
        f": ({kind}, {feature}, {feature}, {feature}, {kind}) -> ({kind}, {feature}, {feature})",
    ]
    arguments = {"x": kind, "s": feature, "o": feature, "m": feature, "v": feature, "g": kind}
    kinds = [kind, kind, feature, feature, kind, feature, feature]
    text = function(body, arguments, {str(at): each for at, each in enumerate(kinds)})
    close(text, x, scale, offset, mean, variance, grad)


def test_approximate_top_k_is_exact() -> None:
    x = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)
    traced = jax.jit(lambda x: lax.approx_max_k(x, 4)).trace(x)
    text = str(traced.lower(lowering_platforms=("tpu",)).as_text())
    values, places = Module.parse(text).simulate(x)
    assert np.array_equal(values, -np.sort(-x, axis=1)[:, :4])
    assert np.array_equal(np.take_along_axis(x, places, axis=1), values)


@pytest.mark.parametrize("compute", [
    jnp.linalg.eigvals,
    lambda x: jnp.linalg.eigh(x)[0],
    lambda x: jnp.linalg.svd(x)[1],
    lambda x: jnp.linalg.svd(x, compute_uv=False),
])  # fmt: skip
def test_matrices_that_are_not_finite_leave_others_alone(compute: Any) -> None:
    """NumPy refuses the whole stack."""
    x = np.stack([np.eye(3), np.full((3, 3), np.nan), np.diag([1.0, 2, 3])]).astype(np.float32)
    [values] = Module.parse(lowered(compute, x)).simulate(x)
    assert np.isnan(values[1]).all()
    np.testing.assert_allclose(np.sort(np.abs(values[2])), [1, 2, 3], rtol=1e-6)
