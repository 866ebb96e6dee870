//! Edits of operands: every slot is in the use list of its value, the newest use first, as in MLIR.

use super::{OpFlags, Operand, Program, ValueDef, NO_NAME};
use crate::index::{OpId, UseId, ValueId};

impl Program {
    /// Puts `slot` at the head of `value`'s use list.
    #[inline]
    pub(super) fn link_use(&mut self, slot: UseId, value: ValueId) {
        let head = std::mem::replace(&mut self.values[value].first_use, slot);
        let row = &mut self.operands[slot];
        (row.value, row.next_use, row.prev_use) = (value, head, UseId::NONE);
        if let Some(head) = head.get() {
            self.operands[head].prev_use = slot;
        }
    }
    /// Takes `slot` out of the use list it is in.
    #[inline]
    pub(super) fn unlink_use(&mut self, slot: UseId) {
        let Operand { value, next_use, prev_use, .. } = self.operands[slot];
        if value.is_none() {
            return;
        }
        match prev_use.get() {
            Some(prev) => self.operands[prev].next_use = next_use,
            None => self.values[value].first_use = next_use,
        }
        if let Some(next) = next_use.get() {
            self.operands[next].prev_use = prev_use;
        }
        let row = &mut self.operands[slot];
        (row.value, row.next_use, row.prev_use) = (ValueId::NONE, UseId::NONE, UseId::NONE);
    }
    /// Makes `value` the operand of `slot`; as in MLIR it becomes the newest use of `value`.
    #[inline]
    pub fn set_operand(&mut self, slot: UseId, value: ValueId) {
        self.unlink_use(slot);
        self.link_use(slot, value);
        let owner = self.operands[slot].owner;
        self.printing.flags[owner].set(OpFlags::OPERANDS_CHANGED);
    }
    /// Makes every use of `old` a use of `new`, newest first, as MLIR's `replaceAllUsesWith` does
    /// (which leaves them in reverse order at the head of `new`'s list).
    pub fn replace_all_uses(&mut self, old: ValueId, new: ValueId) {
        self.replace_uses_if(old, new, |_, _| true);
    }
    /// Makes those uses of `old` that `pick` accepts uses of `new`; `pick` is called newest first.
    #[inline]
    pub fn replace_uses_if(
        &mut self,
        old: ValueId,
        new: ValueId,
        mut pick: impl FnMut(&Self, UseId) -> bool,
    ) {
        let mut slot = self.values[old].first_use;
        while slot.is_some() {
            let next = self.operands[slot].next_use;
            if pick(self, slot) {
                self.set_operand(slot, new);
            }
            slot = next;
        }
    }
    /// Makes the uses of `old` by other ops than `user` uses of `new`, as MLIR's `replaceAllUsesExcept` does.
    pub fn replace_all_uses_except(&mut self, old: ValueId, new: ValueId, user: OpId) {
        self.replace_uses_if(old, new, |program, slot| program.operands[slot].owner != user);
    }
    /// Reverses the use list of `value`, as if all uses had been moved to another value, one by one from the
    /// head, and that value had then replaced this one.
    pub fn reverse_uses(&mut self, value: ValueId) {
        let (mut slot, mut head) = (self.values[value].first_use, UseId::NONE);
        while let Some(at) = slot.get() {
            let row = &mut self.operands[at];
            slot = row.next_use;
            std::mem::swap(&mut row.next_use, &mut row.prev_use);
            head = at;
        }
        self.values[value].first_use = head;
    }
    /// Makes `slot` the newest use of its value.
    #[inline]
    pub fn make_newest_use(&mut self, slot: UseId) {
        let Operand { value, prev_use, .. } = self.operands[slot];
        if prev_use.is_some() {
            self.unlink_use(slot);
            self.link_use(slot, value);
        }
    }
    /// Makes the uses by `op`, one after the other, the newest uses of their values.
    pub fn make_newest_uses(&mut self, op: OpId) {
        for slot in self.op_uses(op) {
            // Most values have one use.
            if self.operands[slot].prev_use.is_some() {
                self.make_newest_use(slot);
            }
        }
    }
    /// Puts the uses of `value` in this order, newest first; `order` holds all of them.
    pub fn set_use_order(&mut self, value: ValueId, order: &[UseId]) {
        self.values[value].first_use = UseId::NONE;
        for &slot in order.iter().rev() {
            self.link_use(slot, value);
        }
    }
    /// Moves all uses of `old` to `new`, keeping their order; `new` must have no uses.
    pub fn transfer_uses(&mut self, old: ValueId, new: ValueId) {
        let head = std::mem::take(&mut self.values[old].first_use);
        self.values[new].first_use = head;
        let mut slot = head;
        while let Some(at) = slot.get() {
            self.operands[at].value = new;
            let owner = self.operands[at].owner;
            self.printing.flags[owner].set(OpFlags::OPERANDS_CHANGED);
            slot = self.operands[at].next_use;
        }
    }
    /// Replaces the operands of `op` by a new list (new slots, added in order).
    pub fn set_operands(&mut self, op: OpId, values: &[ValueId]) {
        for slot in self.op_uses(op) {
            self.unlink_use(slot);
        }
        self.ops[op].num_operands = 0;
        self.push_operands(op, values);
        self.printing.flags[op].set(OpFlags::OPERANDS_CHANGED);
    }
    /// Makes the printer make up a name for `value`.
    pub fn forget_name(&mut self, value: ValueId) {
        self.printing.value_names[value] = NO_NAME;
        match self.values[value].def() {
            ValueDef::Result(op) => self.printing.flags[op].set(OpFlags::RESULTS_RENAMED),
            ValueDef::Arg(block) => {
                let op = self.block_parent_op(block);
                self.printing.flags[op].set(OpFlags::ATTRS_CHANGED);
            }
        }
        let users: Vec<OpId> = self.uses(value).map(|slot| self.operands[slot].owner).collect();
        for user in users {
            self.printing.flags[user].set(OpFlags::OPERANDS_CHANGED);
        }
    }
}
