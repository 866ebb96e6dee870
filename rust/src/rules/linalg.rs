//! Rules of linear algebra, Fourier transforms and random bits: batch dims pass through, other dims
//! mostly need replication.

use super::builder::{FactorKind, RuleBuilder};
use super::view::SignatureView;
use crate::op_sharding_rule::OpShardingRule;

const PASS: FactorKind = FactorKind::PassThrough;
const REPLICATE: FactorKind = FactorKind::NeedReplication;

/// The shape of an operand, and its last two dims.
fn matrix_dims(shape: &[i64]) -> Option<(&[i64], usize, usize)> {
    let rank = shape.len();
    Some((&shape[..rank.checked_sub(2)?], rank - 2, rank - 1))
}

/// Decompositions of the matrices in the last two dims.
pub fn cholesky(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let shape = view.operand(0)?;
    let (batch, rows, columns) = matrix_dims(shape)?;
    RuleBuilder::new(view)
        .pointwise(batch)
        .everywhere(rows, shape[rows], REPLICATE)
        .everywhere(columns, shape[columns], REPLICATE)
        .build()
}

/// `triangular_solve`: `op(a) x = b`, or `x op(a) = b`, where `op` may transpose.
pub fn triangular_solve(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (a, b) = (view.operand(0)?, view.operand(1)?);
    let (batch, rows, columns) = matrix_dims(a)?;
    let is_left = view.attribute("left_side")?.as_bool()?;
    let transpose = view.attribute("transpose_a")?.as_str()?;
    let is_transposed = matches!(transpose, "TRANSPOSE" | "ADJOINT");
    let (free, contracting) =
        if is_left == is_transposed { (columns, rows) } else { (rows, columns) };
    let size_of_b = |dim: usize| b.get(dim).copied();
    let mut builder = RuleBuilder::new(view);
    builder.pointwise(batch);
    let mut add = |operand_dims: [Option<usize>; 2], result_dim, size| {
        builder.factor(&operand_dims, &[result_dim], size, REPLICATE);
    };
    if is_left {
        add([Some(free), Some(rows)], None, a[free]);
        add([None, Some(columns)], Some(columns), size_of_b(columns)?);
        add([Some(contracting), None], Some(rows), a[contracting]);
    } else {
        add([None, Some(rows)], Some(rows), size_of_b(rows)?);
        add([Some(free), Some(columns)], None, a[free]);
        add([Some(contracting), None], Some(columns), a[contracting]);
    }
    builder.build()
}

/// `fft`: the last dims are transformed; the very last one is blocked if its size changes.
pub fn fft(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, result_shape) = (view.operand(0)?, view.result(0)?);
    let first = shape.len().checked_sub(view.attribute("fft_length")?.as_ints()?.len())?;
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in shape.iter().enumerate() {
        let is_truncated = dim + 1 == shape.len() && result_shape.last() != Some(&size);
        if dim < first {
            builder.everywhere(dim, size, PASS);
        } else {
            builder.everywhere(dim, size, REPLICATE).blocked_if(is_truncated);
        }
    }
    builder.build()
}

/// `rng_bit_generator`: both states have their own factors, which need replication; the output has
/// pass-through factors.
pub fn rng_bit_generator(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in view.operand(0)?.iter().enumerate() {
        builder.factor(&[Some(dim)], &[Some(dim), None], size, REPLICATE).blocked_if(true);
    }
    for (dim, &size) in view.result(1)?.iter().enumerate() {
        builder.factor(&[None], &[None, Some(dim)], size, PASS);
    }
    builder.build()
}

/// Eigenvectors and eigenvalues; the dim of the eigenvalues is the last dim of the eigenvectors.
pub fn eigh(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let shape = view.operand(0)?;
    let (batch, rows, columns) = matrix_dims(shape)?;
    RuleBuilder::new(view)
        .pointwise(batch)
        .factor(&[Some(rows)], &[Some(rows), None], shape[rows], PASS)
        .factor(&[Some(columns)], &[Some(columns), Some(rows)], shape[columns], PASS)
        .build()
}

/// QR decomposition in packed form, with the scales of its Householder reflectors.
pub fn qr(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, taus) = (view.operand(0)?, view.result(1)?);
    let (batch, rows, columns) = matrix_dims(shape)?;
    RuleBuilder::new(view)
        .pointwise(batch)
        .factor(&[Some(rows)], &[Some(rows), None], shape[rows], REPLICATE)
        .factor(&[Some(columns)], &[Some(columns), None], shape[columns], REPLICATE)
        .factor(&[None], &[None, Some(rows)], *taus.get(rows)?, REPLICATE)
        .build()
}

/// Product of the reflectors that [`qr`] packs.
pub fn householder_product(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, taus) = (view.operand(0)?, view.operand(1)?);
    let (batch, rows, columns) = matrix_dims(shape)?;
    RuleBuilder::new(view)
        .pointwise(batch)
        .factor(&[Some(rows), None], &[Some(rows)], shape[rows], REPLICATE)
        .factor(&[Some(columns), None], &[Some(columns)], shape[columns], REPLICATE)
        .factor(&[None, Some(rows)], &[None], *taus.get(rows)?, REPLICATE)
        .build()
}
