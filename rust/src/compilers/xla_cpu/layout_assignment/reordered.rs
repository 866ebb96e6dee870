//! Ops made anew with their dims in another order.

use super::dim_orders::DimOrder;
use crate::index::{OpId, TypeId, ValueId};
use crate::inlining::call_inliner::Originals;
use crate::ir::{int_array, InsertPoint, NewOp, OpTraits, Place, Program, ValueMap};

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
    /// `value` transposed by `order` after it is made, for `users` to read.
    pub fn read_transposed(&mut self, value: ValueId, order: &[usize], users: &[OpId]) {
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
    pub fn remove_unused(&mut self) {
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
