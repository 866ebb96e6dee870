//! The dialect's own collectives, which work inside manual computations.

use super::builder::{FactorKind, RuleBuilder};
use super::view::SignatureView;
use crate::rule::OpShardingRule;

/// Passes all dims through but `changed`, which are replicated on both sides, apart from each other.
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

/// The gathered dim grows.
pub fn all_gather(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    all_but(view, &[view.dim("all_gather_dim")?])
}

/// The scattered dim shrinks.
pub fn reduce_scatter(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    all_but(view, &[view.dim("scatter_dimension")?])
}

/// One dim is split, another concatenated.
pub fn all_to_all(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (split, concat) = (view.dim("split_dimension")?, view.dim("concat_dimension")?);
    let changed = [split, concat];
    all_but(view, if split == concat { &changed[..1] } else { &changed })
}
