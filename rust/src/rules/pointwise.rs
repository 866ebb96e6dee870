//! Rules of ops whose dims pass through, possibly in another order.

use super::builder::{FactorKind, RuleBuilder};
use super::view::{membership, SignatureView};
use crate::index::{FactorId, Id};
use crate::op_sharding_rule::{OpShardingRule, TensorMapping};

/// Elementwise ops: one factor for each dim of the first result. A tensor of lower rank has the
/// leading factors.
pub fn pointwise(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let shape = view.result(0)?;
    if view.ranks().any(|rank| rank > shape.len()) {
        return None;
    }
    let mapping = |rank: usize| TensorMapping {
        dims: (0..rank).map(|dim| vec![FactorId::from_index(dim)]).collect(),
    };
    let mut operands: Vec<TensorMapping> = view.ranks().map(mapping).collect();
    let results = operands.split_off(view.num_operands());
    let factor_sizes = shape.to_vec();
    Some(OpShardingRule { factor_sizes, operands, results, ..OpShardingRule::default() })
}

/// A transfer of a tensor from one mesh to another: elementwise if the meshes have the same axes.
pub fn transfer(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    view.surroundings.then(|| pointwise(view))?
}

/// Elementwise ops some of whose operands may be scalars, which have no factors.
pub fn pointwise_with_scalars(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    RuleBuilder::new(view).pointwise(view.result(0)?).build()
}

/// `transpose`: dims in another order.
pub fn transpose(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let shape = view.operand(0)?;
    let mut builder = RuleBuilder::new(view);
    for (result_dim, dim) in view.dims("permutation")?.into_iter().enumerate() {
        let size = *shape.get(dim)?;
        builder.factor(&[Some(dim)], &[Some(result_dim)], size, FactorKind::PassThrough);
    }
    builder.build()
}

/// `broadcast_in_dim`: a dim of size 1 that is expanded has different factors in operand and
/// result.
pub fn broadcast_in_dim(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, result_shape) = (view.operand(0)?, view.result(0)?);
    // For each dim of the result, the last dim of the operand that is mapped to it.
    let mut sources = vec![None; result_shape.len()];
    for (dim, &target) in view.dims("broadcast_dimensions")?.iter().enumerate() {
        if let Some(source) = sources.get_mut(target) {
            *source = Some(dim);
        }
    }
    let mut builder = RuleBuilder::new(view);
    for (result_dim, &result_size) in result_shape.iter().enumerate() {
        let mut dim = sources[result_dim];
        if let Some(place) = dim {
            if *shape.get(place)? == 1 && result_size != 1 {
                builder.factor(&[dim], &[None], 1, FactorKind::PassThrough);
                dim = None;
            }
        }
        builder.factor(&[dim], &[Some(result_dim)], result_size, FactorKind::PassThrough);
    }
    builder.build()
}

/// `reverse`: reversed dims are permutation factors.
pub fn reverse(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let shape = view.result(0)?;
    let is_reversed = membership(&view.dims("dimensions")?, shape.len());
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in shape.iter().enumerate() {
        let kind = if is_reversed[dim] { FactorKind::Permutation } else { FactorKind::PassThrough };
        builder.everywhere(dim, size, kind);
    }
    builder.build()
}

/// `bitcast_convert`: if element widths differ, the side with the narrower elements has an
/// additional dim.
pub fn bitcast_convert(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let (shape, result_shape) = (view.operand(0)?, view.result(0)?);
    let (rank, result_rank) = (shape.len(), result_shape.len());
    let mut builder = RuleBuilder::new(view);
    builder.pointwise(if rank < result_rank { shape } else { result_shape });
    if rank < result_rank {
        let (dim, size) = (result_rank - 1, result_shape[result_rank - 1]);
        builder.factor(&[None], &[Some(dim)], size, FactorKind::NeedReplication);
    } else if rank > result_rank {
        builder.factor(&[Some(rank - 1)], &[None], shape[rank - 1], FactorKind::NeedReplication);
    }
    builder.build()
}

/// Batch normalization: scale, offset, mean and variance have only the feature dim.
pub fn batch_norm_inference(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let feature = view.dim("feature_index")?;
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in view.operand(0)?.iter().enumerate() {
        let mut dims = vec![(dim == feature).then_some(0); view.num_operands()];
        dims[0] = Some(dim);
        builder.factor(&dims, &[Some(dim)], size, FactorKind::PassThrough);
    }
    builder.build()
}
