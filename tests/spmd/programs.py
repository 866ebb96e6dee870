"""Programs of one op or a few, by name: every family of ops that JAX lowers to.

Data are small integers, so that results are exact unless ``TOLERANCE`` says otherwise.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def array(*shape, d=jnp.float32):
    """An argument."""
    return jax.ShapeDtypeStruct(shape, d)


def well(a):
    """Matrices far from singular ones."""
    return a + 9 * jnp.eye(a.shape[-1])


def pool_grad(select, identity, window, strides, padding):
    """The gradient of the squares of what windows select."""
    return jax.grad(
        lambda a: (lax.reduce_window(a, identity, select, window, strides, padding) ** 2).sum()
    )


i32 = jnp.int32
ONE_OF_ROWS = [array(6, 8), array(6, 1, 1, d=i32), array(6, 1)]


def one_of_rows(scatter, a, i, u):
    """``scatter`` of one element into each row."""
    dims = lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
    return scatter(a, i, u, dims)


OPS = {
    "add": (lambda a, b: a + b, [array(12, 7), array(12, 7)]),
    "mix": (lambda a, b: jnp.where(a > b, a, -b), [array(8, 5), array(8, 5)]),
    "transpose": (lambda a: a.transpose(2, 0, 1), [array(4, 6, 8)]),
    "bcast": (lambda a: jnp.broadcast_to(a[:, None], (8, 6)), [array(8)]),
    "dot": (lambda a, b: a @ b, [array(8, 12), array(12, 10)]),
    "dot_odd": (lambda a, b: a @ b, [array(7, 13), array(13, 9)]),
    "bdot": (lambda a, b: jnp.einsum("bij,bjk->bik", a, b), [array(4, 6, 5), array(4, 5, 8)]),
    "outer": (lambda a, b: jnp.einsum("i,j->ij", a, b), [array(9), array(6)]),
    "sum": (lambda a: a.sum(0), [array(13, 6)]),
    "sumall": (lambda a: a.sum(), [array(13, 6)]),
    "sum_from": (lambda a, b: lax.reduce(a, b[0], lax.add, (0,)), [array(13, 6), array(2)]),
    "sum_from_5": (lambda a: lax.reduce(a, 5.0, lax.add, (0,)), [array(13, 6)]),
    "max_from": (lambda a, b: lax.reduce(a, b[0] * 9, lax.max, (0,)), [array(13, 6), array(2)]),
    # Shards have one row.
    "prod_from_2": (lambda a: lax.reduce(a, 2.0, lax.mul, (0,)), [array(5, 7)]),
    "sum_and_max": (
        lambda a, b, c, d: lax.reduce(
            (a, b), (c[0], d[1]), lambda x, y: (x[0] + y[0], lax.max(x[1], y[1])), (1,)
        ),
        [array(6, 13), array(6, 13, d=i32), array(2), array(2, d=i32)],
    ),
    "max": (lambda a: a.max(1), [array(5, 11)]),
    "min_i": (lambda a: a.min(0), [array(5, 11, d=i32)]),
    "prod": (lambda a: a.prod(0), [array(6, 4)]),
    "any": (lambda a: (a > 0).any(0), [array(7, 4)]),
    "all": (lambda a: (a > -9).all(1), [array(7, 6)]),
    # XLA has no collectives that reduce by these.
    "bitwise": (
        lambda a: (
            jnp.bitwise_xor.reduce(a, 0),
            lax.reduce(a, 3, lax.bitwise_or, (1,)),
            lax.reduce(a, -1, lax.bitwise_and, (0, 1)),
            jnp.bitwise_xor.reduce(a > 1, 1),
        ),
        [array(13, 6, d=i32)],
    ),
    "argmax": (lambda a: a.argmax(0), [array(7, 6)]),
    "reshape_split": (lambda a: a.reshape(4, 6, 5), [array(24, 5)]),
    "reshape_merge": (lambda a: a.reshape(24, 5), [array(4, 6, 5)]),
    "reshape_odd": (lambda a: a.reshape(6, 4), [array(8, 3)]),
    "slice": (lambda a: a[2:9, 1:], [array(12, 8)]),
    "slice_st": (lambda a: a[::2], [array(12, 8)]),
    "pad": (lambda a: jnp.pad(a, ((1, 2), (0, 3))), [array(8, 6)]),
    "padneg": (lambda a: lax.pad(a, jnp.float32(0), ((-1, 1, 0), (2, -2, 0))), [array(8, 6)]),
    "padint": (lambda a: lax.pad(a, jnp.float32(1), ((0, 0, 1), (1, 0, 2))), [array(8, 6)]),
    "argmin_all": (lambda a: a.ravel().argmin(), [array(6, 4)]),
    "argmax2": (lambda a: a.argmax(1), [array(5, 11)]),
    "sort_rows": (lambda a: jnp.sort(a, 1), [array(8, 12)]),
    "fft": (
        lambda a: jnp.round(jnp.abs(jnp.fft.fft(a, axis=1)) * 8),
        [array(8, 8)],
    ),
    "concat3": (
        lambda a, b, c: jnp.concatenate([a, b, c], 1),
        [array(3, 7), array(3, 2), array(3, 9)],
    ),
    "roll2": (lambda a: jnp.roll(a, (2, -3), (0, 1)), [array(9, 8)]),
    "rope": (lambda a: jnp.concatenate([-a[:, 5:], a[:, :5]], 1), [array(4, 10)]),
    "shift": (lambda a: a[1:] - a[:-1], [array(12, 3)]),
    "cummax": (lambda a: lax.cummax(a, 0, reverse=True), [array(11, 3)]),
    "cumsum2": (lambda a: jnp.cumsum(jnp.cumsum(a, 1), 0), [array(8, 6)]),
    "avgpool": (
        lambda a: lax.reduce_window(a, 0.0, lax.add, (3, 2), (1, 2), ((1, 1), (0, 1))),
        [array(13, 8)],
    ),
    "pool_dilated": (
        lambda a: lax.reduce_window(
            a, 2.0, lax.max, (3, 2), (2, 1), ((2, 3), (-1, 1)), (2, 3), (2, 1)
        ),
        [array(9, 6)],
    ),
    "slice2": (lambda a: a[1:11:2, 2:7:3], [array(12, 8)]),
    "slice_st3": (lambda a: a[1::3], [array(13, 4)]),
    "pad2": (
        lambda a: lax.pad(a, jnp.float32(3), ((2, -1, 2), (-1, 3, 1))),
        [array(8, 6)],
    ),
    "pad_far": (lambda a: lax.pad(a, jnp.float32(2), ((9, 0, 0), (0, 7, 0))), [array(4, 6)]),
    "rev2": (lambda a: a[::-1, ::-1], [array(7, 10)]),
    "dslice_known": (lambda a: lax.dynamic_slice(a, (5, 1), (6, 4)), [array(12, 8)]),
    "dslice_two": (
        lambda a, i, j: lax.dynamic_slice(a, (i, j), (4, 3)),
        [array(10, 7), array(d=i32), array(d=i32)],
    ),
    "dslice_i1": (
        lambda a, i: lax.dynamic_slice(a > 0, (i, 0), (3, 4)),
        [array(10, 4), array(d=i32)],
    ),
    "rev": (lambda a: a[::-1], [array(9, 4)]),
    "concat": (lambda a, b: jnp.concatenate([a, b], 0), [array(6, 4), array(5, 4)]),
    "roll": (lambda a: jnp.roll(a, 3, 0), [array(12, 4)]),
    "iota": (lambda a: a + lax.broadcasted_iota(jnp.float32, (11, 6), 0), [array(11, 6)]),
    "const": (lambda a: a + np.arange(24, dtype=np.float32).reshape(6, 4), [array(6, 4)]),
    "cumsum": (lambda a: jnp.cumsum(a, 0), [array(10, 4)]),
    "sort": (lambda a: jnp.sort(a, 0), [array(10, 4)]),
    "sort2": (lambda a: lax.sort((a, -a), dimension=1, num_keys=1)[1], [array(6, 7)]),
    "topk": (lambda a: lax.top_k(a, 3)[0], [array(6, 9)]),
    "topk_places": (lambda a: lax.top_k(a, 2), [array(3, 17, d=i32)]),
    "cumlogsumexp": (lambda a: lax.cumlogsumexp(a, 0), [array(11, 3)]),
    "reshape_far": (lambda a: a.reshape(35, 2), [array(7, 10)]),
    "dslice": (lambda a, i: lax.dynamic_slice(a, (i, 0), (3, 4)), [array(10, 4), array(d=i32)]),
    "dupdate": (
        lambda a, u, i: lax.dynamic_update_slice(a, u, (i, 0)),
        [array(10, 6), array(3, 6), array(d=i32)],
    ),
    "dupdate2": (
        lambda a, u, i, j: lax.dynamic_update_slice(a, u, (i, j)),
        [array(10, 6), array(3, 2), array(d=i32), array(d=i32)],
    ),
    "take": (lambda a, i: jnp.take(a, i, axis=0, mode="clip"), [array(12, 6), array(5, d=i32)]),
    "take_fill": (lambda a, i: jnp.take(a, i, axis=0), [array(12, 6), array(5, d=i32)]),
    "take1": (lambda a, i: a[:, i], [array(8, 6), array(3, 4, d=i32)]),
    "along": (lambda a, i: jnp.take_along_axis(a, i, axis=1), [array(6, 8), array(6, 3, d=i32)]),
    "gather2": (lambda a, i, j: a[i, j], [array(8, 6, 4), array(5, d=i32), array(5, d=i32)]),
    # What XLA for TPUs simplifies before it propagates shardings.
    "along_grad": (
        lambda a, i: a + jax.grad(lambda a: jnp.take_along_axis(a, i[:, None], 1).sum())(a),
        [array(6, 8), array(6, d=i32)],
    ),
    "along_grad_middle": (
        lambda a, i: a * jax.grad(lambda a: jnp.take_along_axis(a, i[:, None], 1).sum())(a),
        [array(4, 6, 8), array(4, 8, d=i32)],
    ),
    "along_set": (lambda a, i, u: one_of_rows(lax.scatter, a, i, u), ONE_OF_ROWS),
    "along_max": (lambda a, i, u: one_of_rows(lax.scatter_max, a, i, u), ONE_OF_ROWS),
    "equal": (lambda a, b: (a + b) * (a + b) - jnp.abs(a + b), [array(8, 6), array(8, 6)]),
    "dot_transposed": (
        lambda a, b: jnp.einsum("nij,njkl->nikl", a, b).transpose(0, 2, 3, 1),
        [array(4, 6, 5), array(4, 5, 3, 8)],
    ),
    "centered": (lambda a: a * 8 - a.sum(1, keepdims=True), [array(6, 8)]),
    "centered_grad": (
        jax.grad(lambda a: ((a * 8 - a.sum(1, keepdims=True)) ** 2).sum()),
        [array(6, 8)],
    ),
    "scatter": (lambda a, i, u: a.at[i].add(u), [array(12, 6), array(5, d=i32), array(5, 6)]),
    "scatter_set": (
        lambda a, i, u: a.at[i].set(u, mode="drop"),
        [array(12, 6), array(5, d=i32), array(5, 6)],
    ),
    "scatter_max": (
        lambda a, i, u: a.at[:, i].max(u),
        [array(6, 12), array(5, d=i32), array(6, 5)],
    ),
    "scatter_many": (lambda a, i, u: a.at[i].add(u), [array(4, 6), array(24, d=i32), array(24, 6)]),
    "scatter_odd": (
        lambda a, i, u: a.at[i].add(u, unique_indices=True, mode="drop"),
        [array(13, 3), array(9, d=i32), array(9, 3)],
    ),
    "scatter_min": (lambda a, i, u: a.at[i].min(u), [array(4, 6), array(21, d=i32), array(21, 6)]),
    "scatter_mul": (lambda a, i, u: a.at[i].mul(u), [array(4), array(10, d=i32), array(10)]),
    "scatter2": (
        lambda a, i, j, u: a.at[i, j].add(u),
        [array(8, 6, 4), array(5, d=i32), array(5, d=i32), array(5, 4)],
    ),
    # Windows that take in all of a dim, some of which start elsewhere and are left out.
    "scatter_window": (
        lambda a, i, u: lax.scatter(
            a,
            i,
            u,
            lax.ScatterDimensionNumbers(
                update_window_dims=(1,),
                inserted_window_dims=(0,),
                scatter_dims_to_operand_dims=(0, 1),
            ),
            mode=lax.GatherScatterMode.FILL_OR_DROP,
        ),
        [array(12, 6), array(5, 2, d=i32), array(5, 6)],
    ),
    # XLA computes one window by a slice, and clamps only the sum of starts of a slice of a slice.
    "one_window": (
        lambda a, i: lax.gather(
            a, i * 5, lax.GatherDimensionNumbers((0, 1), (), (0, 1)), (4, 3), mode="clip"
        ),
        [array(10, 8), array(2, d=i32)],
    ),
    "set_max": (
        lambda a, i, u: a.at[i[0] * 2, i[1]].max(u[0], mode="drop"),
        [array(10, 8), array(2, d=i32), array(8)],
    ),
    "cache": (
        jax.vmap(lambda a, u, i: lax.dynamic_update_slice(a, u, (i, 0))),
        [array(4, 10, 6), array(4, 1, 6), array(4, d=i32)],
    ),
    "conv": (
        lambda a, k: lax.conv_general_dilated(
            a, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [array(4, 8, 6, 4), array(3, 3, 4, 8)],
    ),
    "conv_s2": (
        lambda a, k: lax.conv_general_dilated(
            a, k, (2, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [array(4, 8, 6, 4), array(2, 3, 4, 8)],
    ),
    "conv_dil": (
        lambda a, k: lax.conv_general_dilated(
            a,
            k,
            (2, 1),
            ((1, 2), (-1, 3)),
            lhs_dilation=(2, 1),
            rhs_dilation=(1, 2),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=2,
        ),
        [array(2, 9, 8, 4), array(3, 2, 2, 8)],
    ),
    "conv_batch_grp": (
        lambda a, k: lax.conv_general_dilated(
            a, k, (1,), "SAME", batch_group_count=4, dimension_numbers=("NWC", "WIO", "NWC")
        ),
        [array(8, 6, 3), array(3, 3, 8)],
    ),
    "conv_grad": (
        jax.grad(
            lambda k, a: (
                lax.conv_general_dilated(
                    a, k, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
                )
                * 2
            ).sum()
        ),
        [array(3, 4, 6), array(4, 10, 4)],
    ),
    # The kernel is longer than the result, as in gradients.
    "conv_long": (
        lambda a, k: lax.conv_general_dilated(
            a,
            k,
            (2, 1),
            ((1, 2), (-1, 1)),
            lhs_dilation=(2, 1),
            rhs_dilation=(1, 2),
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        ),
        [array(2, 9, 12, 2), array(13, 5, 2, 3)],
    ),
    "conv_s3": (
        lambda a, k: lax.conv_general_dilated(
            a, k, (3,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
        ),
        [array(2, 12, 2), array(1, 2, 3)],
    ),
    "conv_depth_grad": (
        jax.grad(
            lambda k, a: (
                lax.conv_general_dilated(
                    a,
                    k,
                    (1,),
                    ((3, 0),),
                    dimension_numbers=("NWC", "WIO", "NWC"),
                    feature_group_count=6,
                )
                * 2
            ).sum()
        ),
        [array(4, 1, 6), array(8, 7, 6)],
    ),
    "conv_grp": (
        lambda a, k: lax.conv_general_dilated(
            a, k, (1,), "SAME", feature_group_count=4, dimension_numbers=("NWC", "WIO", "NWC")
        ),
        [array(4, 8, 8), array(3, 2, 8)],
    ),
    "pool_s2": (
        lambda a: lax.reduce_window(a, 3.0, lax.add, (1, 1), (2, 1), ((0, 0), (0, 0))),
        [array(16, 5)],
    ),
    "maxpool": (
        lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        [array(2, 8, 6, 4)],
    ),
    "maxpool_grad": (
        jax.grad(
            lambda a: (
                3
                * lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 3, 1), (1, 2, 3, 1), ((0, 0),) * 4)
            ).sum()
        ),
        [array(2, 8, 12, 4)],
    ),
    # Windows that overlap, also in elements that the gradient pads, or leave elements out.
    "maxpool_grad_over": (
        pool_grad(lax.max, -jnp.inf, (1, 3, 2, 1), (1, 2, 1, 1), "SAME"),
        [array(2, 16, 7, 4)],
    ),
    "maxpool_grad_gaps": (pool_grad(lax.max, -jnp.inf, (2, 3), (5, 2), "VALID"), [array(17, 9)]),
    "minpool_grad_far": (
        pool_grad(lax.min, jnp.inf, (7, 1), (1, 1), ((3, 3), (0, 0))),
        [array(13, 3)],
    ),
    "while": (lambda a: lax.fori_loop(0, 3, lambda i, c: c * 2 - a, a), [array(8, 6)]),
    "scan": (
        lambda a, w: lax.scan(lambda c, x: (c @ w, (c + x).sum(1)), jnp.ones((4, 6)), a),
        [array(5, 4, 6), array(6, 6)],
    ),
    "cond": (
        lambda p, a: lax.cond(p[0] > 0, lambda x: x.sum(0), lambda x: x[0] * 2, a),
        [array(3, d=i32), array(8, 6)],
    ),
    "switch": (
        lambda p, a: lax.switch(
            p[0], [lambda x: x + 1, lambda x: x @ jnp.ones((6, 6)), lambda x: x], a
        ),
        [array(3, d=i32), array(8, 6)],
    ),
    "select_n": (lambda p, a: lax.select_n(p[0] > 0, a, -a), [array(3, d=i32), array(8, 6)]),
    "clamp": (lambda a: jnp.clip(a, -1, 2), [array(9, 6)]),
    "bf16": (
        lambda a, b: a.astype(jnp.float32) @ b.astype(jnp.float32),
        [array(8, 6, d=jnp.bfloat16), array(6, 4, d=jnp.bfloat16)],
    ),
    "softmaxish": (lambda a: a - a.max(1, keepdims=True), [array(7, 9)]),
    "norm": (lambda a: a * 2 - (a.sum(-1, keepdims=True)), [array(4, 6, 9)]),
    "tril": (lambda a: jnp.tril(a), [array(7, 9)]),
    "onehot": (lambda i: jax.nn.one_hot(i, 9), [array(7, d=i32)]),
    "grad": (jax.grad(lambda w, x: ((x @ w) * (x @ w)).sum()), [array(6, 8), array(12, 6)]),
    "embedgrad": (jax.grad(lambda e, i: (e[i] * 2).sum()), [array(12, 6), array(5, d=i32)]),
    "cholesky": (
        lambda a: jnp.linalg.cholesky(a @ a.transpose(0, 2, 1) + 9 * jnp.eye(4)),
        [array(4, 4, 4)],
    ),
    "qr": (lambda a: jnp.linalg.qr(well(a))[1], [array(4, 5, 5)]),
    "eigh": (lambda a: jnp.linalg.eigh(well(a) + well(a).mT)[0], [array(4, 5, 5)]),
    "svd": (lambda a: jnp.linalg.svd(well(a))[1], [array(6, 5, 5)]),
    "solve": (lambda a, b: jnp.linalg.solve(well(a), b), [array(4, 5, 5), array(4, 5, 3)]),
    "tridiag": (
        lambda d, b: lax.linalg.tridiagonal_solve(d * 0 + 1, d + 9, d * 0 + 1, b),
        [array(4, 5), array(4, 5, 3)],
    ),
    "approx_topk": (lambda a: lax.approx_max_k(a, 3)[0], [array(6, 9)]),
    "chlo": (
        lambda a, b: (lax.polygamma(a * 0 + 1, b * b), lax.zeta(a * a + 1, b * b)),
        [array(5, 6), array(5, 6)],
    ),
    "nextafter": (lambda a, b: lax.nextafter(a, b), [array(7, 9), array(7, 9)]),
    "erfinv": (lambda a: lax.erf_inv(a / 8) + lax.lgamma(a * a + 1), [array(6, 9)]),
    "trisolve": (
        lambda a, b: lax.linalg.triangular_solve(a + 9 * jnp.eye(4), b, left_side=True, lower=True),
        [array(4, 4, 4), array(4, 4, 6)],
    ),
    "dynidx": (lambda a, i: a[i], [array(10, 4), array(d=i32)]),
    "bits": (lambda a: jax.random.bits(jax.random.key(3), (8, 6)) + a, [array(8, 6, d=jnp.uint32)]),
    "uniform": (
        lambda a: jnp.floor(jax.random.uniform(jax.random.key(3), (8, 6)) * 8) + a,
        [array(8, 6)],
    ),
    "complex": (lambda a, b: (lax.complex(a, b) * 2).imag, [array(8, 6), array(8, 6)]),
    "convert": (lambda a: a.astype(jnp.int8).astype(jnp.float32), [array(8, 6)]),
    "cumprod": (lambda a: jnp.cumprod(a, 1), [array(3, 5)]),
    "histo": (lambda a: jnp.bincount(a, length=7), [array(20, d=i32)]),
    # Slices of one tensor, of which devices have the same values.
    "cross": (lambda a, b: jnp.cross(a, b), [array(7, 3), array(7, 3)]),
    "windows": (lambda a: sum(a[k : k + 10] for k in range(5)), [array(14, 2)]),
    "pad_edge": (lambda a: jnp.pad(a, ((2, 3), (1, 1)), mode="edge"), [array(8, 6)]),
    "concat_parts": (
        lambda a, b: jnp.concatenate([a, b, a, b[:2], a[1:3]], 0),
        [array(5, 4), array(3, 4)],
    ),
    "interp": (lambda a, b: jnp.interp(a, jnp.arange(6.0), b), [array(9), array(6)]),
    # Tensors without elements.
    "empty_rev": (lambda a: (a[::-1], a.sum(0)), [array(0, 4)]),
    "empty_slice": (lambda a: (a[3:3], a[:, 2:2] @ a[:6, :0].T), [array(8, 6)]),
    "prefixes": (lambda a: lax.associative_scan(jnp.add, a), [array(9, 4)]),
    "topk_all": (lambda a: lax.top_k(a, 9), [array(4, 9)]),
    # The dim is longer than the type of indices counts.
    "narrow_take": (
        lambda a, i: lax.gather(
            a,
            (i * 31).astype(jnp.int8)[:, None],
            lax.GatherDimensionNumbers((1,), (0,), (0,)),
            (1, 3),
            mode="clip",
        ),
        [array(300, 3), array(9, d=i32)],
    ),
    "narrow_dslice": (
        lambda a, i: lax.dynamic_slice(a, ((i * 31).astype(jnp.int8), jnp.int8(0)), (150, 2)),
        [array(300, 3), array(d=i32)],
    ),
}

TOLERANCE = {
    **{"chlo": 1e-3, "batch_norm": 1e-4, "batch_norm_grad": 1e-4},
    **dict.fromkeys(("cholesky", "trisolve", "qr", "eigh", "svd", "solve", "tridiag"), 1e-4),
    **dict.fromkeys(("prod", "cumprod", "erfinv", "interp", "cumlogsumexp"), 1e-6),
}
"""How far results may be apart, where arithmetic is not exact."""
