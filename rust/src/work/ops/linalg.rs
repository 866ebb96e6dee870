//! Linear algebra, Fourier transforms, random bits.
//!
//! Source: XLA's cost analysis; for factorisations that it does not count, the operation counts of LAPACK
//! Working Note 41 and of Golub and Van Loan, "Matrix Computations".

use super::Work;
use crate::mlir::AttrValue;
use crate::rules::SignatureView;
use crate::work::ops::contract::product;

/// Number of matrices, rows and columns of a stack of matrices.
#[derive(Clone, Copy)]
pub(super) struct Matrices {
    pub batch: u128,
    pub rows: u128,
    pub columns: u128,
}

impl Matrices {
    pub(super) fn of(shape: &[i64]) -> Option<Self> {
        let [batch @ .., rows, columns] = shape else { return None };
        Some(Self { batch: product(batch), rows: product([rows]), columns: product([columns]) })
    }
    /// `batch * of(large, small)` flops, the sides in descending order.
    pub(super) fn flops(self, of: impl Fn(f64, f64) -> f64) -> Work {
        let (large, small) =
            (self.rows.max(self.columns) as f64, self.rows.min(self.columns) as f64);
        // Saturates where it is too large.
        Work::of_flops(self.batch.saturating_mul(of(large, small) as u128))
    }
}

/// `n^3 / 3` for each matrix.
pub(super) fn cholesky(view: &SignatureView<'_>) -> Option<Work> {
    let shape = view.operand(0)?;
    Some(Work::of_flops(product(shape).saturating_mul(product(shape.last())) / 3))
}

/// `n^2` multiply-adds for each right-hand side, as if the triangle were a full matrix.
pub(super) fn triangular_solve(view: &SignatureView<'_>) -> Option<Work> {
    let size = product(view.operand(0)?.last());
    Some(Work::of_flops(product(view.operand(1)?).saturating_mul(size).saturating_mul(2)))
}

/// Four multiply-adds for each element of the operand and each level of each transformed dim.
pub(super) fn fft(view: &SignatureView<'_>) -> Option<Work> {
    let lengths = view.attribute("fft_length").and_then(AttrValue::as_ints)?;
    let halvings = |length: &i64| u128::from(product([length]).max(1).ilog2());
    let steps = lengths.iter().map(halvings).fold(1, u128::saturating_mul);
    Some(Work::of_flops(product(view.operand(0)?).saturating_mul(steps).saturating_mul(8)))
}

/// A transcendental for each random number.
pub(super) fn random(view: &SignatureView<'_>) -> Option<Work> {
    let last = view.num_results().checked_sub(1)?;
    Some(Work { transcendentals: product(view.result(last)?), ..Work::default() })
}

/// A few passes over the data: normalising, and sums for mean, variance and gradients.
pub(super) fn batch_norm(view: &SignatureView<'_>) -> Option<Work> {
    let passes = match view.name {
        "stablehlo.batch_norm_inference" => 4,
        "stablehlo.batch_norm_training" => 8,
        _ => 12,
    };
    Some(Work::of_flops(product(view.operand(0)?).saturating_mul(passes)))
}
