"""Factorisations that frameworks call LAPACK for, and the equivalent targets on GPUs and TPUs.

Results equal LAPACK's up to rounding: everything is computed in 64 bits. Eigenvectors and singular
vectors are determined only up to a factor of absolute value one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shardcore.simulate.linalg import adjoint, cholesky_of, lapack_type, solved
from shardcore.simulate.registry import arrays
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array

__all__ = ["TARGETS"]

Factors = Sequence[Array]


def _kernel(site: Site, compute: Callable[..., Factors]) -> Kernel:
    """The kernel of a call whose operands are matrices; results have the types of the call."""

    def run(*operands: Array) -> Factors | Array:
        kinds = [x.astype(lapack_type(x.dtype)) if x.dtype.kind in "fcV" else x for x in operands]
        found = [
            np.broadcast_to(part, (len(part), *kind.shape)).astype(kind.dtype)
            for part, kind in zip(compute(*kinds), site.results, strict=True)
        ]
        return found[0] if len(found) == 1 else found

    return arrays(run)


def _letter(site: Site, name: str) -> str:
    """The letter of a LAPACK option."""
    return chr(int(site.options()[name]))


def _status(x: Array, failed: Any = None) -> Array:
    """LAPACK's status: one for each matrix without a factorisation, else zero."""
    if failed is None:
        return np.zeros(x.shape[:-2], np.int32)
    return np.asarray(failed, np.int32)


def _potrf(site: Site) -> Kernel:
    lower = _letter(site, "uplo") == "L"

    def compute(x: Array) -> Factors:
        found = cholesky_of(x, lower)
        # The other triangle keeps its elements.
        kept = np.tril(found) + np.triu(x, 1) if lower else np.triu(found) + np.tril(x, -1)
        return kept, _status(x, np.isnan(found).any(axis=(-1, -2)))

    return _kernel(site, compute)


def _trsm(site: Site) -> Kernel:
    side, uplo, diagonal = (_letter(site, name) for name in ("side", "uplo", "diag"))
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[_letter(site, "trans_x")]

    def compute(a: Array, b: Array) -> Factors:
        return (
            solved(
                a,
                b,
                left=side == "L",
                lower=uplo == "L",
                unit=diagonal == "U",
                transpose=transpose,
            ),
        )

    return _kernel(site, compute)


def lu_of(x: Array) -> tuple[Array, Array]:
    """Both factors in one matrix, and the pivots: for each row the row that it was swapped with.

    Source: Gaussian elimination with partial pivoting.
    """
    shape = x.shape
    a = x.reshape(-1, *shape[-2:]).copy()
    lines = np.arange(len(a))
    steps = min(shape[-2:])
    pivots = np.zeros((len(a), steps), np.int32)
    for at in range(steps):
        column = a[:, at:, at]
        size = np.abs(column.real) + np.abs(column.imag)
        best = at + size.argmax(axis=1)
        pivots[:, at] = best
        upper = a[lines, at].copy()
        a[lines, at] = a[lines, best]
        a[lines, best] = upper
        pivot = a[:, at, at]
        below = a[:, at + 1 :, at] / np.where(pivot == 0, 1, pivot)[:, None]
        a[:, at + 1 :, at] = below
        a[:, at + 1 :, at + 1 :] -= below[:, :, None] * a[:, at, None, at + 1 :]
    return a.reshape(shape), pivots.reshape(*shape[:-2], steps)


def _getrf(site: Site) -> Kernel:
    def compute(x: Array) -> Factors:
        found, pivots = lu_of(x)
        zero = np.diagonal(found, axis1=-2, axis2=-1) == 0
        status = np.where(zero.any(axis=-1), zero.argmax(axis=-1) + 1, 0)
        return found, pivots + 1, _status(x, status)

    return _kernel(site, compute)


def _lu_decomposition(site: Site) -> Kernel:
    def compute(x: Array) -> Factors:
        found, pivots = lu_of(x)
        rows = np.broadcast_to(np.arange(x.shape[-2]), (*pivots.shape[:-1], x.shape[-2]))
        order = rows.reshape(-1, x.shape[-2]).copy()
        lines = np.arange(len(order))
        for at, best in enumerate(pivots.reshape(len(order), -1).T):
            order[lines, at], order[lines, best] = order[lines, best], order[lines, at].copy()
        return found, pivots, order.reshape(rows.shape)

    return _kernel(site, compute)


def _geqrf(site: Site) -> Kernel:
    def compute(x: Array) -> Factors:
        stack = x.reshape(-1, *x.shape[-2:])
        found = [np.linalg.qr(matrix, mode="raw") for matrix in stack]
        h = np.stack([h.T for h, _ in found]).reshape(x.shape)
        return h, np.stack([tau for _, tau in found]).reshape(*x.shape[:-2], -1)

    return _kernel(site, compute)


