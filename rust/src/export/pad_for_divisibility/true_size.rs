//! Runs ops on tensors of their true sizes: operands are sliced, and results are padded with zeros.
//!
//! This is used for ops whose padded form is unknown, invalid or wrong: gathers, scatters, windows
//! and sorts along padded dims; constants. Shardy rejects such programs or makes invalid ones, and
//! also those whose inputs and outputs do not divide evenly. In such a program every op keeps its
//! meaning: an op whose result depends on the padding (such as a maximum along a padded dim) runs
//! on its true size too, and every cast is a slice or a padding. Programs that Shardy pads are
//! padded as Shardy does.

use super::conversion::{Conversion, Padding};
use super::shapes::{padded_type, windows, ShapeRule};
use crate::index::{OpId, TypeId, ValueId};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use crate::shardy::Change;
use crate::stablehlo::windows::{WindowLists, REDUCTION, SELECTION};

impl Conversion {
    /// Gives `op` operands and results of their true sizes; `operands` are those it had before padding.
    pub(super) fn keep_true_size(&mut self, program: &mut Program, op: OpId, operands: &[ValueId]) {
        self.has_true_sizes = true;
        let slots: Vec<_> = program.op_uses(op).collect();
        for (slot, &value) in slots.into_iter().zip(operands) {
            let value = self.of_type(program, value, self.original_type(program, value));
            if program.used_value(slot) != value {
                program.set_operand(slot, value);
            }
        }
        let results: Vec<ValueId> = program.op_results(op).collect();
        for result in results {
            self.pad_result(program, op, result);
        }
        let is_new = self.converted.insert(op);
        if !is_new {
            program.update_types(op);
        }
    }
    /// Gives `result` of `op` its true size, and gives users that were padded a padded copy of it.
    fn pad_result(&mut self, program: &mut Program, op: OpId, result: ValueId) {
        let ty = self.original.remove(&result).unwrap_or(program.type_of(result));
        program.set_type(result, ty);
        let sharding = program.sharding_of(result);
        let padded = padded_type(program, ty, sharding);
        if padded == ty {
            return;
        }
        let padding = self.cast(program, result, padded, program.after(op));
        let own = program.defining_op(padding);
        program.replace_uses_if(result, padding, |program, slot| {
            let user = program.user(slot);
            Some(user) != own && self.is_converted(user)
        });
        self.replaced.insert(result, padding);
        self.set_padding(padding, Some(Padding::Zeros));
    }
    /// Runs ops whose results may depend on the padding on their true sizes.
    pub(super) fn keep_what_is_at_risk(&mut self, program: &mut Program) {
        for (op, operands) in std::mem::take(&mut self.at_risk) {
            self.keep_true_size(program, op, &operands);
        }
    }
    /// Replaces casts between types by slices and paddings with zeros.
    pub(super) fn replace_casts(&mut self, program: &mut Program) {
        let mut casts: Vec<ValueId> = self.casts.values().copied().collect();
        casts.sort_unstable();
        let ops: Vec<OpId> =
            casts.into_iter().filter_map(|cast| program.defining_op(cast)).collect();
        let mut used: Vec<OpId> = Vec::with_capacity(ops.len());
        for op in ops.into_iter().rev() {
            if program.uses(program.result(op, 0)).next().is_some() {
                used.push(op);
            } else {
                program.erase_op(op);
            }
        }
        for op in used.into_iter().rev() {
            replace_cast(program, op);
        }
    }
}

/// Replaces the cast `op` of a tensor by a slice of its low end, a padding of its high end, or both.
fn replace_cast(program: &mut Program, op: OpId) {
    let (mut value, result) = (program.operand(op, 0), program.result(op, 0));
    let sharding = program.sharding_of(value);
    let shapes =
        (program.value_type(value).static_shape(), program.value_type(result).static_shape());
    let (Some(from), Some(to)) = shapes else { return };
    let common: Vec<i64> = from.iter().zip(&to).map(|(&from, &to)| from.min(to)).collect();
    let at = program.before(op);
    if common != from {
        value = program.build_slice(value, &vec![0; common.len()], &common, sharding, at);
    }
    if common != to {
        let zero = program.build_zero(program.type_of(value), at);
        value = program.build_pad(value, zero, &to, sharding, at);
    }
    program.replace_all_uses(result, value);
    program.erase_op(op);
}

