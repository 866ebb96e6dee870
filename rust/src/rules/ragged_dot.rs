//! The rule of `chlo.ragged_dot`: matrix products of groups of different sizes, as in
//! mixture-of-experts layers.
//!
//! | ragged dim of the left operand | operands and group sizes | result |
//! | --- | --- | --- |
//! | free, `m` | `[b, m, k]`, `[g, b, k, n]`, `[b, g]` | `[b, m, n]` |
//! | contracting, `k` | `[b, m, k]`, `[b, k, n]`, `[b, g]` | `[g, b, m, n]` |
//! | batching, `b` | `[b, m, k]`, `[b, k, n]`, `[g]` | `[b, m, n]` |
//!
//! Groups need not end at shard boundaries, so the ragged dim and the groups need replication. In
//! the first two cases the group sizes have the dims of the left operand that come before the
//! ragged one, or only the dim of the groups if the sizes are the same for all indices of those
//! dims.
//!
//! Source: XLA's rule of `mhlo.ragged_dot`; Shardy itself has none.

use super::builder::{FactorKind, RuleBuilder};
use super::view::{membership, SignatureView};
use crate::op_sharding_rule::OpShardingRule;
use crate::stablehlo::dims::{DotDims, RaggedDotDims};

/// The role of the ragged dim in the product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ragged {
    Free,
    Contracting,
    Batching,
}

/// Factors of batching dims, free dims of the left and of the right operand, contracting dims,
/// groups.
pub fn ragged_dot(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let dims = RaggedDotDims::read(view.attribute("ragged_dot_dimension_numbers")?)?;
    let DotDims { lhs_batching, rhs_batching, lhs_contracting, rhs_contracting } = dims.dot;
    let groups = dims.rhs_group;
    let &[ragged] = dims.lhs_ragged.as_slice() else { return None };
    let kind = if lhs_contracting.contains(&ragged) {
        Ragged::Contracting
    } else if lhs_batching.contains(&ragged) {
        Ragged::Batching
    } else {
        Ragged::Free
    };
    let is_paired = lhs_batching.len() == rhs_batching.len()
        && lhs_contracting.len() == rhs_contracting.len()
        && groups.len() == usize::from(kind == Ragged::Free);
    let (lhs, rhs, sizes) = (view.operand(0)?, view.operand(1)?, view.operand(2)?);
    let last_size = sizes.len().checked_sub(1).filter(|_| is_paired)?;
    let mut factors = Factors {
        builder: RuleBuilder::new(view),
        next_result: usize::from(kind == Ragged::Contracting),
        has_sizes_of_dims: sizes.len() > 1,
        next_size: 0,
    };
    for (&lhs_dim, &rhs_dim) in lhs_batching.iter().zip(&rhs_batching) {
        let in_sizes = kind != Ragged::Batching;
        factors.in_result([Some(lhs_dim), Some(rhs_dim)], in_sizes, *lhs.get(lhs_dim)?, PASS);
    }
    let is_bound = membership(lhs_contracting.iter().chain(&lhs_batching), lhs.len());
    for (dim, &size) in lhs.iter().enumerate().filter(|&(dim, _)| !is_bound[dim]) {
        let in_sizes = kind == Ragged::Free && dim < ragged;
        let factor = if dim == ragged { WHOLE } else { PASS };
        factors.in_result([Some(dim), None], in_sizes, size, factor);
    }
    let bound = rhs_contracting.iter().chain(&rhs_batching).chain(&groups);
    let is_bound = membership(bound, rhs.len());
    for (dim, &size) in rhs.iter().enumerate().filter(|&(dim, _)| !is_bound[dim]) {
        factors.in_result([None, Some(dim)], false, size, PASS);
    }
    let before_ragged = lhs_contracting.iter().take_while(|&&dim| dim != ragged).count();
    for (at, (&lhs_dim, &rhs_dim)) in lhs_contracting.iter().zip(&rhs_contracting).enumerate() {
        let in_sizes = kind == Ragged::Contracting && at < before_ragged;
        let factor = if lhs_dim == ragged { WHOLE } else { FactorKind::Reduction };
        factors.summed([Some(lhs_dim), Some(rhs_dim)], in_sizes, *lhs.get(lhs_dim)?, factor);
    }
    let is_complete = kind == Ragged::Batching || factors.next_size == last_size;
    let builder = &mut factors.builder;
    if kind != Ragged::Batching {
        let result = (kind == Ragged::Contracting).then_some(0);
        let group = groups.first().copied();
        builder.factor(&[None, group, Some(last_size)], &[result], sizes[last_size], WHOLE);
    }
    builder.build().filter(|_| is_complete)
}

const PASS: FactorKind = FactorKind::PassThrough;
const WHOLE: FactorKind = FactorKind::NeedReplication;

/// Adds factors in the order of the dims of the result and the group sizes.
struct Factors {
    builder: RuleBuilder,
    next_result: usize,
    /// Whether the group sizes have dims besides the dim of the groups.
    has_sizes_of_dims: bool,
    next_size: usize,
}

impl Factors {
    /// Adds a factor of these dims of the operands, and of the next dim of the result.
    fn in_result(&mut self, dims: [Option<usize>; 2], in_sizes: bool, size: i64, kind: FactorKind) {
        let result = self.next_result;
        self.next_result += 1;
        self.add(dims, in_sizes, Some(result), size, kind);
    }
    /// Adds a factor of these dims of the operands, which is in no result.
    fn summed(&mut self, dims: [Option<usize>; 2], in_sizes: bool, size: i64, kind: FactorKind) {
        self.add(dims, in_sizes, None, size, kind);
    }
    fn add(
        &mut self,
        [lhs, rhs]: [Option<usize>; 2],
        in_sizes: bool,
        result: Option<usize>,
        size: i64,
        kind: FactorKind,
    ) {
        let in_sizes = in_sizes && self.has_sizes_of_dims;
        let size_dim = in_sizes.then_some(self.next_size);
        self.next_size += usize::from(in_sizes);
        self.builder.factor(&[lhs, rhs, size_dim], &[result], size, kind);
    }
}
