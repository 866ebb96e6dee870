//! `sdy-explicit-gather-scatter-batching`: makes implicit batch dims of gathers and scatters explicit.
//!
//! If the indices of a gather are an iota along their first dim for the first dim of its operand,
//! batch `i` of the result comes from batch `i` of the operand. If both dims are declared as batch
//! dims and the iota is removed, a sharding of the batch propagates through the gather. Scatters
//! are treated in the same way.
//!
//! The pass consists of patterns in MLIR's greedy driver, which also folds and erases dead ops: see
//! [`canonicalize`](crate::partition::canonicalize).
//!
//! Source: Shardy's pass of this name.

use crate::context::Context;
use crate::error::Result;
use crate::index::{OpId, ValueId};
use crate::ir::{int_array, int_attr, NewOp, OpKind, Program, Type};
use crate::mlir::op_attribute;
use crate::partition::canonicalize::{apply_greedily, Config, Driver, Patterns};
use crate::stablehlo::dims::{IndexingDims, IndexingNames, GATHER, SCATTER};

/// Runs the pass on the function `func`.
pub fn run(program: &mut Program, context: &mut Context<'_>, func: OpId) -> Result<()> {
    apply_greedily(program, context, func, &mut Batching, Config::default())?;
    Ok(())
}

struct Batching;

impl Patterns for Batching {
    fn apply(&mut self, driver: &mut Driver<'_>, op: OpId) -> bool {
        let names = match driver.program.kind(op) {
            OpKind::Gather => &GATHER,
            OpKind::Scatter => &SCATTER,
            _ => return false,
        };
        let Some(batch) = Batch::find(driver.program, op, names) else { return false };
        let indices = batch.other_indices(driver, op);
        batch.make_explicit(driver, op, indices, names);
        true
    }
}

/// The rewrite of an op.
struct Batch {
    /// The operand number of the indices.
    indices: usize,
    /// The `index_vector_dim` of the indices.
    index_vector_dim: usize,
    /// The component of the index vector that is the batch.
    place: usize,
    /// The new dimension numbers of the op.
    dims: String,
}

impl Batch {
    fn find(program: &Program, op: OpId, names: &IndexingNames) -> Option<Self> {
        let numbers = op_attribute(program, op, names.attribute)?;
        let mut dims = IndexingDims::read(&numbers, names)?;
        if !dims.input_batching.is_empty() {
            return None;
        }
        let num_operands = program.num_operands(op);
        let indices = if num_operands == 2 { 1 } else { num_operands.checked_sub(1)? / 2 };
        let shape = |index| match program.value_type(program.operand(op, index)) {
            Type::RankedTensor { shape, .. } if !shape.is_empty() => Some(shape),
            _ => None,
        };
        let (operand_shape, indices_shape) = (shape(0)?, shape(indices)?);
        let index_vector_dim = dims.index_vector;
        let is_concatenate =
            concatenate_along(program, program.operand(op, indices), index_vector_dim).is_some();
        if !is_concatenate && indices_shape.contains(&None) {
            // The remaining indices cannot be sliced out.
            return None;
        }
        // In MLIR's encoding, a dynamic size is less than any static one.
        if indices_shape.get(index_vector_dim)?.is_none_or(|size| size <= 1)
            || operand_shape[0] != indices_shape[0]
        {
            return None;
        }
        let place = dims.index_map.iter().position(|&dim| dim == 0)?;
        if !counts_batches(program, program.operand(op, indices), index_vector_dim, place) {
            return None;
        }
        dims.index_map.remove(place);
        dims.collapsed.remove(dims.collapsed.iter().position(|&dim| dim == 0)?);
        dims.input_batching = vec![0];
        dims.indices_batching = vec![0];
        Some(Self { indices, index_vector_dim, place, dims: dims.text(names) })
    }

    /// The indices without the component for the batch.
    fn other_indices(&self, driver: &mut Driver<'_>, op: OpId) -> ValueId {
        let indices = driver.program.operand(op, self.indices);
        let ty = driver.program.type_of(indices);
        let shape = match &driver.program.types()[ty] {
            Type::RankedTensor { shape, .. } => shape.clone(),
            _ => return indices,
        };
        let total = shape[self.index_vector_dim].unwrap_or(0);
        let concatenate = concatenate_along(driver.program, indices, self.index_vector_dim);
        let parts = match concatenate {
            Some(mut parts) if parts.len() as i64 == total => {
                parts.remove(self.place);
                parts
            }
            _ => {
                let place = self.place as i64;
                [(0, place), (place + 1, total)]
                    .into_iter()
                    .filter(|(start, end)| start < end)
                    .map(|range| self.slice(driver, op, &shape, range))
                    .collect()
            }
        };
        if let [only] = parts[..] {
            return only;
        }
        let mut shape = shape;
        shape[self.index_vector_dim] = Some(total - 1);
        let ty = driver.program.ranked_type(&shape, ty);
        let dim = self.index_vector_dim;
        let whole = NewOp::of_kind(OpKind::Concatenate, &parts, &[ty])
            .attr("dimension", int_attr(dim as i64));
        build_before(driver, op, whole)
    }

