//! Builds the ops of the steps of a reshard.

use super::super::collectives::Collectives;
use super::super::devices::permutation;
use super::super::digits::{total_size, Digit};
use super::super::emit::Emitter;
use super::super::movement::{refined, Fetch, Rounds};
use super::super::placement::Placement;
use super::super::reducer::Reducer;
use super::refine::{coarser, cut_apart, grown_apart, Gap};
use super::steps::{Moved, Reached, Step};
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

impl<'p> Traveller<'_, 'p> {
    /// Applies one step to `input`, which has the placement `from`.
    pub fn step(&mut self, input: ValueId, from: &Placement, reached: &Reached) -> ValueId {
        let order = reached.placement.order.max(from.order);
        let after = reached.placement.local_shape(self.shape);
        match &reached.step {
            Step::Slice { dim, digits } => self.slice(input, *dim, (order, digits), &after),
            Step::Refine { dim, .. } => {
                let (own, digits) = (from.num_shards(*dim), &reached.placement.dims[*dim]);
                let schedule = refined(self.shape[*dim], own, total_size(digits));
                self.fetch(order, digits, *dim).window(&[input], &schedule, after[*dim])
            }
            Step::AllGather { dim, digits } => {
                let gathered = self.collectives.all_gather(self.emit, input, *dim, (order, digits));
                let left = &reached.placement.dims[*dim];
                if left.is_empty() || self.emit.shape(gathered)[*dim] == after[*dim] {
                    return self.cut(gathered, *dim, after[*dim]);
                }
                let windows = coarser(self.shape[*dim], total_size(left));
                windows.take(&mut self.fetch(order, left, *dim), gathered, None)
            }
            Step::Spread { dim, digits } => self.spread(input, *dim, (order, digits), &after),
            Step::AllToAll { moved } => {
                let mut value = input;
                for Gap { dim, windows } in cut_apart(from, &reached.placement, self.shape) {
                    value = windows.take(&mut self.fetch(order, &from.dims[dim], dim), value, None);
                }
                value = self.exchange(value, order, moved, &after);
                for Gap { dim, windows } in grown_apart(from, &reached.placement, self.shape) {
                    let digits = &reached.placement.dims[dim];
                    value = windows.take(&mut self.fetch(order, digits, dim), value, None);
                }
                for Moved { from, .. } in moved {
                    value = self.cut(value, *from, after[*from]);
                }
                value
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
    /// Fetches along `dim`, whose shards `digits` number.
    fn fetch<'s>(&'s mut self, order: u32, digits: &'s [Digit], dim: usize) -> Fetch<'s, 'p> {
        let (emit, collectives) = (&mut *self.emit, &mut *self.collectives);
        Fetch { emit, collectives, order, digits, dim, rounds: Rounds::Fewest }
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
    /// Exchanges parts of `input` for parts of a shard of `shape`. Dims that grow may have padding after their elements.
    fn exchange(
        &mut self,
        mut input: ValueId,
        order: u32,
        moved: &[Moved],
        shape: &[i64],
    ) -> ValueId {
        let parts = |dim: usize| -> i64 {
            moved.iter().filter(|one| one.to == dim).map(|one| total_size(&one.digits)).product()
        };
        for dim in (0..shape.len()).filter(|&dim| parts(dim) > 1) {
            input = self.padded(input, dim, shape[dim] * parts(dim));
        }
        match moved {
            [Moved { from, to, digits }] => {
                self.collectives.all_to_all(self.emit, input, (*to, *from), (order, digits))
            }
            _ => self.exchange_all(input, order, moved),
        }
    }
    /// Exchanges parts along several dims in one all-to-all along a new dim.
    fn exchange_all(&mut self, input: ValueId, order: u32, moved: &[Moved]) -> ValueId {
        let counts: Vec<i64> = moved.iter().map(|one| total_size(&one.digits)).collect();
        let (mut split, mut places) = (Vec::new(), vec![0; moved.len()]);
        let mut rest = Vec::new();
        for (dim, &size) in self.emit.shape(input).iter().enumerate() {
            let mut left = size;
            for at in (0..moved.len()).filter(|&at| moved[at].to == dim) {
                places[at] = split.len();
                split.push(counts[at]);
                left /= counts[at];
            }
            rest.push(split.len());
            split.push(left);
        }
        let mut value = self.emit.reshape(input, &split);
        value = self.emit.transpose(value, &[&places[..], &rest].concat());
        let parts = self.emit.shape(value);
        let all = [&[counts.iter().product()], &parts[moved.len()..]].concat();
        value = self.emit.reshape(value, &all);
        let digits: Vec<Digit> = moved.iter().flat_map(|one| one.digits.clone()).collect();
        value = self.collectives.all_to_all(self.emit, value, (0, 0), (order, &digits));
        value = self.emit.reshape(value, &parts);
        // Parts go before the dim that they come from, those of the digits that left it last first.
        let (mut places, mut joined) = (Vec::new(), Vec::new());
        for (dim, &size) in parts[moved.len()..].iter().enumerate() {
            let own = (0..moved.len()).rev().filter(|&at| moved[at].from == dim);
            let start = places.len();
            places.extend(own);
            joined.push(places[start..].iter().map(|&at| counts[at]).product::<i64>() * size);
            places.push(moved.len() + dim);
        }
        value = self.emit.transpose(value, &places);
        self.emit.reshape(value, &joined)
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
    /// The elements along `dim` of the devices that differ in `digits`, one from each, without padding.
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

/// The digits that `from` and `to` do not have in the same positions.
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

/// The identity of addition for elements of type `element`, or of "or" for booleans, as text; `None` if not all runtimes support an
/// all-reduce by addition for this type.
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
