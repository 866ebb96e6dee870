"""Matrix factorizations, solves and Fourier transforms, batched, lowered for TPU and CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, constrain, f32, lower, mesh, variants

BATCH, SIZE = 8, 16
MESH = mesh(x=4, y=2)


def _gaussian_process(points: jax.Array, values: jax.Array, scale: jax.Array) -> jax.Array:
    """Negative log marginal likelihood with a squared-exponential kernel."""
    gaps = points[:, :, None] - points[:, None]
    kernel = jnp.exp(-0.5 * jnp.sum(jnp.square(gaps), -1) / scale**2)
    factor = jnp.linalg.cholesky(kernel + 1e-3 * jnp.eye(SIZE))
    whitened = jax.scipy.linalg.solve_triangular(factor, values[..., None], lower=True)
    log_determinant = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), -1)
    return jnp.mean(0.5 * jnp.sum(jnp.square(whitened), (-2, -1)) + log_determinant)


def _orthogonalize(a: jax.Array) -> jax.Array:
    """Newton-Schulz iterations, as optimizers of matrix parameters run them."""

    def improve(_: int, a: jax.Array) -> jax.Array:
        gram = a @ a.mT
        return 1.5 * a - 0.5 * gram @ a

    norm = jnp.sqrt(jnp.sum(jnp.square(a), (-2, -1), keepdims=True))
    return jax.lax.fori_loop(0, 5, improve, a / norm)


def _spectral_filter(x: jax.Array, weights: jax.Array) -> jax.Array:
    """A Fourier layer: transform, mix channels by frequency, transform back."""
    spectrum = jnp.fft.rfft(x, axis=1)
    mixed = jnp.einsum("bfc,fcd->bfd", spectrum, weights.astype(jnp.complex64))
    return jnp.fft.irfft(mixed, n=x.shape[1], axis=1)


def _shampoo(gradient: jax.Array, left: jax.Array, right: jax.Array) -> Tree:
    left = 0.9 * left + gradient @ gradient.mT
    right = 0.9 * right + gradient.mT @ gradient

    def inverse_root(a: jax.Array) -> jax.Array:
        values, vectors = jnp.linalg.eigh(a + 1e-6 * jnp.eye(a.shape[-1]))
        return (vectors * jnp.maximum(values, 1e-6)[..., None, :] ** -0.25) @ vectors.mT

    return inverse_root(left) @ gradient @ inverse_root(right), left, right


def _conjugate_gradient(a: jax.Array, b: jax.Array) -> jax.Array:
    solved, _ = jax.scipy.sparse.linalg.cg(lambda x: jnp.einsum("nij,nj->ni", a, x), b, maxiter=8)
    return solved


_square, _vector = f32(BATCH, SIZE, SIZE), f32(BATCH, SIZE)
_tall, _rows = f32(BATCH, 2 * SIZE, SIZE), P("x", None, "y")

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "cholesky": (jnp.linalg.cholesky, (_square,), (P("x"),)),
    "cholesky_of_split_matrix": (jnp.linalg.cholesky, (_square,), (P(None, "x", "y"),)),
    "qr": (jnp.linalg.qr, (_tall,), (_rows,)),
    "svd": (lambda a: jnp.linalg.svd(a, full_matrices=False), (_tall,), (P("x"),)),
    "eigh": (jnp.linalg.eigh, (_square,), (P("x"),)),
    "lu_solve": (jnp.linalg.solve, (_square, _square), (P("x"), P("x", None, "y"))),
    "inverse": (jnp.linalg.inv, (_square,), (P("x"),)),
    "log_determinant": (jnp.linalg.slogdet, (_square,), (P("x"),)),
    "least_squares": (jax.vmap(jnp.linalg.pinv), (_tall,), (P("x"),)),
    "triangular_solve": (
        lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True, trans=1),
        (_square, _square),
        (P("x"), P(None, None, "y")),
    ),
    "matrix_exponential": (jax.scipy.linalg.expm, (f32(SIZE, SIZE),), (P("x", "y"),)),
    "matrix_power": (lambda a: jnp.linalg.matrix_power(a, 5), (_square,), (P("x"),)),
    "gaussian_process": (
        jax.value_and_grad(_gaussian_process, argnums=(0, 2)),
        (f32(BATCH, SIZE, 3), _vector, f32()),
        (P("x"), None, None),
    ),
    "gradient_of_qr": (
        jax.grad(lambda a: jnp.sum(jnp.linalg.qr(a)[1])),
        (_tall,),
        (P("x"),),
    ),
    "gradient_of_eigh": (
        jax.grad(lambda a: jnp.sum(jnp.linalg.eigh(a)[1])),
        (_square,),
        (P("x"),),
    ),
    "orthogonalize": (_orthogonalize, (_square,), (P("x", "y"),)),
    "spectral_filter": (
        jax.value_and_grad(lambda x, w: jnp.sum(_spectral_filter(x, w)), argnums=1),
        (f32(BATCH, 32, 8), f32(17, 8, 8)),
        (P("x"), P(None, None, "y")),
    ),
    "fft_2d": (
        lambda x: jnp.fft.fftshift(jnp.abs(jnp.fft.fft2(x)), axes=(1, 2)),
        (_square,),
        (P("x", "y"),),
    ),
    "fft_of_split_dim": (jnp.fft.rfft, (_square,), (P("x", None, "y"),)),
    "shampoo": (
        _shampoo,
        (_tall, f32(BATCH, 2 * SIZE, 2 * SIZE), _square),
        (P("x", "y"), P("x"), None),
    ),
    "conjugate_gradient": (_conjugate_gradient, (_square, _vector), (P("x"), None)),
    "kronecker": (jnp.kron, (f32(4, 8), f32(8, 4)), (P("x"), P(None, "y"))),
    "einsum_chain": (
        lambda a, b, c: jnp.einsum("nij,njk,nk->ni", a, b, c),
        (_square, _square, _vector),
        (P("x", "y"), None, None),
    ),
}


@variants(
    **{name: {"name": name} for name in FUNCTIONS},
    **{
        f"{name}_on_cpu": {"name": name, "platform": "cpu"}
        for name in ("cholesky", "qr", "svd", "eigh", "lu_solve", "triangular_solve")
    },
)
def linalg(name: str, platform: str = "tpu", on: AbstractMesh = MESH) -> jax.stages.Lowered:
    function, arguments, specs = FUNCTIONS[name]

    def pinned(*values: jax.Array) -> Tree:
        results = jax.tree.leaves(function(*values))
        return [constrain(y, on, P.UNCONSTRAINED) if y.ndim else y for y in results]

    return lower(pinned, on, arguments, specs, platform=platform)
