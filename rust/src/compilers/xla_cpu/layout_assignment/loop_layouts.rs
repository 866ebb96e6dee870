//! Layouts that dots impose on what loops carry.
//!
//! A dot in the body of a loop that cannot read an operand as it is, a slice of what the loop carries, is not given a copy: the loop
//! carries the whole in the dot's layout. What is carried is copied before the loop, unless it is computed in any layout, and after
//! it, if it is returned. An update has the layout of what it updates.
//!
//! Source: XLA's `LayoutAssignment`, which assigns the layouts of a loop's body before those around the loop.

use super::carried_layouts::CarriedLayouts;
use super::dim_orders::{is_moved, DimOrder};
use super::operand_copies::{has_any_order, Layouts};
use crate::index::{BlockId, OpId, ValueId};
use crate::ir::{OpKind, OpTraits, Program, ValueDef};
use crate::work::cached::Works;
use rustc_hash::FxHashMap;

/// The most ops between what a loop carries and a dot that reads it.
const MAX_STEPS: usize = 64;

impl CarriedLayouts {
    /// Those of the loops in `functions`.
    pub fn new(
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        functions: &[OpId],
    ) -> Self {
        let mut found = Self::default();
        if !program.has_any(&[OpKind::While]) {
            return found;
        }
        for &func in functions {
            for op in program.pre_order(func).filter(|&op| program.kind(op) == OpKind::While) {
                let body = program.op_regions(op).nth(1);
                if let Some(body) = body.and_then(|body| program.region_entry(body).get()) {
                    found.look_at_loop(program, works, layouts, (op, body));
                }
            }
        }
        found
    }
    fn look_at_loop(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        layouts: &mut Layouts,
        (op, body): (OpId, BlockId),
    ) {
        let mut carried: FxHashMap<ValueId, DimOrder> = FxHashMap::default();
        for dot in program.block_ops(body).filter(|&dot| program.kind(dot) == OpKind::DotGeneral) {
            for (index, value) in program.operands(dot).enumerate() {
                if layouts.folded(program, works, dot, (index, value)).is_some() {
                    continue;
                }
                let Some(order) = layouts.moved(program, works, dot, index).cloned() else {
                    continue;
                };
                if let Some((argument, order)) = source(program, works, body, (value, order)) {
                    carried.entry(argument).or_insert(order);
                }
            }
        }
        if carried.is_empty() {
            return;
        }
        self.orders.extend(carried.iter().map(|(&value, order)| (value, order.clone())));
        for inner in program.block_ops(body) {
            self.look_at(program, works, inner, &mut carried);
        }
        for (index, argument) in program.block_args(body).enumerate() {
            if let Some(order) = carried.get(&argument) {
                self.look_around(program, works, (op, index), order);
            }
        }
    }
    /// Finds the order of the result of `op`, if it keeps that of an operand; an update has that of what it writes.
    fn look_at(
        &mut self,
        program: &Program,
        works: &mut Works<'_>,
        op: OpId,
        carried: &mut FxHashMap<ValueId, DimOrder>,
    ) {
        let Some(kept) = keeps_order(program, op) else { return };
        let result = program.result(op, 0);
        let mut order = self.orders.get(&program.operand(op, 0)).cloned();
        if kept == Kept::InUpdate && order.is_none() {
            order = self.orders.get(&program.operand(op, 1)).cloned();
            let target = program.operand(op, 0);
            if let (Some(order), ValueDef::Arg(_)) = (&order, program.def(target)) {
                self.orders.insert(target, order.clone());
                carried.insert(target, order.clone());
            }
        }
        if let (Some(known), Kept::Reshaped) = (&order, kept) {
            order = reshaped(works, known, program.operand(op, 0), result);
        }
        if let Some(order) = order {
            self.orders.insert(result, order);
            if kept == Kept::InSlice && only_dots_read(program, result) {
                self.sliced.push(result);
            }
        }
    }
    /// Finds the copies around the loop `op` for what it carries at `index`.
    fn look_around(
        &mut self,
        program: &Program,
        works: &Works<'_>,
        (op, index): (OpId, usize),
        order: &DimOrder,
    ) {
        let Some(first) = program.operands(op).nth(index) else { return };
        let is_free = program.defining_op(first).is_some_and(|made_by| {
            has_any_order(program, works, made_by)
                || program.kind(made_by) == OpKind::While
                || program.op_name(made_by) == "stablehlo.broadcast_in_dim"
                || program.kind(made_by) == OpKind::Constant
        });
        if !is_free {
            self.copied.entry(op).or_default().insert(index, order.clone());
        }
        let Some(result) = program.op_results(op).nth(index) else { return };
        let is_end = |user: OpId| program.has_traits(user, OpTraits::TERMINATOR);
        if program.users(result).any(is_end) {
            self.restored.insert(result);
        }
    }
}

