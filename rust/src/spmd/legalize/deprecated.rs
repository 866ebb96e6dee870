//! Legalizes deprecated ops of `StableHLO`, such as `einsum` and `torch_index_select`, to their successors.

use super::build;
use super::sums::{splat, sum};
use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{int_array, int_attr, joined, Program};
use crate::mlir::op_attribute;

/// `broadcast`: new dims before those of the operand.
pub(super) fn broadcast(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (operand, result) = (program.operand(op, 0), program.result(op, 0));
    let rank = program.value_type(operand).static_shape()?.len() as i64;
    let all = program.value_type(result).static_shape()?.len() as i64;
    let dims: Vec<i64> = (all - rank..all).collect();
    let attrs = [("broadcast_dimensions", int_array(&dims))];
    let ty = program.type_of(result);
    Some(build(program, op, "stablehlo.broadcast_in_dim", &[operand], ty, &attrs))
}

/// `torch_index_select`: a gather of slices along one dim, at clamped indices.
pub(super) fn torch_index_select(program: &mut Program, op: OpId) -> Option<ValueId> {
    let [operand, indices] = program.operands(op).collect::<Vec<_>>()[..] else { return None };
    let attr = |name| op_attribute(program, op, name)?.as_int();
    let (dim, batch) = (attr("dim")?, attr("batch_dims")?);
    let mut sizes = program.value_type(operand).static_shape()?;
    let rank = sizes.len() as i64;
    let index_rank = program.value_type(indices).static_shape()?.len() as i64;
    if !(0..=dim).contains(&batch) || dim >= rank || batch > index_rank {
        return None;
    }
    for at in (0..batch).chain([dim]) {
        sizes[at as usize] = 1;
    }
    // Dims before `dim`, then those of the indices, then the others.
    let offsets = (batch..dim).chain(dim + index_rank - batch..rank + index_rank - batch - 1);
    let list = |numbers: &mut dyn Iterator<Item = i64>| joined(&numbers.collect::<Vec<_>>());
    let numbers = format!(
        "#stablehlo.gather<offset_dims = [{}], collapsed_slice_dims = [{dim}], \
         operand_batching_dims = [{batches}], start_indices_batching_dims = [{batches}], \
         start_index_map = [{dim}], index_vector_dim = {index_rank}>",
        list(&mut offsets.into_iter()),
        batches = list(&mut (0..batch)),
    );
    let attrs = [("dimension_numbers", numbers), ("slice_sizes", int_array(&sizes))];
    let ty = program.type_of(program.result(op, 0));
    Some(build(program, op, "stablehlo.gather", &[operand, indices], ty, &attrs))
}

/// A contraction of two tensors by an einsum equation: each label is a dim of one operand or of both.
pub(super) fn einsum(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (inputs, output) = equation(program, op)?;
    let [first, second] = &inputs[..] else { return None };
    let [left, right] = [program.operand(op, 0), program.operand(op, 1)];
    let (left, first) =
        simplified(program, op, left, first, |it| has(second, it) || has(&output, it));
    let (right, second) =
        simplified(program, op, right, second, |it| has(&first, it) || has(&output, it));
    let place = |labels: &[(u8, i64)], label: u8| -> Option<i64> {
        Some(labels.iter().position(|(other, _)| *other == label)? as i64)
    };
    let both = first.iter().filter(|(label, _)| has(&second, *label));
    let (batch, contracting): (Vec<_>, Vec<_>) =
        both.copied().partition(|(label, _)| has(&output, *label));
    let free = first.iter().filter(|(label, _)| !has(&second, *label));
    let free = free.chain(second.iter().filter(|(label, _)| !has(&first, *label)));
    let order: Vec<(u8, i64)> = batch.iter().chain(free).copied().collect();
    let dims = |labels: &[(u8, i64)], of: &[(u8, i64)]| -> Option<String> {
        let dims: Option<Vec<i64>> = labels.iter().map(|(label, _)| place(of, *label)).collect();
        Some(joined(&dims?))
    };
    let numbers = format!(
        "#stablehlo.dot<lhs_batching_dimensions = [{}], rhs_batching_dimensions = [{}], \
         lhs_contracting_dimensions = [{}], rhs_contracting_dimensions = [{}]>",
        dims(&batch, &first)?,
        dims(&batch, &second)?,
        dims(&contracting, &first)?,
        dims(&contracting, &second)?,
    );
    let turned = Turned::of(program, op, &order, &output)?;
    let attrs = [("dot_dimension_numbers", numbers)];
    let product = build(program, op, "stablehlo.dot_general", &[left, right], turned.ty, &attrs);
    Some(turned.apply(program, op, product))
}