    /// The components `start..end` of each index vector.
    fn slice(
        &self,
        driver: &mut Driver<'_>,
        op: OpId,
        shape: &[Option<i64>],
        (start, end): (i64, i64),
    ) -> ValueId {
        let indices = driver.program.operand(op, self.indices);
        let mut starts = vec![0; shape.len()];
        let mut limits: Vec<i64> = shape.iter().map(|size| size.unwrap_or(i64::MIN)).collect();
        starts[self.index_vector_dim] = start;
        limits[self.index_vector_dim] = end;
        let mut shape = shape.to_vec();
        shape[self.index_vector_dim] = Some(end - start);
        let ty = driver.program.ranked_type(&shape, driver.program.type_of(indices));
        let slice = NewOp::of_kind(OpKind::Slice, &[indices], &[ty])
            .attr("limit_indices", int_array(&limits))
            .attr("start_indices", int_array(&starts))
            .attr("strides", int_array(&vec![1; starts.len()]));
        build_before(driver, op, slice)
    }

    /// Replaces `op` by one with explicit batch dims and these indices.
    fn make_explicit(
        &self,
        driver: &mut Driver<'_>,
        op: OpId,
        indices: ValueId,
        names: &IndexingNames,
    ) {
        let program = &mut *driver.program;
        let mut operands: Vec<ValueId> = program.operands(op).collect();
        operands[self.indices] = indices;
        let results: Vec<ValueId> = program.op_results(op).collect();
        let types: Vec<_> = results.iter().map(|&result| program.type_of(result)).collect();
        let num_regions = program.num_regions(op);
        let new = NewOp::of_kind(program.kind(op), &operands, &types).regions(num_regions);
        let at = program.before(op);
        let new = driver.build(new, at, op);
        let program = &mut *driver.program;
        program.copy_attrs(op, new);
        program.set_attr(new, names.attribute, &self.dims);
        for &flag in flags_of(program.kind(op)) {
            if program.attr(op, flag).is_none() {
                program.set_attr(new, flag, "false");
            }
        }
        program.set_op_rule(new, program.op_rules().get(op));
        let new_results: Vec<ValueId> = program.op_results(new).collect();
        for (&old, &new) in results.iter().zip(&new_results) {
            program.set_sharding(new, program.sharding(old));
        }
        for index in 0..num_regions {
            let region = |op| driver.program.op_regions(op).nth(index);
            if let (Some(from), Some(to)) = (region(op), region(new)) {
                driver.program.take_blocks(from, to);
            }
        }
        driver.replace(op, &new_results);
    }
}

/// The boolean attributes that a rewritten op of this kind has: `false` unless the original op has
/// them.
const fn flags_of(kind: OpKind) -> &'static [&'static str] {
    match kind {
        OpKind::Scatter => &["indices_are_sorted", "unique_indices"],
        _ => &["indices_are_sorted"],
    }
}

/// Makes an op right before `root`.
fn build_before(driver: &mut Driver<'_>, root: OpId, new: NewOp<'_>) -> ValueId {
    let op = driver.build(new, driver.program.before(root), root);
    driver.program.result(op, 0)
}

/// The operands of the concatenation along `dim` that defines `value`.
fn concatenate_along(program: &Program, value: ValueId, dim: usize) -> Option<Vec<ValueId>> {
    let op = program.defining_op(value)?;
    if program.kind(op) != OpKind::Concatenate
        || op_attribute(program, op, "dimension")?.as_int()? != dim as i64
    {
        return None;
    }
    Some(program.operands(op).collect())
}

/// Whether component `place` of each index vector is an iota along `dim`.
fn counts_batches(program: &Program, indices: ValueId, dim: usize, place: usize) -> bool {
    let is_concatenate =
        program.defining_op(indices).is_some_and(|op| program.kind(op) == OpKind::Concatenate);
    let part = if is_concatenate {
        match concatenate_along(program, indices, dim).and_then(|parts| parts.get(place).copied()) {
            Some(part) => part,
            None => return false,
        }
    } else {
        indices
    };
    let Some(op) = program.defining_op(unwrap_shape(program, part)) else { return false };
    let dimension = || op_attribute(program, op, "iota_dimension")?.as_int();
    program.kind(op) == OpKind::Iota && dimension() == Some(0)
}

/// The value from which `value` is computed by ops that only change the shape, or add or multiply a
/// constant.
fn unwrap_shape(program: &Program, mut value: ValueId) -> ValueId {
    // In graph regions values may be defined in a cycle.
    for _ in 0..program.num_op_ids() {
        let Some(op) = program.defining_op(value) else { break };
        let is_iota =
            |value| program.defining_op(value).is_some_and(|op| program.kind(op) == OpKind::Iota);
        let index = match program.kind(op) {
            OpKind::Reshape | OpKind::BroadcastInDim => 0,
            OpKind::Other => match (program.op_name(op), program.num_operands(op)) {
                ("stablehlo.select", 3) if is_iota(program.operand(op, 2)) => 2,
                ("stablehlo.clamp" | "stablehlo.select", 3) => 1,
                _ => break,
            },
            _ => break,
        };
        value = program.operand(op, index);
    }
    value
}