/// How the result of an op has the order of an operand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// It is a part of it.
    InSlice,
    /// It has other dims.
    Reshaped,
    /// It is the first operand, overwritten in part by the second.
    InUpdate,
}

/// Whether only dots of the same block read `value`, or its other names.
fn only_dots_read(program: &Program, value: ValueId) -> bool {
    let Some(home) = program.defining_op(value).map(|op| program.parent_block(op)) else {
        return false;
    };
    let mut names = vec![value];
    while let Some(name) = names.pop() {
        for user in program.users(name) {
            if program.parent_block(user) != home {
                return false;
            }
            match program.kind(user) {
                OpKind::DotGeneral => {}
                _ if keeps_order(program, user) == Some(Kept::Reshaped) => {
                    names.push(program.result(user, 0));
                }
                _ => return false,
            }
        }
    }
    true
}

fn keeps_order(program: &Program, op: OpId) -> Option<Kept> {
    match program.op_name(op) {
        "stablehlo.slice" | "stablehlo.dynamic_slice" => Some(Kept::InSlice),
        "stablehlo.reshape" => Some(Kept::Reshaped),
        "stablehlo.dynamic_update_slice" => Some(Kept::InUpdate),
        _ => None,
    }
}

/// The argument of `body` from which `value` is taken by slices, reshapes and updates, and the order of it for which `value` has
/// `order`.
fn source(
    program: &Program,
    works: &mut Works<'_>,
    body: BlockId,
    (mut value, mut order): (ValueId, DimOrder),
) -> Option<(ValueId, DimOrder)> {
    for _ in 0..MAX_STEPS {
        let op = match program.def(value) {
            ValueDef::Arg(block) => return (block == body).then_some((value, order)),
            ValueDef::Result(op) => op,
        };
        let operand = program.operands(op).next()?;
        if keeps_order(program, op)? == Kept::Reshaped {
            order = reshaped(works, &order, value, operand)?;
        }
        value = operand;
    }
    None
}

/// The order of the dims of `to` in which its elements lie as those of `from` in `order`, if these differ in dims of size one only;
/// such dims come first.
fn reshaped(
    works: &mut Works<'_>,
    order: &[usize],
    from: ValueId,
    to: ValueId,
) -> Option<DimOrder> {
    let sizes = works.tensors.of(from).dims.clone()?;
    let others = works.tensors.of(to).dims.as_deref()?;
    let large =
        |sizes: &[i64]| -> Vec<usize> { (0..sizes.len()).filter(|&dim| sizes[dim] != 1).collect() };
    let (before, after) = (large(&sizes), large(others));
    let is_same = before.len() == after.len()
        && before.iter().zip(&after).all(|(&dim, &other)| sizes[dim] == others[other]);
    if !is_same {
        return None;
    }
    let ones = (0..others.len()).filter(|&dim| others[dim] == 1);
    let moved = order.iter().filter_map(|dim| before.binary_search(dim).ok());
    let found: DimOrder = ones.chain(moved.map(|at| after[at])).collect();
    is_moved(&found, others).then_some(found)
}
