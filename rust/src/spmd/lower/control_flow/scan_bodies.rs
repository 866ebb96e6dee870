//! Scans whose body computes each element of a slice by itself: each device scans its shards of all slices.

use crate::index::{OpId, ValueId};
use crate::ir::{ConstantValue, OpKind, OpTraits, Program};
use crate::mlir::op_attribute;
use crate::spmd::lower::constants::no_operands::splat_text;
use crate::spmd::lower::op_with_rule::OpWithRule;
use crate::spmd::lower::{LocalValue, Lowering};
use crate::spmd::placement::PlacementId;
use crate::spmd::strategy::Strategy;

/// Whether `op` is a scan that carries values, and whose body is elementwise: all values in it have the shape of a slice, or are
/// scalars of which slices are made.
pub(in crate::spmd::lower) fn is_elementwise_scan(program: &Program, op: OpId) -> bool {
    let shape_of = |value: ValueId| program.types()[program.type_of(value)].static_shape();
    let Some(block) = program.op_regions(op).next().and_then(|it| program.region_entry(it).get())
    else {
        return false;
    };
    let mut args = program.block_args(block).map(shape_of);
    let Some(Some(slice)) = args.next() else { return false };
    let is_part = |value: ValueId| shape_of(value).is_some_and(|it| it.is_empty() || it == slice);
    let sizes = op_attribute(program, op, "operandSegmentSizes").and_then(|sizes| sizes.as_ints());
    let carries = sizes.is_some_and(|sizes| sizes.get(1).is_some_and(|&carried| carried > 0));
    carries
        && args.all(|shape| shape.as_ref() == Some(&slice))
        && program.block_ops(block).all(|inner| {
            let is_known = match program.kind(inner) {
                OpKind::StablehloReturn => true,
                OpKind::Constant | OpKind::SdyConstant => {
                    shape_of(program.result(inner, 0)).is_some_and(|shape| shape.is_empty())
                        || is_splat(program, inner)
                }
                OpKind::BroadcastInDim => {
                    shape_of(program.operand(inner, 0)).is_some_and(|shape| shape.is_empty())
                }
                _ => program.has_traits(inner, OpTraits::ELEMENTWISE),
            };
            is_known && program.num_regions(inner) == 0 && program.op_results(inner).all(is_part)
        })
}

/// Whether the elements of `op`, a constant, are equal, and written as one. Digits in quotes may be those of several.
fn is_splat(program: &Program, op: OpId) -> bool {
    match program.constant_value(op) {
        ConstantValue::Splat(_) => true,
        ConstantValue::Element(text) => !text.starts_with('"'),
        ConstantValue::Text(_) => false,
    }
}

impl Lowering<'_, '_, '_> {
    /// Scans shards: values in the body get the placement of slices.
    pub(in crate::spmd::lower) fn scan_slices_locally(
        &mut self,
        work: &OpWithRule,
        strategy: &Strategy,
        operands: &[LocalValue],
    ) {
        let program = &*self.emit.program;
        let block =
            program.op_regions(work.op).next().and_then(|it| program.region_entry(it).get());
        // The last operand is carried, and has the shape of a slice.
        let slice =
            strategy.operands.last().copied().filter(|&it| !self.placements[it].is_replicated());
        if let (Some(block), Some(slice)) = (block, slice) {
            let rank = self.placements[slice].dims.len();
            let inner: Vec<OpId> = program.block_ops(block).collect();
            let args = program.block_args(block);
            let values = args.chain(inner.iter().flat_map(|&op| program.op_results(op)));
            for value in values.collect::<Vec<_>>() {
                let ty = self.emit.program.type_of(value);
                if self.shape_of(ty).is_some_and(|shape| shape.len() == rank) {
                    self.shard_in_body(value, slice);
                }
            }
            // The terminator has no results that change.
            self.retyped.extend(inner.last());
            self.emit.go_before(work.op);
        }
        self.in_place(work, strategy, operands);
    }
    /// Gives `value`, in the body of a scan, the local type of `slice`.
    fn shard_in_body(&mut self, value: ValueId, slice: PlacementId) {
        let program = &*self.emit.program;
        let constant = program
            .defining_op(value)
            .filter(|&op| matches!(program.kind(op), OpKind::Constant | OpKind::SdyConstant));
        let Some(op) = constant else {
            self.keep(value, slice);
            return;
        };
        let element = splat_text(program.constant_text(op)).unwrap_or_default();
        let local = self.local_type(program.type_of(value), slice);
        self.emit.go_before(op);
        let new = self.emit.splat(&element, local);
        self.emit.program.replace_all_uses(value, new);
        self.dead.push(op);
    }
}
