//! `layout-assignment`: dims of what is computed from products in the order in which a product has them.
//!
//! XLA for GPUs assigns a dot the layout in which its kernel writes, and a transpose after it is a bitcast: what is computed from it,
//! as the softmax of an attention, has its dims in the same order in memory. Here these ops are rewritten to that order, so that what
//! follows, fusion first, sees which dims are minor. Values that anything else reads are transposed after them.
//!
//! Source: XLA's `LayoutAssignment`.

use super::dim_orders::DimOrder;
use super::product_transposes::{first_transposes, is_elementwise, permutation};
use super::reordered::{inverse, Reordered};
use crate::compilers::target::Compiler;
use crate::context::Context;
use crate::error::Result;
use crate::index::{BlockId, OpId, ValueId};
use crate::inlining::call_inliner::{Inlined, Originals};
use crate::ir::{OpKind, Program};
use crate::mlir::op_attribute;
use rustc_hash::{FxHashMap, FxHashSet};

/// How many elementwise ops before what costs nothing in any order are looked through.
const MAX_DEPTH: u32 = 8;

/// Rewrites the program of `inlined` for `compiler`.
pub fn keep_product_orders(inlined: &mut Inlined<'_>, compiler: Compiler) {
    if !compiler.keeps_product_orders() {
        return;
    }
    let first = first_transposes(&inlined.program, compiler);
    if !first.is_empty() {
        rewrite(inlined.program.to_mut(), &mut inlined.originals, first);
    }
}

/// Runs the pass on the module, as XLA for GPUs does.
pub fn run(program: &mut Program, context: &mut Context<'_>) -> Result<()> {
    context.progress("layout-assignment", 0, 1)?;
    let first = first_transposes(program, Compiler::XlaGpu);
    let mut originals = Originals::of(program);
    rewrite(program, &mut originals, first);
    Ok(())
}

/// Rewrites what is computed from the transposes `first`.
fn rewrite(program: &mut Program, originals: &mut Originals, first: Vec<OpId>) {
    let mut blocks: Vec<BlockId> = Vec::new();
    let mut seen: FxHashSet<BlockId> = FxHashSet::default();
    for &op in &first {
        let block = program.parent_block(op);
        if seen.insert(block) {
            blocks.push(block);
        }
    }
    let mut orders = Orders {
        made: Reordered::new(program, originals),
        first: first.into_iter().collect(),
        of: FxHashMap::default(),
        handled: FxHashSet::default(),
        ages: FxHashMap::default(),
        ordered: FxHashMap::default(),
    };
    for block in blocks {
        orders.rewrite(block);
    }
    let Orders { mut made, of, handled, .. } = orders;
    made.restore(&of, &handled);
}

/// Ops that give their operand another form.
const FORMS: [&str; 3] = ["stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.transpose"];

/// Whether `op` is a broadcast whose result has more elements than its operand.
fn is_spreading(program: &Program, op: OpId) -> bool {
    let count = |value| {
        let sizes = program.value_type(value).static_shape()?;
        Some(sizes.into_iter().fold(1, i64::saturating_mul))
    };
    program.op_name(op) == "stablehlo.broadcast_in_dim"
        && count(program.operand(op, 0)) < count(program.result(op, 0))
}

/// The values of a program whose dims are in another order than they were.
struct Orders<'p> {
    made: Reordered<'p>,
    /// The transposes from which on orders are kept.
    first: FxHashSet<OpId>,
    /// For each such value, which of its former dims each dim is.
    of: FxHashMap<ValueId, DimOrder>,
    /// The ops that read these values as they are.
    handled: FxHashSet<OpId>,
    /// For each value of the block the place of the first op, a dot say, that decides in which order it is stored; [`FREE`] if none
    /// does. What is missing is stored as it is given.
    ages: FxHashMap<ValueId, u32>,
    /// Values of the block in another order than they are stored in.
    ordered: FxHashMap<(ValueId, DimOrder), ValueId>,
}

/// The age of a value that is made in any order.
const FREE: u32 = u32::MAX;

