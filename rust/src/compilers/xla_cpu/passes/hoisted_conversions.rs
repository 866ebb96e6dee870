//! Values that a loop only reads and are converted once, before the loop, as that is the same in each trip: on hosts those in `bf16`, as
//! ops of the body read them as `f32`; on TPUs those of which the body converts slices to `bf16`.
//!
//! Source: XLA's `FloatNormalization` and `WhileLoopInvariantCodeMotion`; of TPUs what compiled programs show.

use crate::compilers::accelerator::fusion::is_only_read;
use crate::compilers::xla_cpu::kernels::builder::Builder;
use crate::compilers::xla_cpu::kernels::graph::NONE;
use crate::compilers::xla_cpu::layout_assignment::dim_orders::DimOrder;
use crate::compilers::xla_tpu::narrowed_values::Narrowed;
use crate::index::{Id, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};
use crate::work::tensors::Tensors;

/// The most loops inside each other that are looked into.
const MAX_DEPTH: u32 = 8;

impl Builder<'_, '_, '_> {
    /// For each operand of `op`, a loop, its converted copy; [`NONE`] if it is read as it is.
    pub(in crate::compilers::xla_cpu) fn converted_for(
        &mut self,
        op: OpId,
        mut copies: Vec<u32>,
    ) -> Vec<u32> {
        let program = self.program;
        for (index, value) in program.operands(op).enumerate() {
            let is_widened = self.is_widened(op, index);
            if !is_widened && !self.is_narrowed(op, index) {
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
            let bytes = if is_widened { bytes.saturating_mul(2) } else { bytes / 2 };
            let copy = self.make(value, bytes, kernel);
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
    fn is_narrowed(&mut self, op: OpId, index: usize) -> bool {
        let value = self.program.operands(op).nth(index);
        let is_wide = value.is_some_and(|value| self.works.tensors.element(value) == "f32");
        self.layouts.compiler().fuses_products()
            && is_wide
            && is_read_in_slices(
                self.program,
                (&mut self.works.tensors, &mut self.narrowed),
                (op, index),
                0,
            )
    }
}

/// Argument `index` of the body of `op`, a loop.
fn argument_of(program: &Program, op: OpId, index: usize) -> Option<ValueId> {
    let body = program.op_regions(op).nth(1).and_then(|region| program.region_entry(region).get());
    program.block_args(body?).nth(index)
}

/// Whether the body of `op`, a loop, only reads its argument `index`, and that in slices that it converts to `bf16`.
fn is_read_in_slices(
    program: &Program,
    (tensors, narrowed): (&mut Tensors<'_>, &mut Narrowed<'_>),
    (op, index): (OpId, usize),
    depth: u32,
) -> bool {
    let argument = argument_of(program, op, index).filter(|_| depth < MAX_DEPTH);
    let Some(argument) = argument.filter(|_| is_only_read(program, op, index)) else {
        return false;
    };
    let mut is_sliced = false;
    for slot in program.uses(argument) {
        let user = program.user(slot);
        match program.kind(user) {
            OpKind::While => {
                let inner = (user, program.operand_index(slot));
                if !is_read_in_slices(program, (tensors, narrowed), inner, depth + 1) {
                    return false;
                }
                is_sliced = true;
            }
            _ if program.has_traits(user, OpTraits::TERMINATOR) => {}
            _ if program.op_name(user) == "stablehlo.dynamic_slice" => {
                let slice = program.result(user, 0);
                if !narrowed.has(tensors, slice) && !is_narrowed_by_all(program, slice) {
                    return false;
                }
                is_sliced = true;
            }
            _ => return false,
        }
    }
    is_sliced
}

/// Whether all that read `value`, or what is reshaped of it, or behind a barrier, convert it to `bf16`.
fn is_narrowed_by_all(program: &Program, value: ValueId) -> bool {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        for slot in program.uses(value) {
            let user = program.user(slot);
            match program.op_name(user) {
                "stablehlo.reshape" => left.push(program.result(user, 0)),
                "stablehlo.optimization_barrier" => {
                    left.push(program.result(user, program.operand_index(slot)));
                }
                "stablehlo.convert" => {
                    if !program.value_type_text(program.result(user, 0)).ends_with("bf16>") {
                        return false;
                    }
                }
                _ => return false,
            }
        }
    }
    true
}

/// Whether the body of `op`, a loop, only reads its argument `index`, and computes something of it.
fn is_computed_with(program: &Program, op: OpId, index: usize, depth: u32) -> bool {
    let argument = argument_of(program, op, index);
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
