//! Builds the ops of the steps of a reshard.

use super::super::collectives::Collectives;
use super::super::devices::permutation;
use super::super::digits::{total_size, Digit};
use super::super::emit::Emitter;
use super::super::placement::Placement;
use super::super::reducer::Reducer;
use super::moves::{Reached, Step};
use crate::index::ValueId;
use crate::layout::ceil_div;

/// The context of the ops of one reshard.
pub struct Traveller<'a, 'p> {
    /// Builds ops.
    pub emit: &'a mut Emitter<'p>,
    /// Builds collectives.
    pub collectives: &'a mut Collectives,
    /// The global shape of the tensor.
    pub shape: &'a [i64],
    /// How terms are reduced.
    pub reducer: Reducer,
}

impl Traveller<'_, '_> {
    /// Applies one step to `input`, which has the placement `from`.
    pub fn step(&mut self, input: ValueId, from: &Placement, reached: &Reached) -> ValueId {
        let order = reached.placement.order.max(from.order);
        let after = reached.placement.local_shape(self.shape);
        match &reached.step {
            Step::Slice { dim, digits } => self.slice(input, *dim, (order, digits), &after),
            Step::AllGather { dim, digits } => {
                let gathered = self.collectives.all_gather(self.emit, input, *dim, (order, digits));
                self.cut(gathered, *dim, after[*dim])
            }
            Step::Spread { dim, digits } => self.spread(input, *dim, (order, digits), &after),
            Step::AllToAll { from, to, digits } => {
                let input = self.padded(input, *to, after[*to] * total_size(digits));
                let dims = (*to, *from);
                let moved = self.collectives.all_to_all(self.emit, input, dims, (order, digits));
                self.cut(moved, *from, after[*from])
            }
            Step::Permute => self.permute(input, from, &reached.placement),
            Step::AllReduce { digits } => {
                self.collectives.all_reduce(self.emit, input, self.reducer, (order, digits))
            }
            Step::ReduceScatter { dim, digits } => {
                let input = self.padded(input, *dim, after[*dim] * total_size(digits));
                let how = (*dim, self.reducer);
                self.collectives.reduce_scatter(self.emit, input, how, (order, digits))
            }
        }
    }
    /// Permutes the shards of `input` from placement `from` to `to`, which may be in another order of devices.
    pub fn permute(&mut self, input: ValueId, from: &Placement, to: &Placement) -> ValueId {
        let devices = &self.emit.devices;
        if devices.are_unlisted() {
            let digits = changed_digits(from, to);
            if digits.is_empty() {
                return input;
            }
            return self.collectives.permute_along(self.emit, input, &digits);
        }
        let pairs = |emit: &Emitter<'_>| {
            let pairs = match (emit.devices.mesh(from.order), emit.devices.mesh(to.order)) {
                (Some(before), Some(after)) => permutation(from, to, [before, after]),
                _ => None,
            };
            let mut pairs = pairs.unwrap_or_default();
            pairs.sort_unstable();
            pairs
        };
        self.collectives.permute_between(self.emit, input, (from, to), pairs)
    }
    fn slice(
        &mut self,
        input: ValueId,
        dim: usize,
        (order, digits): (u32, &[Digit]),
        shape: &[i64],
    ) -> ValueId {
        let input = self.padded(input, dim, shape[dim] * total_size(digits));
        let mut starts = vec![None; shape.len()];
        let number = self.emit.number(order, digits);
        starts[dim] = Some(self.emit.times(number, shape[dim]));
        self.emit.dynamic_slice(input, &starts, shape)
    }
    /// The elements along `dim` of the devices that differ in `digits`, one each, and none of those behind the last.
    fn spread(
        &mut self,
        input: ValueId,
        dim: usize,
        (order, digits): (u32, &[Digit]),
        shape: &[i64],
    ) -> ValueId {
        let like = self.emit.type_of(input);
        let text = self.emit.element(like);
        let reducer = if text == "i1" { Reducer::Or } else { Reducer::Add };
        let neutral = neutral(text).unwrap_or("0");
        let neutral = self.emit.scalar(neutral, like);
        let ty = self.emit.like(shape, like);
        let dims: Vec<i64> = (0..shape.len() as i64).collect();
        let repeated = self.emit.broadcast(input, &dims, ty);
        let number = self.emit.number(order, digits);
        let places = self.emit.indices(shape, dim, None);
        let number = self.emit.broadcast(number, &[], self.emit.type_of(places));
        let is_own = self.emit.compare("EQ", places, number);
        let terms = self.emit.masked(is_own, repeated, neutral);
        self.collectives.all_reduce(self.emit, terms, reducer, (order, digits))
    }
    /// `input` with zeros at the end of `dim` up to `size`.
    fn padded(&mut self, input: ValueId, dim: usize, size: i64) -> ValueId {
        let shape = self.emit.shape(input);
        let mut high = vec![0; shape.len()];
        high[dim] = size - shape[dim];
        self.emit.pad(input, None, &vec![0; shape.len()], &high)
    }
    /// The first `size` elements along `dim`.
    fn cut(&mut self, input: ValueId, dim: usize, size: i64) -> ValueId {
        let mut limits = self.emit.shape(input);
        limits[dim] = size;
        self.emit.slice(input, &vec![0; limits.len()], &limits)
    }
}

/// The digits that shards of `from` and `to` do not have at the same places.
fn changed_digits(from: &Placement, to: &Placement) -> Vec<Digit> {
    let mut digits: Vec<Digit> = Vec::new();
    for (from, to) in from.dims.iter().zip(&to.dims).filter(|(from, to)| from != to) {
        for &digit in from.iter().chain(to) {
            let at = |list: &[Digit]| list.iter().position(|other| *other == digit);
            if at(from) != at(to) && !digits.contains(&digit) {
                digits.push(digit);
            }
        }
    }
    digits
}

/// The text of what leaves all elements of type `element` as they are if it is added, or combined by "or" where these are
/// booleans; `None` if the type is not one that all runtimes add up over devices.
pub fn neutral(element: &str) -> Option<&'static str> {
    match element {
        "i1" => Some("false"),
        "i8" | "i16" | "i32" | "i64" | "ui8" | "ui16" | "ui32" | "ui64" => Some("0"),
        "bf16" | "f16" | "f32" | "f64" => Some("-0.000000e+00"),
        _ => None,
    }
}

/// Elements of a shard.
pub fn shard_elements(placement: &Placement, shape: &[i64]) -> i64 {
    let dims = shape.iter().enumerate();
    dims.map(|(dim, &size)| ceil_div(size, placement.num_shards(dim)))
        .fold(1i64, i64::saturating_mul)
}