impl Orders<'_> {
    fn program(&self) -> &Program {
        self.made.program
    }
    /// Rewrites the ops of `block`.
    fn rewrite(&mut self, block: BlockId) {
        let ops: Vec<OpId> = self.program().block_ops(block).collect();
        self.ages.clear();
        self.ordered.clear();
        for (place, op) in ops.into_iter().enumerate() {
            let age = self.age(op, place as u32);
            let is_first = self.first.contains(&op);
            let is_ordered = |value| self.of.contains_key(&value);
            let result = self.program().op_results(op).next();
            let mut made = result;
            if is_first || self.program().operands(op).any(is_ordered) {
                made = self.take(op).or(result);
            }
            self.ages.extend(made.map(|value| (value, age)));
        }
    }
    /// The age of the first result of `op`, the op at `place` of the block: that of the oldest operand, if the op takes the order of
    /// its operands.
    fn age(&self, op: OpId, place: u32) -> u32 {
        let program = self.program();
        let takes_order = program.kind(op) == OpKind::Reduce
            || is_elementwise(program, op)
            || FORMS.contains(&program.op_name(op));
        if !takes_order {
            let is_free = matches!(program.op_name(op), "stablehlo.constant" | "stablehlo.iota");
            return if is_free { FREE } else { place };
        }
        // What is repeated is read in any order.
        if is_spreading(program, op) {
            return FREE;
        }
        let ages = program.operands(op).map(|value| self.ages.get(&value).copied().unwrap_or(0));
        ages.min().unwrap_or(FREE)
    }
    /// Rewrites `op`, if it can read and write values in the order that its operands have, and returns what stands for its result.
    fn take(&mut self, op: OpId) -> Option<ValueId> {
        match self.program().kind(op) {
            OpKind::Reduce => self.reduce(op),
            _ => match self.program().op_name(op) {
                "stablehlo.transpose" => self.transpose(op),
                "stablehlo.broadcast_in_dim" => self.broadcast(op),
                "stablehlo.reshape" => self.reshape(op),
                _ if is_elementwise(self.program(), op) => self.elementwise(op),
                _ => None,
            },
        }
    }
    /// Uses `new`, whose dims are in `order`, for the result of `op`.
    fn replace(&mut self, op: OpId, new: ValueId, order: DimOrder) -> ValueId {
        let result = self.program().result(op, 0);
        self.made.program.replace_all_uses(result, new);
        self.made.program.erase_op(op);
        self.handled.extend(self.made.program.defining_op(new));
        self.note(new, order);
        new
    }
    fn note(&mut self, value: ValueId, order: DimOrder) {
        if !order.is_sorted() {
            self.of.insert(value, order);
        }
    }
    /// The order of the dims of `value`.
    fn order(&self, value: ValueId) -> DimOrder {
        let rank = self.program().value_type(value).rank().unwrap_or(0);
        self.of.get(&value).cloned().unwrap_or_else(|| (0..rank).collect())
    }
    /// A transpose becomes another name of its operand.
    fn transpose(&mut self, op: OpId) -> Option<ValueId> {
        let turned = inverse(&permutation(self.program(), op)?);
        let value = self.program().operand(op, 0);
        let order = self.order(value).iter().map(|&dim| turned[dim]).collect();
        let new = self.made.same(op, value);
        Some(self.replace(op, new, order))
    }
    /// A broadcast reads its operand in any order; one that only adds dims keeps the order.
    fn broadcast(&mut self, op: OpId) -> Option<ValueId> {
        let places = op_attribute(self.program(), op, "broadcast_dimensions")?.as_ints()?;
        let (value, result) = (self.program().operand(op, 0), self.program().result(op, 0));
        let order = self.order(value);
        let mut places: Vec<usize> =
            order.iter().map(|&dim| usize::try_from(places[dim]).ok()).collect::<Option<_>>()?;
        let sizes = self.program().value_type(result).static_shape()?;
        let added = (0..sizes.len()).filter(|dim| !places.contains(dim));
        let added: Vec<usize> = added.collect();
        let own = self.program().value_type(value).static_shape()?;
        let is_spread = places.iter().zip(&own).any(|(&dim, &size)| sizes[dim] != size);
        if is_spread || added.iter().any(|&dim| sizes[dim] != 1) {
            let new = self.made.broadcast(op, value, &places, &sizes);
            return Some(self.replace(op, new, (0..sizes.len()).collect()));
        }
        places.extend(added);
        let sizes: Vec<i64> = places.iter().map(|&dim| sizes[dim]).collect();
        let new = self.made.reshape(op, value, &sizes);
        Some(self.replace(op, new, places.into()))
    }
    /// A reshape that adds or removes dims of size one keeps the order of the others.
    fn reshape(&mut self, op: OpId) -> Option<ValueId> {
        let (value, result) = (self.program().operand(op, 0), self.program().result(op, 0));
        let own = self.program().value_type(value).static_shape()?;
        let sizes = self.program().value_type(result).static_shape()?;
        let order = self.order(value);
        let back = inverse(&order);
        // The former dims of the operand, and the dims of the result, that are longer than one.
        let long: Vec<usize> = (0..back.len()).filter(|&dim| own[back[dim]] != 1).collect();
        let (left, short): (Vec<usize>, Vec<usize>) =
            (0..sizes.len()).partition(|&dim| sizes[dim] != 1);
        let is_same = long.iter().map(|&dim| own[back[dim]]).eq(left.iter().map(|&dim| sizes[dim]));
        if !is_same {
            return None;
        }
        let kept = order.iter().filter_map(|dim| long.iter().position(|it| it == dim));
        let new_order: Vec<usize> = kept.map(|at| left[at]).chain(short).collect();
        let sizes: Vec<i64> = new_order.iter().map(|&dim| sizes[dim]).collect();
        let new = self.made.reshape(op, value, &sizes);
        Some(self.replace(op, new, new_order.into()))
    }
    /// A reduction of one value over the same dims.
    fn reduce(&mut self, op: OpId) -> Option<ValueId> {
        let program = self.program();
        let value = program.operand(op, 0);
        if program.num_results(op) != 1 || self.of.contains_key(&program.operand(op, 1)) {
            return None;
        }
        let dims = op_attribute(program, op, "dimensions")?.as_ints()?;
        let dims: Vec<usize> =
            dims.into_iter().map(|dim| usize::try_from(dim).ok()).collect::<Option<_>>()?;
        let order = self.order(value);
        let is_reduced = |dim: &usize| dims.contains(dim);
        let mut kept: Vec<usize> = order.iter().copied().filter(|dim| !is_reduced(dim)).collect();
        let along: Vec<usize> =
            (0..order.len()).filter(|&place| is_reduced(&order[place])).collect();
        let new = self.made.reduce(op, value, &along)?;
        // The dims of the result are numbered without those that are reduced.
        for dim in &mut kept {
            *dim -= dims.iter().filter(|&other| other < dim).count();
        }
        Some(self.replace(op, new, kept.into()))
    }
    /// An elementwise op computes in the order of its oldest operand: others are made in it, or transposed.
    fn elementwise(&mut self, op: OpId) -> Option<ValueId> {
        let operands: Vec<ValueId> = self.program().operands(op).collect();
        let mut all = operands.iter().copied().chain(self.program().op_results(op));
        if !all.all(|value| self.is_static(value)) {
            return None;
        }
        let age = |value: &ValueId| self.ages.get(value).copied().unwrap_or(0);
        let ordered = operands.iter().filter(|value| self.of.contains_key(value));
        let oldest = ordered.min_by_key(|value| age(value))?;
        let (order, oldest) = (self.of[oldest].clone(), age(oldest));
        let is_taken = |&value: &ValueId| {
            self.is_scalar(value)
                || self.of.contains_key(&value)
                || age(&value) > oldest
                || self.is_free(op, value, MAX_DEPTH)
        };
        if !operands.iter().all(is_taken) {
            return None;
        }
        let mut new = Vec::with_capacity(operands.len());
        for value in operands {
            new.push(self.in_order(op, value, &order, MAX_DEPTH)?);
        }
        self.made.retype(op, &new, &order);
        self.handled.insert(op);
        let result = self.program().result(op, 0);
        self.note(result, order);
        Some(result)
    }
    /// Whether `value`, an operand of `op`, is made from smaller values, so that it costs as much in another order.
    fn is_free(&self, op: OpId, value: ValueId, depth: u32) -> bool {
        let program = self.program();
        let Some(by) = program.defining_op(value) else { return false };
        let is_near = program.parent_block(by) == program.parent_block(op);
        if !is_near || depth == 0 || self.of.contains_key(&value) {
            return false;
        }
        match program.op_name(by) {
            "stablehlo.constant" => self.made.splat(by).is_some(),
            "stablehlo.iota" => true,
            "stablehlo.broadcast_in_dim" => is_spreading(program, by),
            _ if is_elementwise(program, by) => program.operands(by).all(|operand| {
                program.value_type(operand).rank() == Some(0)
                    || self.is_free(op, operand, depth - 1)
            }),
            _ => false,
        }
    }
    fn is_scalar(&self, value: ValueId) -> bool {
        self.program().value_type(value).rank() == Some(0)
    }
    /// `value` with its dims in `order`, before `op`: as it is, made anew, or transposed. What is computed from a younger product is
    /// transposed where it is computed from its result, once for all that read it.
    fn in_order(
        &mut self,
        op: OpId,
        value: ValueId,
        order: &DimOrder,
        depth: u32,
    ) -> Option<ValueId> {
        if self.is_scalar(value) {
            return Some(value);
        }
        if let Some(own) = self.of.get(&value) {
            if own == order {
                return Some(value);
            }
            let turned = inverse(own);
            let turned: DimOrder = order.iter().map(|&dim| turned[dim]).collect();
            return Some(self.transposed(op, value, &turned));
        }
        let key = (value, order.clone());
        if let Some(&known) = self.ordered.get(&key) {
            return Some(known);
        }
        let by = self.program().defining_op(value);
        let by =
            by.filter(|&by| self.program().parent_block(by) == self.program().parent_block(op));
        let is_computed = |by: OpId| {
            depth > 0
                && self.program().num_operands(by) > 1
                && is_elementwise(self.program(), by)
                && self.program().operands(by).all(|it| self.is_static(it))
        };
        let made = match by {
            Some(by) if self.is_free(op, value, MAX_DEPTH) => self.remade(op, by, order)?,
            Some(by) if is_computed(by) => self.computed(op, by, order, depth)?,
            _ => self.transposed(op, value, order),
        };
        self.ordered.insert(key, made);
        Some(made)
    }
    fn is_static(&self, value: ValueId) -> bool {
        self.program().value_type(value).static_shape().is_some()
    }
    /// `value` transposed by `order` before `op`.
    fn transposed(&mut self, op: OpId, value: ValueId, order: &DimOrder) -> ValueId {
        let new = self.made.transposed(op, value, order);
        self.handled.extend(self.program().defining_op(new));
        new
    }
    /// The result of `by`, an elementwise op, computed before `op` of operands whose dims are in `order`.
    fn computed(&mut self, op: OpId, by: OpId, order: &DimOrder, depth: u32) -> Option<ValueId> {
        let operands: Vec<ValueId> = self.program().operands(by).collect();
        let mut new = Vec::with_capacity(operands.len());
        for operand in operands {
            new.push(self.in_order(op, operand, order, depth.saturating_sub(1))?);
        }
        let made = self.made.copied(by, op, &new, order);
        self.handled.extend(self.program().defining_op(made));
        Some(made)
    }
    /// The result of `by`, which is free, made before `op` with its dims in `order`.
    fn remade(&mut self, op: OpId, by: OpId, order: &DimOrder) -> Option<ValueId> {
        let value = self.program().result(by, 0);
        let sizes = self.program().value_type(value).static_shape()?;
        let sizes: Vec<i64> = order.iter().map(|&dim| sizes[dim]).collect();
        let place = inverse(order);
        match self.program().op_name(by) {
            "stablehlo.constant" => self.made.constant(by, op, &sizes),
            "stablehlo.iota" => {
                let dim = op_attribute(self.program(), by, "iota_dimension")?.as_int()?;
                let dim = place.get(usize::try_from(dim).ok()?).copied()?;
                Some(self.made.iota(by, op, dim, &sizes))
            }
            "stablehlo.broadcast_in_dim" => {
                let dims = op_attribute(self.program(), by, "broadcast_dimensions")?.as_ints()?;
                let dims =
                    dims.into_iter().map(|dim| place.get(usize::try_from(dim).ok()?).copied());
                let dims: Vec<usize> = dims.collect::<Option<_>>()?;
                let operand = self.program().operand(by, 0);
                let new = self.made.broadcast_before(by, op, operand, &dims, &sizes);
                self.handled.extend(self.program().defining_op(new));
                Some(new)
            }
            _ => self.computed(op, by, order, MAX_DEPTH),
        }
    }
}
