//! Rules of the collectives of `StableHLO`, which are used inside manual computations.

use super::builder::{FactorKind, RuleBuilder};
use super::view::SignatureView;
use crate::op_sharding_rule::OpShardingRule;

/// A rule with pass-through factors for all dims except `changed`; each of those has one factor on
/// the operand and another on the result, which need replication.
fn all_but(view: &SignatureView<'_>, changed: &[usize]) -> Option<OpShardingRule> {
    let (shape, result_shape) = (view.operand(0)?, view.result(0)?);
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in shape.iter().enumerate().filter(|(dim, _)| !changed.contains(dim)) {
        builder.everywhere(dim, size, FactorKind::PassThrough);
    }
    for &dim in changed {
        builder.all_operands(dim, *shape.get(dim)?, FactorKind::NeedReplication).all_results(
            dim,
            *result_shape.get(dim)?,
            FactorKind::NeedReplication,
        );
    }
    builder.build()
}

/// All-gather: the gathered dim is larger in the result.
pub fn all_gather(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    all_but(view, &[view.dim("all_gather_dim")?])
}

/// Reduce-scatter: the scattered dim is smaller in the result.
pub fn reduce_scatter(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    all_but(view, &[view.dim("scatter_dimension")?])
}

/// All-to-all: one dim is split, another is concatenated.
pub fn all_to_all(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (split, concat) = (view.dim("split_dimension")?, view.dim("concat_dimension")?);
    let changed = [split, concat];
    all_but(view, if split == concat { &changed[..1] } else { &changed })
}
