//! Rules of reductions, windowed reductions, scans and sorts.

use super::builder::{FactorKind, RuleBuilder};
use super::view::{membership, SignatureView};
use crate::mlir::AttrValue;
use crate::op_sharding_rule::OpShardingRule;
use crate::stablehlo::windows::{WindowDim, WindowLists, REDUCTION, SELECTION};
use std::cmp::Ordering;

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

/// Whether each window of `dim` is one element, in order, so that the dim passes through.
fn passes_through(windows: &WindowLists, dim: usize) -> Option<bool> {
    let WindowDim { size, stride, padding, .. } = windows.dim(dim)?;
    Some(size == Some(1) && stride == 1 && padding == [0, 0])
}

/// `reduce_window`: the factor of each dim has the number of windows as its size, which is the size
/// of the result's dim; it is a permutation factor unless windows have one element.
pub fn reduce_window(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let windows = WindowLists::read(|name| view.attribute(name), REDUCTION)?;
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in view.result(0)?.iter().enumerate() {
        if passes_through(&windows, dim)? {
            builder.everywhere(dim, size, FactorKind::PassThrough);
        } else {
            builder.everywhere(dim, size, FactorKind::Permutation).blocked_if(view.conservative);
        }
    }
    builder.build()
}

/// `select_and_scatter`: a dim with windows of one element passes through; any other dim has a
/// permutation factor of operand and result, and a factor of the source that needs replication.
pub fn select_and_scatter(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let windows = WindowLists::read(|name| view.attribute(name), SELECTION)?;
    let source = view.operand(1)?;
    let mut builder = RuleBuilder::new(view);
    for (dim, &size) in view.result(0)?.iter().enumerate() {
        if passes_through(&windows, dim)? {
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

/// `sort`: the sorted dim needs replication, and is blocked if there is no other dim to shard.
pub fn sort(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    // The reference's rule does not handle the default dimension, -1.
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

/// `scan` of inputs with carried values. The scanned dim is a permutation factor of inputs and outputs if the body is associative,
/// else it needs replication. If inputs, outputs, initial and carried values are equally many and have the same dims but for the
/// scanned one, each other dim passes through all of them; otherwise other dims are not sharded.
pub fn scan(view: &SignatureView<'_>) -> Option<OpShardingRule> {
    let dim = view.dim("dimension")?;
    let carried = *view.dims("operandSegmentSizes")?.get(1)?;
    let inputs = view.num_operands().checked_sub(carried)?;
    let outputs = view.num_results().checked_sub(carried)?;
    let shape = if inputs > 0 { view.operand(0)? } else { view.result(0)? };
    let along_dim = match view.attribute("is_associative").and_then(AttrValue::as_bool) {
        Some(true) => FactorKind::Permutation,
        _ => FactorKind::NeedReplication,
    };
    let is_alike = |at: usize| -> Option<bool> {
        let (input, init) = (view.operand(at)?, view.operand(inputs + at)?);
        let is_sliced = input.len() == init.len() + 1 && dim < input.len();
        Some(
            is_sliced
                && view.result(at)? == input
                && input[..dim] == init[..dim]
                && input[dim + 1..] == init[dim..],
        )
    };
    let is_alike = (inputs, inputs) == (outputs, carried)
        && (0..inputs).map(is_alike).collect::<Option<Vec<_>>>()?.iter().all(|&it| it);
    let dims_of = |count: usize, whole: usize, slice: Option<usize>| {
        let mut dims = vec![slice; count + carried];
        dims[..count].fill(Some(whole));
        dims
    };
    let mut builder = RuleBuilder::new(view);
    for (at, &size) in shape.iter().enumerate() {
        let (kind, slice) = match at.cmp(&dim) {
            Ordering::Equal => (along_dim, None),
            _ if !is_alike => continue,
            Ordering::Less => (FactorKind::PassThrough, Some(at)),
            Ordering::Greater => (FactorKind::PassThrough, Some(at - 1)),
        };
        builder.factor(&dims_of(inputs, at, slice), &dims_of(outputs, at, slice), size, kind);
    }
    builder.build()
}
