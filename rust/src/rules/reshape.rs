//! The rule of reshapes, whose dims may have several factors.
//!
//! Walks both shapes at once, major to minor, and keeps for each side the product of the sizes of
//! the factors so far. While the products agree, the next factor, which both sides share, is the
//! greatest common divisor of the remaining sizes of the current dims: `[8, 4] -> [2, 16]` is
//! `(ij) k -> i (jk)` with i = 2, j = 4, k = 4. If the divisor is 1, each side gets its own factors
//! until the products agree again.

use super::builder::{FactorKind, RuleBuilder};
use super::view::SignatureView;
use crate::op_sharding_rule::OpShardingRule;
use crate::projection::gcd;
use crate::shardy::Change;

/// One side of the reshape.
struct Side<'a> {
    shape: &'a [i64],
    /// The current dim.
    dim: usize,
    /// Product of the sizes of the dims up to the current one.
    dims_product: i64,
    /// Product of the sizes of the factors so far.
    factors_product: i64,
}

impl<'a> Side<'a> {
    fn new(shape: &'a [i64]) -> Self {
        Self { shape, dim: 0, dims_product: 1, factors_product: 1 }
    }
    fn size(&self) -> Option<i64> {
        self.shape.get(self.dim).copied()
    }
    /// Begins the next dim if the factors so far cover the current one.
    fn begin_dim(&mut self) {
        if let Some(size) = self.size().filter(|_| self.dims_product == self.factors_product) {
            self.dims_product *= size;
        }
    }
    /// The part of the dims up to the current one that no factor covers yet.
    fn left(&self) -> i64 {
        self.dims_product / self.factors_product
    }
    /// Goes to the next dim if the factors so far cover the current one.
    fn end_dim(&mut self) {
        if self.dim < self.shape.len() && self.dims_product == self.factors_product {
            self.dim += 1;
        }
    }
    /// The next factor of this side alone, while its product is smaller than that of `ahead`.
    fn catch_up(&self, ahead: &Self, common: i64) -> i64 {
        let left = self.left();
        if ahead.factors_product % self.factors_product == 0 {
            let missing = ahead.factors_product / self.factors_product;
            if left % missing == 0 {
                return missing;
            }
        }
        if left > common {
            left / common
        } else {
            left
        }
    }
}

/// The number of elements of a shape; `None` if it is zero or overflows.
fn num_elements(shape: &[i64]) -> Option<i64> {
    let count = shape.iter().try_fold(1_i64, |count, &size| count.checked_mul(size))?;
    (count > 0).then_some(count)
}

/// `reshape`: factors of which both shapes are products; `None` for tensors without elements.
pub fn reshape(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (mut input, mut output) = (Side::new(view.operand(0)?), Side::new(view.result(0)?));
    if num_elements(input.shape)? != num_elements(output.shape)? {
        return None;
    }
    let pass = FactorKind::PassThrough;
    let goes_on = view.has(Change::PaddedReshapes);
    let alone = if goes_on { FactorKind::NeedReplication } else { pass };
    let mut builder = RuleBuilder::new(view);
    while input.size().is_some() || output.size().is_some() {
        let (in_dim, out_dim) = ([Some(input.dim)], [Some(output.dim)]);
        if input.size() == Some(1) {
            builder.factor(&in_dim, &[None], 1, alone);
            input.dim += 1;
            continue;
        }
        if output.size() == Some(1) {
            builder.factor(&[None], &out_dim, 1, alone);
            output.dim += 1;
            continue;
        }
        input.begin_dim();
        output.begin_dim();
        let common = gcd(input.left(), output.left());
        if input.factors_product == output.factors_product && common > 1 {
            builder.factor(&in_dim, &out_dim, common, pass);
            input.factors_product *= common;
            output.factors_product *= common;
        } else if input.factors_product == output.factors_product {
            let (in_left, out_left) = (input.left(), output.left());
            if goes_on {
                builder.factor(&in_dim, &out_dim, in_left, FactorKind::Permutation);
            } else {
                builder.factor(&in_dim, &[None], in_left, pass);
                builder.factor(&[None], &out_dim, out_left, pass);
            }
            input.factors_product = input.dims_product;
            output.factors_product = output.dims_product;
        } else if input.factors_product < output.factors_product {
            let size = input.catch_up(&output, common);
            builder.factor(&in_dim, &[None], size, alone);
            input.factors_product *= size;
        } else {
            let size = output.catch_up(&input, common);
            builder.factor(&[None], &out_dim, size, alone);
            output.factors_product *= size;
        }
        input.end_dim();
        output.end_dim();
    }
    builder.build()
}
