//! Ops made anew with their dims in another order.

use super::dim_orders::DimOrder;
use crate::index::{OpId, TypeId, ValueId};
use crate::inlining::call_inliner::Originals;
use crate::ir::{int_array, InsertPoint, NewOp, OpKind, OpTraits, Place, Program, ValueMap};
use crate::mlir::op_attribute;
use crate::stablehlo::dims::DotDims;
use rustc_hash::{FxHashMap, FxHashSet};

/// The inverse of a permutation.
pub fn inverse(order: &[usize]) -> DimOrder {
    let mut places: DimOrder = vec![0; order.len()].into();
    for (place, &dim) in order.iter().enumerate() {
        places[dim] = place;
    }
    places
}

/// A program to which ops are added that stand for others.
pub struct Reordered<'p> {
    pub program: &'p mut Program,
    originals: &'p mut Originals,
    /// Ops that may have lost their users.
    left: Vec<OpId>,
}

impl<'p> Reordered<'p> {
    pub fn new(program: &'p mut Program, originals: &'p mut Originals) -> Self {
        Self { program, originals, left: Vec::new() }
    }
    /// Inserts `new` at `place`; it stands for `source`, at whose location it is.
    fn insert(&mut self, source: OpId, place: Place, new: NewOp<'_>) -> ValueId {
        let before = (self.program.num_op_ids(), self.program.num_value_ids());
        let at = InsertPoint::at(place).with_loc(self.program.loc(source));
        let made = self.program.build(new, at);
        self.program.sign_op(made);
        self.originals.note_made(self.program, before, source);
        self.program.result(made, 0)
    }
    fn type_like(&mut self, value: ValueId, sizes: &[i64]) -> TypeId {
        let like = self.program.type_of(value);
        self.program.tensor_type(sizes, like)
    }
    /// `value` itself, as a result that stands for that of `op`.
    pub fn same(&mut self, op: OpId, value: ValueId) -> ValueId {
        let rank = self.program.value_type(value).rank().unwrap_or(0);
        let order: Vec<usize> = (0..rank).collect();
        self.transposed(op, value, &order)
    }
    /// `value` transposed by `order`, before `op`.
    pub fn transposed(&mut self, op: OpId, value: ValueId, order: &[usize]) -> ValueId {
        self.transposed_at(op, Place::Before(op), value, order)
    }
    fn transposed_at(
        &mut self,
        source: OpId,
        place: Place,
        value: ValueId,
        order: &[usize],
    ) -> ValueId {
        let sizes = self.program.value_type(value).static_shape().unwrap_or_default();
        let sizes: Vec<i64> = order.iter().map(|&dim| sizes[dim]).collect();
        let ty = self.type_like(value, &sizes);
        let new = NewOp::new("stablehlo.transpose", &[value], &[ty]);
        self.insert(source, place, new.attr("permutation", dims(order)))
    }
    /// Transposes the values in `of`, whose dims are in these orders, for ops that read them as they were, all but those in
    /// `handled`; and removes what nothing reads any more.
    pub fn restore(&mut self, of: &FxHashMap<ValueId, DimOrder>, handled: &FxHashSet<OpId>) {
        let mut values: Vec<ValueId> = of.keys().copied().collect();
        values.sort_unstable();
        for value in values {
            let mut users: Vec<OpId> = self.program.users(value).collect();
            users.retain(|user| !handled.contains(user));
            users.sort_unstable();
            users.dedup();
            let turned = inverse(&of[&value]);
            let is_dot = |user: &OpId| self.program.kind(*user) == OpKind::DotGeneral;
            if users.iter().filter(|user| is_dot(user)).count() > 1 {
                let mut known = FxHashMap::default();
                users.retain(|&user| self.read_by_dot(value, &turned, user, &mut known).is_none());
            }
            if !users.is_empty() {
                self.read_transposed(value, &turned, &users);
            }
        }
        self.remove_unused();
    }
    /// Lets `user`, if it is a dot, read `value`, each of whose former dims is at a place in `turned`, with batch dims first, and
    /// contracting dims last on the left, before the others on the right. `known`: transposes of `value`.
    ///
    /// Source: XLA's `DotDecomposer`.
    fn read_by_dot(
        &mut self,
        value: ValueId,
        turned: &[usize],
        user: OpId,
        known: &mut FxHashMap<DimOrder, ValueId>,
    ) -> Option<()> {
        let made_by = self.program.defining_op(value)?;
        if self.program.kind(user) != OpKind::DotGeneral {
            return None;
        }
        let mut dims: DotDims =
            DotDims::read(&op_attribute(self.program, user, "dot_dimension_numbers")?)?;
        let mut slots = self.program.op_uses(user);
        let mut own = slots.by_ref().filter(|&slot| self.program.used_value(slot) == value);
        let (slot, None) = (own.next()?, own.next()) else { return None };
        let is_left = self.program.operand(user, 0) == value;
        let (batching, contracting) = if is_left {
            (&mut dims.lhs_batching, &mut dims.lhs_contracting)
        } else {
            (&mut dims.rhs_batching, &mut dims.rhs_contracting)
        };
        let is_free = |dim: &usize| !batching.contains(dim) && !contracting.contains(dim);
        let free: Vec<usize> = (0..turned.len()).filter(is_free).collect();
        let (first, last) =
            if is_left { (&free[..], &contracting[..]) } else { (&contracting[..], &free[..]) };
        let parts = batching.iter().chain(first).chain(last);
        let order: DimOrder = parts.map(|&dim| turned.get(dim).copied()).collect::<Option<_>>()?;
        let (num_batching, num_first) = (batching.len(), first.len());
        let start = if is_left { num_batching + num_first } else { num_batching };
        for (place, dim) in (0..).zip(batching.iter_mut()) {
            *dim = place;
        }
        for (place, dim) in (start..).zip(contracting.iter_mut()) {
            *dim = place;
        }
        let new = known.get(&order).copied().unwrap_or_else(|| {
            let place = self.program.place_after(made_by);
            self.transposed_at(made_by, place, value, &order)
        });
        known.insert(order, new);
        self.program.set_operand(slot, new);
        self.program.set_attr(user, "dot_dimension_numbers", &dims.to_string());
        self.program.update_types(user);
        Some(())
    }
    /// `value` transposed by `order` after it is made, for `users` to read.
    fn read_transposed(&mut self, value: ValueId, order: &[usize], users: &[OpId]) {
        let Some(by) = self.program.defining_op(value) else { return };
        let place = self.program.place_after(by);
        let new = self.transposed_at(by, place, value, order);
        for &user in users {
            for slot in self.program.op_uses(user) {
                if self.program.used_value(slot) == value {
                    self.program.set_operand(slot, new);
                }
            }
        }
    }
    /// `value` with the dims `sizes`, for the result of `op`.
    pub fn reshape(&mut self, op: OpId, value: ValueId, sizes: &[i64]) -> ValueId {
        let ty = self.type_like(value, sizes);
        self.insert(op, Place::Before(op), NewOp::new("stablehlo.reshape", &[value], &[ty]))
    }
    /// `value` broadcast to the dims `sizes`, its dims at `places`, for the result of `op`.
    pub fn broadcast(
        &mut self,
        op: OpId,
        value: ValueId,
        places: &[usize],
        sizes: &[i64],
    ) -> ValueId {
        self.broadcast_before(op, op, value, places, sizes)
    }
    /// As [`Self::broadcast`], but before `user`.
    pub fn broadcast_before(
        &mut self,
        op: OpId,
        user: OpId,
        value: ValueId,
        places: &[usize],
        sizes: &[i64],
    ) -> ValueId {
        let ty = self.type_like(value, sizes);
        self.left.push(op);
        let new = NewOp::new("stablehlo.broadcast_in_dim", &[value], &[ty]);
        self.insert(op, Place::Before(user), new.attr("broadcast_dimensions", dims(places)))
    }
    /// The indices along `dim` of an array with the dims `sizes`, for the result of `op` before `user`.
    pub fn iota(&mut self, op: OpId, user: OpId, dim: usize, sizes: &[i64]) -> ValueId {
        let ty = self.type_like(self.program.result(op, 0), sizes);
        self.left.push(op);
        let new = NewOp::new("stablehlo.iota", &[], &[ty]);
        self.insert(op, Place::Before(user), new.attr("iota_dimension", format!("{dim} : i64")))
    }
    /// The element of the constant `op`, if all its elements are the same.
    pub fn splat(&self, op: OpId) -> Option<&str> {
        let text = self.program.constant_text(op).trim().strip_prefix("dense<")?;
        let element = text.split_once('>').map_or(text, |(element, _)| element);
        (!element.starts_with(['[', '"']) && !element.is_empty()).then_some(element)
    }
    /// The constant `op`, whose elements are the same, with the dims `sizes`, before `user`.
    pub fn constant(&mut self, op: OpId, user: OpId, sizes: &[i64]) -> Option<ValueId> {
        let element = self.splat(op)?.to_owned();
        let ty = self.type_like(self.program.result(op, 0), sizes);
        self.left.push(op);
        let value = format!("dense<{element}> : {}", self.program.type_text(ty));
        let new = NewOp::new("stablehlo.constant", &[], &[ty]).attr("value", value);
        Some(self.insert(op, Place::Before(user), new))
    }
    /// The reduction `op` of `value` along `dims`.
    pub fn reduce(&mut self, op: OpId, value: ValueId, along: &[usize]) -> Option<ValueId> {
        let sizes = self.program.value_type(value).static_shape()?;
        let kept = (0..sizes.len()).filter(|dim| !along.contains(dim));
        let sizes: Vec<i64> = kept.map(|dim| sizes[dim]).collect();
        let ty = self.type_like(self.program.result(op, 0), &sizes);
        let initial = self.program.operand(op, 1);
        let before = (self.program.num_op_ids(), self.program.num_value_ids());
        let at = InsertPoint::at(Place::Before(op)).with_loc(self.program.loc(op));
        let new = NewOp::new("stablehlo.reduce", &[value, initial], &[ty]);
        let new = new.attr("dimensions", dims(along)).regions(1);
        let made = self.program.build(new, at);
        let (from, to) = (self.program.region(op, 0), self.program.region(made, 0));
        self.program.clone_region(from, to, &mut ValueMap::default());
        self.program.sign_op(made);
        self.originals.note_made(self.program, before, op);
        Some(self.program.result(made, 0))
    }
    /// A copy of `op`, an elementwise op, of `operands`, whose dims are in `order`, before `user`.
    pub fn copied(
        &mut self,
        op: OpId,
        user: OpId,
        operands: &[ValueId],
        order: &[usize],
    ) -> ValueId {
        let before = (self.program.num_op_ids(), self.program.num_value_ids());
        let at = InsertPoint::at(Place::Before(user)).with_loc(self.program.loc(op));
        let made = self.program.clone_op_at(op, &mut ValueMap::default(), at);
        self.left.push(op);
        self.retype(made, operands, order);
        self.originals.note_made(self.program, before, op);
        self.program.result(made, 0)
    }
    /// Gives `op`, an elementwise op, these operands, and its result the dims in `order`.
    pub fn retype(&mut self, op: OpId, operands: &[ValueId], order: &[usize]) {
        self.program.set_operands(op, operands);
        let result = self.program.result(op, 0);
        let sizes = self.program.value_type(result).static_shape().unwrap_or_default();
        let sizes: Vec<i64> = order.iter().map(|&dim| sizes[dim]).collect();
        let ty = self.type_like(result, &sizes);
        self.program.set_type(result, ty);
        self.program.update_types(op);
    }
    /// Removes the ops that were made anew, if nothing uses them.
    fn remove_unused(&mut self) {
        let mut left = std::mem::take(&mut self.left);
        while let Some(op) = left.pop() {
            if self.program.is_erased(op)
                || self.program.users(self.program.result(op, 0)).next().is_some()
            {
                continue;
            }
            left.extend(self.program.operands(op).filter_map(|value| {
                let by = self.program.defining_op(value)?;
                self.program.has_traits(by, OpTraits::PURE).then_some(by)
            }));
            self.program.erase_op(op);
        }
    }
}

/// The attribute that lists `dims`.
fn dims(dims: &[usize]) -> String {
    int_array(&dims.iter().map(|&dim| dim as i64).collect::<Vec<_>>())
}
