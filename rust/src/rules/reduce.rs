//! Rules of reductions, windowed reductions and sorts.

use super::builder::{FactorKind, RuleBuilder};
use super::view::{membership, SignatureView};
use crate::mlir::AttrValue;
use crate::rule::OpShardingRule;

/// `reduce` of inputs with initial values, which are scalars.
pub fn reduce(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let shape = view.operand(0)?;
    let is_reduced = membership(&view.dims("dimensions")?, shape.len());
    let (num_inputs, num_operands) = (view.num_operands() / 2, view.num_operands());
    let mut builder = RuleBuilder::new(view);
    let mut next_result_dim = 0;
    let mut operand_dims = vec![None; num_operands];
    let mut result_dims = vec![None; num_inputs];
    for (dim, &size) in shape.iter().enumerate() {
        operand_dims[..num_inputs].fill(Some(dim));
        if is_reduced[dim] {
            result_dims.fill(None);
            builder.factor(&operand_dims, &result_dims, size, FactorKind::Reduction);
        } else {
            result_dims.fill(Some(next_result_dim));
            next_result_dim += 1;
            builder.factor(&operand_dims, &result_dims, size, FactorKind::PassThrough);
        }
    }
    builder.build()
}

/// The window attributes of an op: size, stride and the like of each dim.
struct Windows {
    sizes: Vec<i64>,
    strides: Vec<i64>,
    padding: Option<Vec<i64>>,
}

impl Windows {
    fn read(view: &SignatureView<'_>) -> Option<Self> {
        let ints = |name| view.attribute(name).map_or(Some(Vec::new()), AttrValue::as_ints);
        let padding = match view.attribute("padding") {
            Some(value) => Some(value.as_ints()?),
            None => None,
        };
        Some(Self { sizes: ints("window_dimensions")?, strides: ints("window_strides")?, padding })
    }
    /// Whether each window of `dim` is one element, in order, so that the dim passes through.
    fn pass_through(&self, dim: usize) -> Option<bool> {
        if let Some(padding) = &self.padding {
            // A splat has one element.
            let pad =
                |at: usize| if padding.len() == 1 { padding.first() } else { padding.get(at) };
            if *pad(2 * dim)? != 0 || *pad(2 * dim + 1)? != 0 {
                return Some(false);
            }
        }
        let is_one =
            |list: &[i64]| if list.is_empty() { Some(true) } else { Some(*list.get(dim)? == 1) };
        Some(is_one(&self.strides)? && is_one(&self.sizes)?)
    }
}

/// `reduce_window`: each dim has a factor of the number of windows, the size of the result's dim; it is a
/// permutation factor unless windows have one element.
pub fn reduce_window(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let windows = Windows::read(view)?;
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in view.result(0)?.iter().enumerate() {
        if windows.pass_through(dim)? {
            builder.everywhere(dim, size, FactorKind::PassThrough);
        } else {
            builder.everywhere(dim, size, FactorKind::Permutation).blocked_if(view.conservative);
        }
    }
    builder.build()
}

/// `select_and_scatter`: a dim with windows of one element passes through; any other has a permutation factor of
/// operand and result, and one of the source that needs replication.
pub fn select_and_scatter(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let windows = Windows::read(view)?;
    let source = view.operand(1)?;
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in view.result(0)?.iter().enumerate() {
        if windows.pass_through(dim)? {
            builder.everywhere(dim, size, FactorKind::PassThrough);
            continue;
        }
        let (operand, result) = ([Some(dim), None, None], [Some(dim)]);
        let source_size = *source.get(dim)?;
        builder
            .factor(&[None, Some(dim), None], &[None], source_size, FactorKind::NeedReplication)
            .blocked_if(view.conservative)
            .factor(&operand, &result, size, FactorKind::Permutation)
            .blocked_if(view.conservative);
    }
    builder.build()
}

/// `sort`: the sorted dim needs replication, and is blocked if there is nothing else to shard.
pub fn sort(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    // The reference's rule matches no dim for the default, -1.
    let sort_dim = view.dim("dimension");
    let shape = view.operand(0)?;
    let is_alone = shape.iter().enumerate().all(|(dim, &size)| Some(dim) == sort_dim || size == 1);
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in shape.iter().enumerate() {
        if Some(dim) == sort_dim {
            builder.everywhere(dim, size, FactorKind::NeedReplication).blocked_if(is_alone);
        } else {
            builder.everywhere(dim, size, FactorKind::PassThrough);
        }
    }
    builder.build()
}
