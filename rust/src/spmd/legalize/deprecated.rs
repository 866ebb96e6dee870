//! Ops that `StableHLO` has kept from earlier versions.

use super::build;
use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{int_array, joined, InsertPoint, NewOp, Place, Program};
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

/// `torch_index_select`: slices along one dim at indices, which are clamped.
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

/// A product of two tensors as an equation states it: each label is a dim of one operand or of both.
pub(super) fn einsum(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (inputs, output) = equation(program, op)?;
    let [left, right] = &inputs[..] else { return None };
    let is_in = |labels: &[(u8, i64)], label| labels.iter().any(|(other, _)| *other == label);
    let place = |labels: &[(u8, i64)], label: u8| -> Option<i64> {
        Some(labels.iter().position(|(other, _)| *other == label)? as i64)
    };
    let both = left.iter().filter(|(label, _)| is_in(right, *label));
    let (batch, contracting): (Vec<_>, Vec<_>) =
        both.copied().partition(|(label, _)| is_in(&output, *label));
    let free = left.iter().filter(|(label, _)| !is_in(right, *label));
    let free = free.chain(right.iter().filter(|(label, _)| !is_in(left, *label)));
    let order: Vec<(u8, i64)> = batch.iter().chain(free).copied().collect();
    let dims = |labels: &[(u8, i64)], of: &[(u8, i64)]| -> Option<String> {
        let dims: Option<Vec<i64>> = labels.iter().map(|(label, _)| place(of, *label)).collect();
        Some(joined(&dims?))
    };
    let numbers = format!(
        "#stablehlo.dot<lhs_batching_dimensions = [{}], rhs_batching_dimensions = [{}], \
         lhs_contracting_dimensions = [{}], rhs_contracting_dimensions = [{}]>",
        dims(&batch, left)?,
        dims(&batch, right)?,
        dims(&contracting, left)?,
        dims(&contracting, right)?,
    );
    let turned = Turned::of(program, op, &order, &output)?;
    let operands: Vec<ValueId> = program.operands(op).collect();
    let attrs = [("dot_dimension_numbers", numbers)];
    let product = build(program, op, "stablehlo.dot_general", &operands, turned.ty, &attrs);
    Some(turned.apply(program, op, product))
}

/// Sums along the dims whose labels the output does not have.
pub(super) fn unary_einsum(program: &mut Program, op: OpId) -> Option<ValueId> {
    let (inputs, output) = equation(program, op)?;
    let [input] = &inputs[..] else { return None };
    let is_kept = |label: u8| output.iter().any(|(other, _)| *other == label);
    let order: Vec<(u8, i64)> =
        input.iter().filter(|(label, _)| is_kept(*label)).copied().collect();
    let all = 0..input.len();
    let summed: Vec<i64> =
        all.filter(|&dim| !is_kept(input[dim].0)).map(|dim| dim as i64).collect();
    let turned = Turned::of(program, op, &order, &output)?;
    let operand = program.operand(op, 0);
    let has_own_type = {
        let (own, result) = (program.type_of(operand), turned.ty);
        program.tensor_type(&[], own) == program.tensor_type(&[], result)
    };
    if !has_own_type {
        return None;
    }
    if summed.is_empty() && turned.dims.is_empty() {
        return Some(build(program, op, "stablehlo.reshape", &[operand], turned.ty, &[]));
    }
    let value =
        if summed.is_empty() { operand } else { sum(program, op, operand, turned.ty, &summed) };
    Some(turned.apply(program, op, value))
}

/// The sum of `value` along `dims`.
fn sum(program: &mut Program, op: OpId, value: ValueId, ty: TypeId, dims: &[i64]) -> ValueId {
    let scalar = program.tensor_type(&[], ty);
    let text = program.type_text(scalar).to_string();
    let element = text.trim_start_matches("tensor<").trim_end_matches('>');
    let zero = super::super::emit::zero(element);
    let zero = [("value", format!("dense<{zero}> : {text}"))];
    let zero = build(program, op, "stablehlo.constant", &[], scalar, &zero);
    let reduce = NewOp::new("stablehlo.reduce", &[value, zero], &[ty])
        .attr("dimensions", int_array(dims))
        .regions(1);
    let at = program.before(op);
    let reduce = program.build(reduce, at);
    let block = program.add_block(program.region(reduce, 0), &[scalar, scalar]);
    let inside = InsertPoint::at(Place::End(block));
    let [a, b] = [0, 1].map(|index| program.block_arg(block, index));
    let added = program.build_value(NewOp::new("stablehlo.add", &[a, b], &[scalar]), inside);
    program.build(NewOp::new("stablehlo.return", &[added], &[]), inside);
    program.result(reduce, 0)
}

/// Labels of dims, with the sizes of these.
type Labels = Vec<(u8, i64)>;

/// The labels of the operands of `op` and those of its result; `None` where a tensor has one twice, dims of one label have
/// several sizes, or the result has a label that no operand has.
fn equation(program: &Program, op: OpId) -> Option<(Vec<Labels>, Labels)> {
    let config = op_attribute(program, op, "einsum_config")?;
    let text: String = config.as_str()?.chars().filter(|char| !char.is_whitespace()).collect();
    let (inputs, output) = text.split_once("->")?;
    let labelled = |labels: &str, value: ValueId| -> Option<Labels> {
        let shape = program.value_type(value).static_shape()?;
        let labels = labels.as_bytes();
        let is_once = |(at, label): (usize, &u8)| {
            label.is_ascii_alphabetic() && !labels[..at].contains(label)
        };
        let fits = labels.len() == shape.len() && labels.iter().enumerate().all(is_once);
        fits.then(|| labels.iter().copied().zip(shape).collect())
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
        all.iter().any(|(label, _)| *label == given.0)
            && all.iter().all(|(label, size)| *label != given.0 || *size == given.1)
    };
    let are_consistent = output.iter().chain(&all).all(is_consistent);
    // What only one of two operands has is summed first, by nobody.
    let is_used = |(label, _): &(u8, i64)| {
        let count = all.iter().filter(|(other, _)| other == label).count();
        operands.len() < 2 || count == 2 || output.iter().any(|(other, _)| other == label)
    };
    (are_consistent && all.iter().all(is_used)).then_some((operands, output))
}

/// A value with the dims of the result of an op in another order.
struct Turned {
    ty: TypeId,
    sharding: ShardingId,
    /// For each dim of the result that of the value; empty if they are in the same order.
    dims: Vec<i64>,
}

impl Turned {
    /// The dims of the result of `op` in `order`, where they stand as in `output`.
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
    /// The result of `op`: `value` with its dims turned.
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
