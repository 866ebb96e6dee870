//! Values in `bf16` that a loop only reads, which hosts convert to `f32` once, before the loop: ops of its body read them as `f32`, and
//! the conversion is the same in each trip.
//!
//! Source: XLA's `FloatNormalization` and `WhileLoopInvariantCodeMotion`.

use crate::compilers::accelerator::fusion::is_only_read;
use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::NONE;
use crate::compilers::xla_cpu::layout_assignment::dim_orders::DimOrder;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};

/// The most loops inside each other that are looked into.
const MAX_DEPTH: u32 = 8;

impl Builder<'_, '_, '_> {
    /// For each operand of `op`, a loop, its copy in `f32`; [`NONE`] if it is read as it is.
    pub(in crate::compilers::xla_cpu) fn widened_for(
        &mut self,
        op: OpId,
        mut copies: Vec<u32>,
    ) -> Vec<u32> {
        let program = self.program;
        for (index, value) in program.operands(op).enumerate() {
            if !self.is_widened(op, index) {
                copies.push(NONE);
                continue;
            }
            let value = self.storage.equal.first(value);
            let rank = self.works.tensors.of(value).dims.as_deref().map_or(0, <[i64]>::len);
            let order: DimOrder = (0..rank).collect();
            if let Some(&known) = self.copies.get(&(value, order.clone())) {
                copies.push(known);
                continue;
            }
            let kernel = self.kernel(op, false, false);
            self.walk(kernel, value, false);
            let (own, bytes) = (self.items[value.index()], self.bytes(value));
            let copy = self.make(value, bytes.saturating_mul(2), kernel);
            self.items[value.index()] = own;
            self.copies.insert((value, order), copy);
            copies.push(copy);
        }
        copies
    }
    /// Whether `value`, an argument of the body of a loop, is converted before that.
    pub(in crate::compilers::xla_cpu) fn is_widened_outside(&mut self, value: ValueId) -> bool {
        if !self.layouts.is_on_host() {
            return false;
        }
        let program = self.program;
        let ValueDef::Arg(block) = program.def(value) else { return false };
        let owner = program.block_parent_op(block);
        if program.kind(owner) != OpKind::While {
            return false;
        }
        let index = program.block_args(block).position(|argument| argument == value);
        index.is_some_and(|index| self.is_widened(owner, index))
    }
    fn is_widened(&mut self, op: OpId, index: usize) -> bool {
        let value = self.program.operands(op).nth(index);
        let is_narrow = value.is_some_and(|value| self.works.tensors.element(value) == "bf16");
        self.layouts.is_on_host() && is_narrow && is_computed_with(self.program, op, index, 0)
    }
}

/// Whether the body of `op`, a loop, only reads its argument `index`, and computes something of it.
fn is_computed_with(program: &Program, op: OpId, index: usize, depth: u32) -> bool {
    let body = program.op_regions(op).nth(1).and_then(|region| program.region_entry(region).get());
    let argument = body.and_then(|body| program.block_args(body).nth(index));
    let Some(argument) = argument.filter(|_| depth < MAX_DEPTH) else { return false };
    let computes = |user: OpId| match program.kind(user) {
        OpKind::While => {
            let mut operands = (0..).zip(program.operands(user));
            operands.any(|(at, value)| {
                value == argument && is_computed_with(program, user, at, depth + 1)
            })
        }
        _ => !program.has_traits(user, OpTraits::TERMINATOR),
    };
    is_only_read(program, op, index) && program.users(argument).any(computes)
}
