//! Reshapes between the shapes of a `dot_general` and the batches of matrices that its kernel multiplies.
//!
//! The kernel of a dot reads and writes one matrix for each batch element. Operands and results of other shapes are reshaped, which
//! takes a place in the schedule, unless a producer makes the matrix for this dot alone.
//!
//! Source: XLA's `DotDecomposer`.

use crate::compilers::xla_cpu::fusion::op_facts::Fact;
use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::{Read, NONE};
use crate::compilers::xla_cpu::layout_assignment::dim_orders::DimOrder;
use crate::index::{Id, OpId, ValueId};
use crate::work::ops::contract::product;

impl Builder<'_, '_, '_> {
    /// The item of `value` in its own shape, for users that do not fuse with its producer.
    pub(in crate::compilers::xla_cpu) fn item_in_own_dims(&self, value: ValueId) -> u32 {
        let item = self.item(value);
        if self.reshaped_results.is_empty() {
            return item;
        }
        self.reshaped_results.get(&self.storage.equal.first(value)).copied().unwrap_or(item)
    }
    /// An alias of `value`, operand `index` of `op`, as the matrix that `op` reads; [`NONE`] if its producer makes it as a matrix.
    pub(in crate::compilers::xla_cpu) fn as_matrix(
        &mut self,
        op: OpId,
        index: usize,
        value: ValueId,
    ) -> u32 {
        let item = self.items[value.index()];
        if item == NONE || self.is_made_as_matrix(op, index, value) {
            return NONE;
        }
        let key = (value, DimOrder::default());
        if let Some(&known) = self.copies.get(&key) {
            return known;
        }
        let name = self.name_apart(op, value, item);
        self.copies.insert(key, name);
        name
    }
    /// Gives `value`, the result of the dot `op`, an alias in its own shape, if users that do not fuse read it so.
    pub(in crate::compilers::xla_cpu) fn reshape_result(&mut self, op: OpId, value: ValueId) {
        if self.storage.facts.has(op, Fact::PRODUCT)
            && self.storage.row(value).read_in_own
            && self.layouts.reshapes_result(self.program, op).is_some()
        {
            let name = self.name_apart(op, value, self.items[value.index()]);
            self.reshaped_results.insert(value, name);
        }
    }
    /// A further alias of `item` for `value`; the item of `value` stays the same.
    fn name_apart(&mut self, op: OpId, value: ValueId, item: u32) -> u32 {
        let kernel = self.kernel(op, false, false);
        self.graph.kernels[kernel as usize].is_name = true;
        self.reads.push((kernel, Read::whole(item)));
        self.name(value, item, kernel);
        std::mem::replace(&mut self.items[value.index()], item)
    }
    /// Whether the producer of `value`, operand `index` of the dot `op`, makes it as the matrix that `op` reads.
    fn is_made_as_matrix(&mut self, op: OpId, index: usize, value: ValueId) -> bool {
        let program = self.program;
        let Some(by) = program.defining_op(value) else { return false };
        let (facts, row) = (self.storage.facts.of(by), *self.storage.row(value));
        if facts.has(Fact::NAME) || row.has_tail {
            return true;
        }
        if facts.has_any(Fact::POINTWISE.or(Fact::WINDOW).or(Fact::EXPAND)) {
            let is_for_others = row.read_in_own || !row.is_inlined && row.uses > 1;
            return !facts.has(Fact::APART) && !is_for_others;
        }
        let Some((batch, rows)) = self.layouts.reshapes_result(program, by) else { return false };
        let Some(sizes) = self.works.tensors.of(value).dims.as_deref() else { return false };
        let made = product(sizes.iter().skip(batch as usize).take(rows as usize));
        self.layouts.matrix(program, self.works, op, index) == Some((batch, made))
    }
}
