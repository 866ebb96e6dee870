"""Linear algebra: ``cholesky``, ``triangular_solve``, and batch norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shardcore.simulate.dtypes import in_type, is_complex, is_float
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array, fitted

__all__ = ["cholesky_of", "in_lapack", "solved"]


def lapack_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of computation for values of ``dtype``: 64 bits."""
    return np.dtype(np.complex128 if is_complex(dtype) else np.float64)


def in_lapack(compute: Callable[..., Array], dtype: np.dtype[Any]) -> Callable[..., Array]:
    """``compute`` in 64 bits, with the result converted to ``dtype``."""
    kind = lapack_type(dtype) if is_float(dtype) or is_complex(dtype) else dtype
    return lambda *operands: in_type(compute(*(x.astype(kind) for x in operands)), dtype)


def adjoint(x: Array) -> Array:
    """Matrices transposed and conjugated."""
    return np.conj(x.swapaxes(-1, -2))


def cholesky_of(x: Array, lower: bool) -> Array:
    """The triangular factors of matrices, reading one triangle; NaN if there is none."""
    kept = np.tril(x) if lower else adjoint(np.triu(x))
    strict = np.tril(kept, -1)
    diagonal = np.real(np.diagonal(x, axis1=-2, axis2=-1))
    whole = strict + adjoint(strict) + diagonal[..., None] * np.eye(x.shape[-1])
    stack = whole.reshape(-1, *x.shape[-2:])
    found = np.full(stack.shape, np.nan, stack.dtype)
    for at, matrix in enumerate(stack):
        try:
            found[at] = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            found[at] = np.tril(found[at])
    found = found.reshape(whole.shape)
    return found if lower else adjoint(found)


@op("stablehlo.cholesky")
def cholesky(site: Site) -> Kernel:
    """The triangular factor of positive definite matrices; the other triangle is zero."""
    lower = bool(site.attributes.get("lower", False))
    compute = in_lapack(lambda x: cholesky_of(x, lower), site.results[0].dtype)
    return arrays(compute)


def solved(a: Array, b: Array, *, left: bool, lower: bool, unit: bool, transpose: str) -> Array:
    """The solutions of systems whose matrices are triangular, row by row.

    Source: forward and backward substitution.
    """
    if transpose != "NO_TRANSPOSE":
        a = a.swapaxes(-1, -2) if transpose == "TRANSPOSE" else adjoint(a)
        lower = not lower
    if not left:
        # x a = b is aᵀ xᵀ = bᵀ.
        turned = solved(
            a.swapaxes(-1, -2),
            b.swapaxes(-1, -2),
            left=True,
            lower=not lower,
            unit=unit,
            transpose="NO_TRANSPOSE",
        )
        return turned.swapaxes(-1, -2)
    a, b = fitted([a, b])
    found = np.zeros(b.shape, b.dtype)
    size = a.shape[-1]
    for at in range(size) if lower else range(size - 1, -1, -1):
        done = slice(0, at) if lower else slice(at + 1, size)
        known = a[..., at : at + 1, done] @ found[..., done, :]
        value = b[..., at : at + 1, :] - known
        found[..., at : at + 1, :] = value if unit else value / a[..., at : at + 1, at : at + 1]
    return found


@op("stablehlo.triangular_solve")
def triangular_solve(site: Site) -> Kernel:
    """The solutions of triangular systems."""
    attributes = site.attributes
    left, lower, unit = (bool(attributes[name]) for name in ("left_side", "lower", "unit_diagonal"))
    transpose = attributes.get("transpose_a", "NO_TRANSPOSE")
    return arrays(
        in_lapack(
            lambda a, b: solved(a, b, left=left, lower=lower, unit=unit, transpose=transpose),
            site.results[0].dtype,
        )
    )


def _channels(x: Array, rank: int, feature: int) -> Array:
    """A vector with an element for each feature, reshaped to broadcast against the tensor."""
    shape = [1] * rank
    shape[feature] = -1
    return x.reshape(len(x), *shape)


@op("stablehlo.batch_norm_inference")
def batch_norm_inference(site: Site) -> Kernel:
    """A tensor normalised by given means and variances of its features."""
    feature, epsilon = site.integer("feature_index"), site.attributes["epsilon"]
    rank, dtype = len(site.operands[0].shape), site.results[0].dtype

    def compute(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> Array:
        parts = (_channels(p, rank, feature) for p in (scale, offset, mean, variance))
        scale, offset, mean, variance = parts
        return scale * (x - mean) / np.sqrt(variance + epsilon) + offset

    return arrays(in_lapack(compute, dtype))


@op("stablehlo.batch_norm_training")
def batch_norm_training(site: Site) -> Kernel:
    """A tensor normalised by the means and variances of its features, and these statistics."""
    feature, epsilon = site.integer("feature_index"), site.attributes["epsilon"]
    rank, dtype = len(site.operands[0].shape), site.results[0].dtype
    others = tuple(dim + 1 for dim in range(rank) if dim != feature)

    def compute(x: Array, scale: Array, offset: Array) -> tuple[Array, Array, Array]:
        x, scale, offset = (value.astype(np.float64) for value in (x, scale, offset))
        mean, variance = x.mean(axis=others), x.var(axis=others)
        centred = x - _channels(mean, rank, feature)
        deviation = np.sqrt(_channels(variance, rank, feature) + epsilon)
        found = _channels(scale, rank, feature) * centred / deviation
        found = found + _channels(offset, rank, feature)
        return found.astype(dtype), mean.astype(dtype), variance.astype(dtype)

    return arrays(compute)


@op("stablehlo.batch_norm_grad")
def batch_norm_grad(site: Site) -> Kernel:
    """The gradients of a normalisation with respect to its operand, scale and offset."""
    feature, epsilon = site.integer("feature_index"), site.attributes["epsilon"]
    rank, dtype = len(site.operands[0].shape), site.results[0].dtype
    others = tuple(dim + 1 for dim in range(rank) if dim != feature)

    def compute(
        x: Array, scale: Array, mean: Array, variance: Array, grad: Array
    ) -> tuple[Array, Array, Array]:
        x, grad = x.astype(np.float64), grad.astype(np.float64)
        scale, mean, variance = (
            _channels(value.astype(np.float64), rank, feature) for value in (scale, mean, variance)
        )
        deviation = np.sqrt(variance + epsilon)
        normal = (x - mean) / deviation
        grad_offset = grad.sum(axis=others)
        grad_scale = (grad * normal).sum(axis=others)
        count = x[0].size // x.shape[feature + 1]
        offset_part, scale_part = (
            _channels(value, rank, feature) / count for value in (grad_offset, grad_scale)
        )
        grad_x = scale / deviation * (grad - offset_part - normal * scale_part)
        return grad_x.astype(dtype), grad_scale.astype(dtype), grad_offset.astype(dtype)

    return arrays(compute)