def q_of(x: Array, scales: Array, columns: int) -> Array:
    """The first columns of the product of the reflectors below the diagonal of ``x``."""
    found = np.eye(x.shape[-2], columns, dtype=x.dtype)
    found = np.broadcast_to(found, (*x.shape[:-1], columns)).copy()
    for at in reversed(range(scales.shape[-1])):
        v = np.tril(x, -1)[..., :, at, None].copy()
        v[..., at, 0] = 1
        found -= scales[..., at, None, None] * v @ (adjoint(v) @ found)
    return found


def _orgqr(site: Site) -> Kernel:
    return _kernel(site, lambda x, scales: (q_of(x, scales, x.shape[-1]),))


def _ormqr(site: Site) -> Kernel:
    options = site.options()
    is_left, is_turned = bool(options["left"]), bool(options["transpose"])

    def compute(x: Array, scales: Array, c: Array) -> Factors:
        q = q_of(x, scales, x.shape[-2])
        q = adjoint(q) if is_turned else q
        return (q @ c if is_left else c @ q,)

    return _kernel(site, compute)


def _of_finite(compute: Callable[[Array], Factors], x: Array) -> list[Array]:
    """``compute`` applied to a stack of matrices, with NaN for those that are not finite.

    NumPy refuses the whole stack if one matrix is not finite, as padding may be.
    """
    is_finite: Array = np.asarray(np.isfinite(x).all(axis=(-1, -2)))
    found = compute(np.where(is_finite[..., None, None], x, np.eye(*x.shape[-2:])))
    masks = [is_finite.reshape(is_finite.shape + (1,) * (part.ndim - x.ndim + 2)) for part in found]
    return [np.where(mask, part, np.nan) for mask, part in zip(masks, found, strict=True)]


def _geev(site: Site) -> Kernel:
    is_real = len(site.results) == 5

    def compute(x: Array) -> Factors:
        values, right = _of_finite(np.linalg.eig, x)
        # Rows of the inverse are the left eigenvectors, up to scaling.
        [left] = _of_finite(lambda known: [adjoint(np.linalg.inv(known))], right)
        left = left / np.linalg.norm(left, axis=-2, keepdims=True)
        parts = (values.real, values.imag) if is_real else (values,)
        return *parts, left, right, _status(x)

    return _kernel(site, compute)


def _gtsv(site: Site) -> Kernel:
    def compute(low: Array, middle: Array, high: Array, b: Array) -> Factors:
        size = middle.shape[-1]
        matrix = middle[..., None] * np.eye(size)
        # The first subdiagonal and the last superdiagonal element lie outside of the matrix.
        matrix = matrix + low[..., None] * np.eye(size, k=-1)
        matrix = matrix + high[..., None] * np.eye(size, k=1)
        singular = np.linalg.det(matrix) == 0
        matrix = np.where(singular[..., None, None], np.eye(size), matrix)
        return low, middle, high, np.linalg.solve(matrix, b), _status(matrix, singular)

    return _kernel(site, compute)


def _gesdd(site: Site) -> Kernel:
    mode = _letter(site, "mode")

    def compute(x: Array) -> Factors:
        if mode == "N":
            [s] = _of_finite(lambda known: [np.linalg.svd(known, compute_uv=False)], x)
            empty = [np.zeros((1, *kind.shape)) for kind in site.results[2:4]]
            return x, s, *empty, _status(x)
        u, s, vh = _of_finite(lambda known: np.linalg.svd(known, full_matrices=mode == "A"), x)
        return x, s, u, vh, _status(x)

    return _kernel(site, compute)


def _syevd(site: Site) -> Kernel:
    uplo = _letter(site, "uplo")

    def compute(x: Array) -> Factors:
        values, vectors = _of_finite(lambda x: np.linalg.eigh(x, "L" if uplo == "L" else "U"), x)
        return vectors, values, _status(x)

    return _kernel(site, compute)


def _eigh(site: Site) -> Kernel:
    lower = str(site.attributes["backend_config"]).split(",")[0] == "1"

    def compute(x: Array) -> Factors:
        values, vectors = _of_finite(lambda x: np.linalg.eigh(x, "L" if lower else "U"), x)
        return vectors, values

    return _kernel(site, compute)


_BY_NAME: dict[str, Callable[[Site], Kernel]] = {
    "potrf": _potrf,
    "trsm": _trsm,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
    "ormqr": _ormqr,
    "unmqr": _ormqr,
    "geev": _geev,
    "gesdd": _gesdd,
    "gesvd": _gesdd,
    "gtsv": _gtsv,
    "syevd": _syevd,
    "heevd": _syevd,
}

TARGETS: dict[str, Callable[[Site], Kernel]] = {
    **{f"lapack_{kind}{name}_ffi": make for name, make in _BY_NAME.items() for kind in "sdcz"},
    "Eigh": _eigh,
    "LuDecomposition": _lu_decomposition,
    "ProductOfElementaryHouseholderReflectors": _orgqr,
    "Qr": _geqrf,
}
"""The function that prepares a call, by target."""