/// Sums along the dims whose labels are not in the output.
pub(super) fn unary_einsum(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (inputs, output) = equation(program, op)?;
    let [input] = &inputs[..] else { return None };
    let operand = program.operand(op, 0);
    let has_own_type = {
        let (own, result) = (program.type_of(operand), program.type_of(program.result(op, 0)));
        program.tensor_type(&[], own) == program.tensor_type(&[], result)
    };
    if !has_own_type {
        return None;
    }
    let (value, order) = simplified(program, op, operand, input, |it| has(&output, it));
    let turned = Turned::of(program, op, &order, &output)?;
    if value == operand && turned.dims.is_empty() {
        return Some(build(program, op, "stablehlo.reshape", &[operand], turned.ty, &[]));
    }
    Some(turned.apply(program, op, value))
}

/// Labels of dims, with the sizes of these.
type Labels = Vec<(u8, i64)>;

fn has(labels: &[(u8, i64)], label: u8) -> bool {
    labels.iter().any(|(other, _)| *other == label)
}

/// `value`, whose dims have `labels`, after two steps: dims with the same label become one (the diagonal), and dims whose label is
/// not kept are summed.
fn simplified(
    program: &mut Program,
    op: OpId,
    mut value: ValueId,
    labels: &Labels,
    is_kept: impl Fn(u8) -> bool,
) -> (ValueId, Labels) {
    let mut labels = labels.clone();
    while let Some((first, second)) = repeated(&labels) {
        value = off_diagonal_is_zero(program, op, value, [first, second]);
        value = sum(program, op, value, &[second]);
        labels.remove(second);
    }
    let lone: Vec<usize> = (0..labels.len()).filter(|&dim| !is_kept(labels[dim].0)).collect();
    labels.retain(|(label, _)| is_kept(*label));
    (if lone.is_empty() { value } else { sum(program, op, value, &lone) }, labels)
}

/// The first two dims with the same label.
fn repeated(labels: &Labels) -> Option<(usize, usize)> {
    (0..labels.len()).find_map(|second| {
        let first = labels[..second].iter().position(|(label, _)| *label == labels[second].0)?;
        Some((first, second))
    })
}

/// `value` with zero where its indices in `dims` differ.
fn off_diagonal_is_zero(
    program: &mut Program,
    op: OpId,
    value: ValueId,
    dims: [usize; 2],
) -> ValueId {
    let (ty, sharding) = (program.type_of(value), program.sharding(value));
    let shape = program.value_type(value).static_shape().unwrap_or_default();
    let (numbers, flags) =
        (program.tensor_type_of(&shape, "i32"), program.tensor_type_of(&shape, "i1"));
    let [a, b] = dims.map(|dim| {
        let attrs = [("iota_dimension", int_attr(dim as i64))];
        let iota = build(program, op, "stablehlo.iota", &[], numbers, &attrs);
        program.set_sharding(iota, sharding);
        iota
    });
    let direction = "#stablehlo<comparison_direction EQ>".to_owned();
    let attrs = [("comparison_direction", direction)];
    let is_diagonal = build(program, op, "stablehlo.compare", &[a, b], flags, &attrs);
    program.set_sharding(is_diagonal, sharding);
    let zero = splat(program, op, ty, "0");
    program.set_sharding(zero, sharding);
    let masked = build(program, op, "stablehlo.select", &[is_diagonal, value, zero], ty, &[]);
    program.set_sharding(masked, sharding);
    masked
}

