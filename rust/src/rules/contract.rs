//! Rules of contractions: `dot_general` and `dot`.

use super::builder::{FactorKind, RuleBuilder};
use super::view::{membership, SignatureView};
use crate::op_sharding_rule::OpShardingRule;
use crate::stablehlo::dims::DotDims;

/// `dot_general`: factors for batching dims, free dims of the left and of the right operand, contracting
/// dims.
pub fn dot_general(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let dims = DotDims::read(view.attribute("dot_dimension_numbers")?)?;
    let DotDims { lhs_batching, rhs_batching, lhs_contracting, rhs_contracting } = dims;
    if lhs_batching.len() != rhs_batching.len() || lhs_contracting.len() != rhs_contracting.len() {
        return None;
    }
    let (lhs, rhs) = (view.operand(0)?, view.operand(1)?);
    let mut builder = RuleBuilder::new(view);
    let mut result_dims = (0..).map(Some);
    let mut pass = |builder: &mut RuleBuilder, operand_dims: [Option<usize>; 2], size| {
        let result_dim = result_dims.next().flatten();
        builder.factor(&operand_dims, &[result_dim], size, FactorKind::PassThrough);
    };
    for (&lhs_dim, &rhs_dim) in lhs_batching.iter().zip(&rhs_batching) {
        pass(&mut builder, [Some(lhs_dim), Some(rhs_dim)], *lhs.get(lhs_dim)?);
    }
    let is_bound = membership(lhs_contracting.iter().chain(&lhs_batching), lhs.len());
    for (dim, &size) in lhs.iter().enumerate() {
        if !is_bound[dim] {
            pass(&mut builder, [Some(dim), None], size);
        }
    }
    let is_bound = membership(rhs_contracting.iter().chain(&rhs_batching), rhs.len());
    for (dim, &size) in rhs.iter().enumerate() {
        if !is_bound[dim] {
            pass(&mut builder, [None, Some(dim)], size);
        }
    }
    for (&lhs_dim, &rhs_dim) in lhs_contracting.iter().zip(&rhs_contracting) {
        let operand_dims = [Some(lhs_dim), Some(rhs_dim)];
        builder.factor(&operand_dims, &[None], *lhs.get(lhs_dim)?, FactorKind::Reduction);
    }
    builder.build()
}

/// `dot`: a product of vectors and matrices.
pub fn dot(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (lhs, rhs) = (view.operand(0)?, view.operand(1)?);
    let (lhs_is_matrix, has_free_dim_in_rhs) = (lhs.len() == 2, rhs.len() == 2);
    let mut builder = RuleBuilder::new(view);
    if lhs_is_matrix {
        builder.factor(&[Some(0), None], &[Some(0)], lhs[0], FactorKind::PassThrough);
    }
    if has_free_dim_in_rhs {
        let result_dim = usize::from(lhs_is_matrix);
        builder.factor(&[None, Some(1)], &[Some(result_dim)], rhs[1], FactorKind::PassThrough);
    }
    let operand_dims = [Some(usize::from(lhs_is_matrix)), Some(0)];
    builder.factor(&operand_dims, &[None], *rhs.first()?, FactorKind::Reduction).build()
}
