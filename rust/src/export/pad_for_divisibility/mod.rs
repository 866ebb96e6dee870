//! `sdy-pad-for-divisibility`: pads tensors so that each dim is a multiple of its number of shards.
//!
//! A tensor of 7 elements over 2 shards is padded to 8 by the `all_slice` that shards it; ops after
//! it work on 8 elements, and the `all_gather` slices the last element off. The contents of the
//! padding do not matter, except to dots that contract it: their operands are masked with zeros
//! unless the padding is known to be zero.
//!
//! | op | what happens |
//! | --- | --- |
//! | `sdy.all_slice` | its input is padded with zeros |
//! | `sdy.all_gather` | gathered dims are sliced to their size |
//! | `stablehlo.slice` | its limits grow |
//! | `stablehlo.dot_general` | padding along contracting dims is masked |
//! | `stablehlo.case`, `stablehlo.if`, `stablehlo.while` | padded if the values that their regions return are padded in the same way |
//! | ops with a [`ShapeRule`] | result types are inferred from operands and shardings |
//! | other ops of `stablehlo` | run on tensors of their true sizes, see [`true_size`] |
//!
//! Ops that are not converted keep operands of the old types: an `unrealized_conversion_cast` is
//! inserted, as by MLIR's dialect conversion. Tensors with dynamic dims are not padded.
//!
//! Source: Shardy's pass of this name. Deviation: functions whose inputs and outputs do not divide
//! evenly are padded inside, and no op is rejected.

mod collectives;
mod constants;
mod control_flow;
mod conversion;
mod indexing;
mod mask;
mod reductions;
mod shapes;
mod true_size;
mod windows;

use crate::index::{OpId, ShardingId, TypeId, ValueId};
use crate::ir::{int_array, NewOp, OpKind, Program, Type};
use crate::mlir::op_attribute;
use crate::partition::conversion::fold_all;
use crate::shardy::Change;
pub use constants::padded_constant;
use conversion::{Conversion, Padding};
use shapes::{dot_dims, padded_results};
pub use shapes::{padded_for_all, padded_type, ShapeRule};
use true_size::{is_exact_on_padding, is_padded_where_exact};

/// Runs the pass on each function of the module.
pub fn run_on_module(program: &mut Program) {
    let ops: Vec<OpId> = program.block_ops(program.module_block()).collect();
    for op in ops {
        if program.kind(op) == OpKind::Func {
            run(program, op);
        }
    }
}

/// Runs the pass on the function `func`.
pub fn run(program: &mut Program, func: OpId) {
    // Ops of these dialects are legal or illegal by their types; none of them is commutative.
    fold_all(program, func, |program, op| {
        let name = program.op_name(op);
        name.starts_with("stablehlo.") || name.starts_with("sdy.")
    });
    let ops: Vec<OpId> = program.pre_order(func).skip(1).collect();
    let mut conversion = Conversion {
        num_old_ops: program.num_op_ids(),
        has_true_sizes: !has_even_signature(program, func),
        ..Conversion::default()
    };
    for op in ops {
        conversion.convert(program, op);
    }
    conversion.finish(program);
}

/// Whether each argument and result of a function divides evenly into shards.
fn has_even_signature(program: &mut Program, op: OpId) -> bool {
    let func = program.function_of(op);
    let args = program.func_body(func).get().map(|body| program.block_args(body));
    let args = args.into_iter().flatten();
    let mut values: Vec<(TypeId, ShardingId)> =
        args.map(|arg| (program.type_of(arg), program.sharding(arg))).collect();
    values.extend(program.func_results(func).iter().map(|result| (result.ty, result.sharding)));
    values.into_iter().all(|(ty, sharding)| padded_type(program, ty, sharding) == ty)
}

