//! Erasing some of the operands of an op or of the arguments of a block.

use super::Program;
use crate::index::{BlockId, OpId, TypeId, UseId, ValueId};

impl Program {
    /// Erases the operands of `op` for which `is_erased` is true. As in MLIR, those after the first
    /// erased one move up and become the newest uses of their values.
    pub fn erase_operands(&mut self, op: OpId, is_erased: &[bool]) {
        let slots: Vec<UseId> = self.op_uses(op).collect();
        let Some(first) = is_erased.iter().position(|&erased| erased) else { return };
        let mut kept = first;
        for index in first + 1..slots.len() {
            if !is_erased[index] {
                let value = self.operands[slots[index]].value;
                self.set_operand(slots[kept], value);
                kept += 1;
            }
        }
        for &slot in &slots[kept..] {
            self.unlink_use(slot);
        }
        self.ops[op].num_operands = kept as u32;
        self.mark_attrs_changed(op);
    }
    /// Erases the arguments of `block` for which `is_erased` is true; they must have no uses.
    pub fn erase_block_args(&mut self, block: BlockId, is_erased: &[bool]) {
        let all: Vec<ValueId> = self.block_args(block).collect();
        let kept: Vec<ValueId> =
            all.iter().zip(is_erased).filter(|(_, &erased)| !erased).map(|(&arg, _)| arg).collect();
        let rows: Vec<(TypeId, u32)> =
            kept.iter().map(|&arg| (self.values[arg].ty, self.printing.value_names[arg])).collect();
        self.blocks[block].num_args = 0;
        let new: Vec<ValueId> =
            rows.into_iter().map(|(ty, name)| self.push_block_arg(block, ty, name)).collect();
        for (old, new) in kept.into_iter().zip(new) {
            self.value_shardings[new] = self.value_shardings[old];
            self.transfer_uses(old, new);
        }
        self.mark_attrs_changed(self.block_parent_op(block));
    }
}