/// The labels of the operands of `op` and of its result; `None` if the result repeats a label, dims of one label differ in size, or
/// the result has a label that no operand has.
fn equation(program: &Program, op: OpId) -> Option<(Vec<Labels>, Labels)> {
    let config = op_attribute(program, op, "einsum_config")?;
    let text: String = config.as_str()?.chars().filter(|char| !char.is_whitespace()).collect();
    let (inputs, output) = text.split_once("->")?;
    let labelled = |labels: &str, value: ValueId| -> Option<Labels> {
        let shape = program.value_type(value).static_shape()?;
        let fits = labels.len() == shape.len() && labels.bytes().all(|it| it.is_ascii_alphabetic());
        fits.then(|| labels.bytes().zip(shape).collect())
    };
    let inputs: Vec<&str> = inputs.split(',').collect();
    if inputs.len() != program.num_operands(op) {
        return None;
    }
    let operands = inputs.iter().zip(program.operands(op));
    let operands: Vec<Labels> =
        operands.map(|(labels, value)| labelled(labels, value)).collect::<Option<_>>()?;
    let output = labelled(output, program.result(op, 0))?;
    let all: Labels = operands.iter().flatten().copied().collect();
    let is_consistent = |given: &(u8, i64)| {
        has(&all, given.0) && all.iter().all(|(label, size)| *label != given.0 || *size == given.1)
    };
    let fits = repeated(&output).is_none() && output.iter().chain(&all).all(is_consistent);
    fits.then_some((operands, output))
}

/// A value that is the result of an op with its dims permuted.
struct Turned {
    ty: TypeId,
    sharding: ShardingId,
    /// The permutation: for each dim of the result the dim of the value; empty if it is the identity.
    dims: Vec<i64>,
}

impl Turned {
    /// The dims of the result of `op` in `order`; `output` has their order in the result.
    fn of(program: &mut Program, op: OpId, order: &Labels, output: &Labels) -> Option<Self> {
        let result = program.result(op, 0);
        let (ty, sharding) = (program.type_of(result), program.sharding(result));
        if order == output {
            return Some(Self { ty, sharding, dims: Vec::new() });
        }
        let place = |labels: &Labels, label: u8| labels.iter().position(|(own, _)| *own == label);
        let dims: Option<Vec<i64>> =
            output.iter().map(|&(label, _)| Some(place(order, label)? as i64)).collect();
        let back: Option<Vec<usize>> =
            order.iter().map(|&(label, _)| place(output, label)).collect();
        let (dims, back) = (dims?, back?);
        let shape: Vec<i64> = order.iter().map(|&(_, size)| size).collect();
        let ty = program.tensor_type(&shape, ty);
        let mut turned = program.shardings().get(sharding).cloned();
        if let Some(turned) = &mut turned {
            let dims = std::mem::take(&mut turned.dims);
            turned.dims = back.iter().filter_map(|&dim| dims.get(dim).cloned()).collect();
        }
        let sharding = turned.map_or(sharding, |turned| program.intern_sharding(turned));
        Some(Self { ty, sharding, dims })
    }
    /// The result of `op`: `value` with its dims permuted.
    fn apply(self, program: &mut Program, op: OpId, value: ValueId) -> ValueId {
        if self.dims.is_empty() {
            return value;
        }
        if program.operand(op, 0) != value {
            program.set_sharding(value, self.sharding);
        }
        let ty = program.type_of(program.result(op, 0));
        let attrs = [("permutation", int_array(&self.dims))];
        build(program, op, "stablehlo.transpose", &[value], ty, &attrs)
    }
}
