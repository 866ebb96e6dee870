//! Updates of slices whose result is also read in other dims.
//!
//! On CPUs the update is made once more for what reads it by a reshape. On GPUs the transpose of a dot's operand moves in front of
//! the update: what is updated is transposed first; one update is made in a copy of that, for the dot, another one is fused with
//! the transpose back.
//!
//! Source: XLA's `AlgebraicSimplifier` and `CopyInsertion`.

use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Read, NONE};
use crate::index::{OpId, ValueId};
use crate::ir::OpKind;

impl Builder<'_, '_, '_> {
    /// The update that makes `value`, which has more uses than `uses`.
    pub(in crate::compilers::xla_cpu) fn update_of(
        &self,
        value: ValueId,
        uses: u32,
    ) -> Option<OpId> {
        let value = self.storage.equal.first(value);
        let update = self.program.defining_op(value)?;
        let is_update = self.program.op_name(update) == "stablehlo.dynamic_update_slice"
            && !self.layouts.compiler().fuses_by_priority();
        (is_update && self.storage.uses(value) > uses).then_some(update)
    }
    /// Makes the result of `update` once more, as `value`, for `op`, which reads it in other dims: XLA fuses the update with
    /// the reshape.
    pub(in crate::compilers::xla_cpu) fn update_again(
        &mut self,
        op: OpId,
        update: OpId,
        value: ValueId,
    ) -> u32 {
        let bytes = self.bytes(value);
        let kernel = self.kernel(op, false, false);
        self.walk(kernel, self.program.operand(update, 0), false);
        let copy = self.make(value, bytes, kernel);
        let kernel = self.kernel(op, false, false);
        self.read_operands(kernel, update, &[copy]);
        let item = self.make(value, bytes, kernel);
        self.graph.items[item as usize].over = copy;
        item
    }
    /// The item of the transposed operand of `op`, if it is such an update.
    pub(in crate::compilers::xla_cpu) fn transposed_first(&mut self, op: OpId) -> Option<u32> {
        let program = self.program;
        if !self.layouts.compiler().fuses_by_priority()
            || program.op_name(op) != "stablehlo.dynamic_update_slice"
        {
            return None;
        }
        let value = program.result(op, 0);
        let mut is_moved = false;
        for user in program.users(value).filter(|&user| program.kind(user) == OpKind::DotGeneral) {
            let index = usize::from(program.operand(user, 0) != value);
            is_moved |= self.layouts.moved(program, self.works, user, index).is_some();
        }
        if !is_moved || self.item(program.operand(op, 0)) == NONE {
            return None;
        }
        let bytes = self.bytes(value);
        let kernel = self.kernel(op, false, false);
        self.walk(kernel, program.operand(op, 0), false);
        let item = self.make_beside(value, bytes, kernel);
        self.transposed.insert(value, item);
        Some(item)
    }
    /// The item of `value` as a dot reads it, if it is the result of such an update.
    pub(in crate::compilers::xla_cpu) fn updated_transposed(
        &mut self,
        value: ValueId,
    ) -> Option<u32> {
        let transposed = *self.transposed.get(&value)?;
        let update = self.program.defining_op(value)?;
        let bytes = self.bytes(value);
        let kernel = self.kernel(update, false, false);
        self.reads.push((kernel, Read::whole(transposed)));
        let copy = self.make_beside(value, bytes, kernel);
        let kernel = self.kernel(update, false, true);
        self.read_operands(kernel, update, &[copy]);
        self.note_use(kernel, copy, (update, 0));
        let item = self.make_beside(value, bytes, kernel);
        self.graph.items[item as usize].over = copy;
        Some(item)
    }
}
