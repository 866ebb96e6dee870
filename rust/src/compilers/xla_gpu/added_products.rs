//! Sums of a product and an array that nothing else reads, such as gradients that a loop adds up: the library for products adds to what
//! is there.
//!
//! Source: XLA's `GemmRewriter` (`FuseMatrixBiasAdd`).

use crate::compilers::xla_cpu::kernel_rows::KernelRow;
use crate::index::{OpId, ValueId};
use crate::ir::{OpKind, Program};
use crate::work::cached::Works;
use rustc_hash::FxHashMap;

/// Makes one kernel of each product among `rows` and the kernel that only adds another array to its result, which nothing else reads.
pub fn add_to_products(program: &Program, works: &mut Works<'_>, rows: &mut Vec<KernelRow>) {
    let mut products: FxHashMap<OpId, usize> = FxHashMap::default();
    for (row, at) in rows.iter().zip(0..) {
        if !row.is_copy && program.kind(row.op) == OpKind::DotGeneral {
            products.insert(row.op, at);
        }
    }
    let mut is_added = vec![false; rows.len()];
    for at in 0..rows.len() {
        let Some(dot) = only_adds_to(program, works, &rows[at]) else { continue };
        let Some(&product) = products.get(&dot).filter(|&&product| !is_added[product]) else {
            continue;
        };
        let sum = rows[at].clone();
        let row = &mut rows[product];
        if row.runs != sum.runs || sum.written < row.written {
            continue;
        }
        let other = sum.read.saturating_sub(row.written);
        row.accessed = row.accessed.saturating_add(other.saturating_add(sum.written));
        row.accessed = row.accessed.saturating_sub(row.written);
        row.read = row.read.saturating_add(other);
        row.written = sum.written;
        row.fused.push(sum.op);
        row.fused.extend(sum.fused);
        is_added[at] = true;
        // Another sum would be of the result of this one.
        products.remove(&dot);
    }
    let mut is_left = is_added.into_iter().map(|is_added| !is_added);
    rows.retain(|_| is_left.next() == Some(true));
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
        if program.users(value).count() != 1 || works.tensors.bytes(value) != written {
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