/// Whether ops of this kind are padded only if their results do not depend on the padding.
pub(super) fn is_padded_where_exact(kind: OpKind) -> bool {
    matches!(kind, OpKind::ReduceWindow | OpKind::SelectAndScatter | OpKind::Sort)
}

/// Ops whose result elements depend only on operand elements at the same index.
const ALIKE: [&str; 4] = [
    "stablehlo.batch_norm_inference",
    "stablehlo.bitcast_convert",
    "stablehlo.convert",
    "stablehlo.cross-replica-sum",
];

/// Whether the true elements of the results of `op`, whose operands were padded from these types,
/// are independent of the padding.
pub(super) fn is_exact_on_padding(program: &Program, op: OpId, true_types: &[TypeId]) -> bool {
    program.operands(op).zip(true_types).enumerate().all(|(index, (value, &ty))| {
        let Some(mixed) = mixed_dims(program, op, index, true_types) else { return false };
        let shapes = (program.types()[ty].static_shape(), program.value_type(value).static_shape());
        let (Some(old), Some(new)) = shapes else { return true };
        mixed.iter().all(|&dim| old.get(dim) == new.get(dim))
    })
}

/// The dims of operand `index` along which a result of `op` depends on elements at other indices;
/// `None` for all dims.
fn mixed_dims(
    program: &Program,
    op: OpId,
    index: usize,
    true_types: &[TypeId],
) -> Option<Vec<usize>> {
    let name = program.op_name(op);
    let list = |name| op_attribute(program, op, name)?.as_ints();
    let rank = program.types()[*true_types.get(index)?].rank()?;
    let dims: Vec<i64> = match program.kind(op) {
        OpKind::AllGather
        | OpKind::AllReduce
        | OpKind::AllSlice
        | OpKind::AllToAll
        | OpKind::Case
        | OpKind::CollectivePermute
        | OpKind::Constant
        | OpKind::Dot
        | OpKind::DotGeneral
        | OpKind::Gather
        | OpKind::If
        | OpKind::Iota
        | OpKind::OptimizationBarrier
        | OpKind::ReplicatedToUnreduced
        | OpKind::Scatter
        | OpKind::SdyConstant
        | OpKind::ShardedToUnreduced
        | OpKind::Slice
        | OpKind::StablehloReturn
        | OpKind::Transpose
        | OpKind::While => Vec::new(),
        // In the padding it has its initial value.
        OpKind::Reduce if program.shardy().has(Change::PaddedLoops) => Vec::new(),
        OpKind::Reduce => list("dimensions")?,
        OpKind::Concatenate | OpKind::Sort => {
            vec![op_attribute(program, op, "dimension")?.as_int()?]
        }
        OpKind::Pad => {
            let lists =
                [list("edge_padding_low")?, list("edge_padding_high")?, list("interior_padding")?];
            let is_padded = |dim: &usize| lists.iter().any(|list| list[*dim] != 0);
            (0..lists[0].len()).filter(is_padded).map(|dim| dim as i64).collect()
        }
        OpKind::ReduceWindow => return non_trivial(&windows(program, op, REDUCTION)?, rank),
        OpKind::SelectAndScatter => return non_trivial(&windows(program, op, SELECTION)?, rank),
        // Dims of size 1 are broadcast.
        OpKind::BroadcastInDim => {
            let shape = program.types()[*true_types.first()?].static_shape()?;
            (0..shape.len()).filter(|&dim| shape[dim] == 1).map(|dim| dim as i64).collect()
        }
        _ if ALIKE.contains(&name) => Vec::new(),
        _ if name == "stablehlo.reverse" => list("dimensions")?,
        _ => match ShapeRule::of(name)? {
            ShapeRule::Elementwise => Vec::new(),
            _ => return None,
        },
    };
    dims.into_iter().map(|dim| usize::try_from(dim).ok()).collect()
}

/// The dims with windows of several elements, strides or padding.
fn non_trivial(windows: &WindowLists, rank: usize) -> Option<Vec<usize>> {
    let mut dims = Vec::new();
    for dim in 0..rank {
        if !windows.dim(dim)?.is_trivial() {
            dims.push(dim);
        }
    }
    Some(dims)
}