impl Conversion {
    /// Whether `value` was evenly sharded before the pass.
    fn is_even(&self, program: &mut Program, value: ValueId) -> bool {
        let (ty, sharding) = (self.original_type(program, value), program.sharding_of(value));
        padded_type(program, ty, sharding) == ty
    }
    fn convert(&mut self, program: &mut Program, op: OpId) {
        let operands: Vec<ValueId> = program.operands(op).collect();
        let kind = program.kind(op);
        let pads_more = program.shardy().has(Change::PaddedCollectives);
        if kind == OpKind::AllSlice || (kind == OpKind::ReduceScatter && pads_more) {
            let ty = self.original_type(program, operands[0]);
            let sharding = program.sharding(program.result(op, 0));
            if padded_type(program, ty, sharding) != ty {
                self.pad_collective(program, op, sharding);
            }
            return;
        }
        let is_collective = match kind {
            OpKind::AllGather => true,
            OpKind::AllReduce
            | OpKind::AllToAll
            | OpKind::CollectivePermute
            | OpKind::ReplicatedToUnreduced
            | OpKind::ShardedToUnreduced => pads_more,
            _ => false,
        };
        let pads_constants = program.shardy().has(Change::PaddedConstants);
        let is_padded_constant = kind == OpKind::SdyConstant && pads_constants;
        if !is_collective && !is_padded_constant && !program.op_name(op).starts_with("stablehlo.") {
            return;
        }
        let mut values = operands.clone();
        if kind != OpKind::AllGather {
            values.extend(program.op_results(op));
        }
        if values.into_iter().all(|value| self.is_even(program, value)) {
            return;
        }
        let pads_loops = program.shardy().has(Change::PaddedLoops);
        let is_padded = match kind {
            OpKind::AllGather => self.pad_all_gather(program, op),
            OpKind::AllToAll => self.pad_all_to_all(program, op),
            OpKind::Case | OpKind::If => self.pad_branching(program, op),
            OpKind::While if pads_loops => self.pad_loop(program, op),
            OpKind::StablehloReturn => self.pad_return(program, op),
            OpKind::Reduce if pads_loops => self.pad_reduce(program, op),
            OpKind::Gather => self.pad_gather(program, op),
            OpKind::Scatter => self.pad_scatter(program, op).is_some(),
            OpKind::Convolution if pads_more => self.pad_convolution(program, op).is_some(),
            OpKind::Pad if pads_more => self.pad_pad(program, op).is_some(),
            OpKind::Constant | OpKind::SdyConstant if pads_constants => {
                self.pad_constant(program, op)
            }
            OpKind::Slice => self.pad_slice(program, op),
            OpKind::Dot | OpKind::DotGeneral => self.pad_dot(program, op),
            _ => {
                let operands = self.adapted_operands(program, op);
                self.pad_op(program, op, &operands)
            }
        };
        let types: Vec<TypeId> =
            operands.iter().map(|&value| self.original_type(program, value)).collect();
        let is_exact = is_padded && is_exact_on_padding(program, op, &types);
        if !is_exact && (!is_padded || is_padded_where_exact(kind)) {
            self.keep_true_size(program, op, &operands);
        } else if !is_exact {
            self.at_risk.push((op, operands));
        }
    }
    /// The operands of `op`, cast to the padded types of their shardings.
    fn adapted_operands(&mut self, program: &mut Program, op: OpId) -> Vec<ValueId> {
        let operands: Vec<ValueId> = program.operands(op).collect();
        operands.into_iter().map(|value| self.adapted(program, value)).collect()
    }
    fn adapted(&mut self, program: &mut Program, value: ValueId) -> ValueId {
        let (ty, sharding) = (self.original_type(program, value), program.sharding_of(value));
        let wanted = padded_type(program, ty, sharding);
        self.of_type(program, value, wanted)
    }
    /// Gives `op` these operands, and the result types inferred from them and from its shardings.
    /// Returns false and does nothing if there are no such types.
    fn pad_op(&mut self, program: &mut Program, op: OpId, operands: &[ValueId]) -> bool {
        let Some(types) = padded_results(program, op, operands) else { return false };
        self.set_padded(program, op, operands, &types);
        true
    }
    fn set_padded(
        &mut self,
        program: &mut Program,
        op: OpId,
        operands: &[ValueId],
        types: &[TypeId],
    ) {
        for (slot, &value) in program.op_uses(op).zip(operands) {
            if program.used_value(slot) != value {
                program.set_operand(slot, value);
            }
        }
        let results: Vec<ValueId> = program.op_results(op).collect();
        for (result, &ty) in results.into_iter().zip(types) {
            self.retype(program, result, ty);
        }
        program.update_types(op);
        self.converted.insert(op);
    }
    fn retype(&mut self, program: &mut Program, value: ValueId, ty: TypeId) {
        let old = program.type_of(value);
        program.set_type(value, ty);
        if old != ty {
            self.original.entry(value).or_insert(old);
        }
    }
    fn pad_slice(&mut self, program: &mut Program, op: OpId) -> bool {
        let result = program.result(op, 0);
        let sharding = program.sharding(result);
        let ty = program.type_of(result);
        let padded = padded_type(program, ty, sharding);
        let input = self.adapted(program, program.operand(op, 0));
        if padded == ty {
            return self.pad_op(program, op, &[input]);
        }
        let list = |name| op_attribute(program, op, name).and_then(|value| value.as_ints());
        let lists = (list("start_indices"), list("limit_indices"), list("strides"));
        let (Some(starts), Some(limits), Some(strides)) = lists else {
            return false;
        };
        let shape = program.types()[padded].static_shape().unwrap_or_default();
        let new_limits: Vec<i64> = starts.iter().zip(&shape).map(|(a, b)| a + b).collect();
        for dim in 0..shape.len().min(limits.len()) {
            if new_limits[dim] != limits[dim] && !is_local_slice(program, op, input, dim) {
                return false;
            }
        }
        let slice = NewOp::of_kind(OpKind::Slice, &[input], &[padded])
            .sharding(sharding)
            .attr("limit_indices", int_array(&new_limits))
            .attr("start_indices", int_array(&starts))
            .attr("strides", int_array(&strides));
        let new = program.build_value(slice, program.before(op));
        self.replaced.insert(result, new);
        self.erased.insert(result);
        self.converted.insert(op);
        true
    }
    fn pad_dot(&mut self, program: &mut Program, op: OpId) -> bool {
        let dims = dot_dims(program, op).unwrap_or_default();
        let dims = [dims.lhs_contracting, dims.rhs_contracting];
        let mut operands = self.adapted_operands(program, op);
        let Some(types) = padded_results(program, op, &operands) else { return false };
        for (index, dims) in dims.into_iter().enumerate() {
            operands[index] = self.zero_padded(program, (op, index), operands[index], &dims);
        }
        self.set_padded(program, op, &operands, &types);
        true
    }
    /// `value`, the operand of `op` at `index`, with its padding along `dims` masked with zeros.
    fn zero_padded(
        &self,
        program: &mut Program,
        (op, index): (OpId, usize),
        value: ValueId,
        dims: &[usize],
    ) -> ValueId {
        if self.padding_of(value) == Some(Padding::Zeros) {
            return value;
        }
        let old = self.original_type(program, program.operand(op, index));
        mask::with_zeros(program, op, value, old, dims)
    }
    /// The values whose type changed or that were replaced.
    fn changed_values(&self) -> Vec<ValueId> {
        let mut values: Vec<ValueId> =
            self.original.keys().chain(self.replaced.keys()).copied().collect();
        values.sort_unstable();
        values.dedup();
        values
    }
    /// Whether an op needs a cast of an operand to another type.
    fn leaves_casts(&self, program: &Program) -> bool {
        let is_used = |cast: &ValueId| program.uses(*cast).next().is_some();
        let is_cast = |value: ValueId| {
            let latest = self.replaced.get(&value).copied().unwrap_or(value);
            program.type_of(latest) != self.original_type(program, value)
                && program.uses(value).any(|slot| !self.is_converted(program.user(slot)))
        };
        self.casts.values().any(is_used) || self.changed_values().into_iter().any(is_cast)
    }
    /// Casts the operands of ops that were not converted back to their old types.
    fn finish(mut self, program: &mut Program) {
        if program.shardy().has(Change::NoCasts) && self.leaves_casts(program) {
            self.has_true_sizes = true;
        }
        if self.has_true_sizes {
            self.keep_what_is_at_risk(program);
        }
        for value in self.changed_values() {
            let ty = self.original_type(program, value);
            let slots: Vec<_> = program
                .uses(value)
                .filter(|&slot| !self.is_converted(program.user(slot)))
                .collect();
            for slot in slots {
                let seen = self.of_type(program, value, ty);
                program.set_operand(slot, seen);
            }
        }
        for value in std::mem::take(&mut self.erased) {
            if let Some(op) = program.defining_op(value) {
                program.erase_op(op);
            }
        }
        if self.has_true_sizes {
            self.replace_casts(program);
        }
    }
}

/// Whether dim `dim` of the slice `op` of `input` takes the same number of elements from each shard.
fn is_local_slice(program: &mut Program, op: OpId, input: ValueId, dim: usize) -> bool {
    let sharding = program.sharding_of(input);
    let Some(sharding) = program.shardings().get(sharding) else { return false };
    let shards = sharding
        .dims
        .get(dim)
        .map_or(1, |dim| crate::axis::total_size(&dim.axes, program.mesh(sharding.mesh)));
    if shards <= 1 {
        return true;
    }
    let at =
        |name| op_attribute(program, op, name).and_then(|value| value.as_ints()?.get(dim).copied());
    let size = |value| match program.value_type(value) {
        Type::RankedTensor { shape, .. } => shape.get(dim).copied().flatten(),
        _ => None,
    };
    let (Some(from), Some(to)) = (size(program.operand(op, 0)), size(program.result(op, 0))) else {
        return false;
    };
    let shard = |size: i64| (size + shards - 1) / shards;
    at("start_indices") == Some(0) && at("strides") == Some(1) && shard(from) == shard(to)
}
