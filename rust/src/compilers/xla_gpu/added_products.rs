//! Sums of a product and an array that nothing else reads, such as gradients that a loop adds up: the library for products adds to what
//! is there, which it reads after it has computed.
//!
//! Source: XLA's `GemmRewriter` (`FuseMatrixBiasAdd`).

use crate::compilers::xla_cpu::kernels::kernel_row::KernelRow;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use rustc_hash::FxHashMap;

/// Leaves of each kernel among `rows` that only adds another array to the result of a product what that product reads after it has
/// computed: the other array. The sum is written where the product would be.
pub fn add_to_products(program: &Program, works: &mut Works<'_>, rows: &mut [KernelRow]) {
    let mut written: FxHashMap<OpId, (u128, u128)> = FxHashMap::default();
    for row in rows.iter() {
        if !row.is_copy && program.kind(row.op) == OpKind::DotGeneral {
            written.insert(row.op, (row.runs, row.written));
        }
    }
    for row in rows {
        let Some(dot) = only_adds_to(program, works, row) else { continue };
        if written.get(&dot) == Some(&(row.runs, row.written)) {
            row.read = row.read.saturating_sub(row.written);
            row.cached = row.cached.min(row.read);
            row.written = 0;
        }
    }
}

/// The product to whose result `row` adds one other array, and does nothing else.
fn only_adds_to(program: &Program, works: &mut Works<'_>, row: &KernelRow) -> Option<OpId> {
    let is_add = |op: OpId| program.op_name(op) == "stablehlo.add";
    let moves =
        |op: OpId| matches!(program.op_name(op), "stablehlo.reshape" | "stablehlo.transpose");
    if row.is_copy || !is_add(row.op) || !row.fused.iter().all(|&op| moves(op)) {
        return None;
    }
    let written = works.tensors.bytes(program.result(row.op, 0));
    if row.written != written {
        return None;
    }
    // What is added to is written over, so that nothing else may read it.
    let made_by = |mut value: ValueId| loop {
        if program.users(value).nth(1).is_some() || works.tensors.bytes(value) != written {
            return None;
        }
        match program.defining_op(value) {
            Some(op) if moves(op) => value = program.operand(op, 0),
            found => return Some(found),
        }
    };
    let both: Option<Vec<Option<OpId>>> = program.operands(row.op).map(made_by).collect();
    let is_dot = |op: &OpId| program.kind(*op) == OpKind::DotGeneral;
    both?.into_iter().flatten().find(is_dot)
}
