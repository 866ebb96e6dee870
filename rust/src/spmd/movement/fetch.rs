//! Builds the slices, permutes and concatenations that fetch pieces from other shards.

use super::super::collectives::Collectives;
use super::super::digits::{number_at, total_size, Digit};
use super::super::emit::Emitter;
use super::pieces::Piece;
use super::schedule::{Round, Rounds, Schedule};
use crate::index::ValueId;

/// Fetches along one dim.
pub struct Fetch<'a, 'p> {
    /// Builds ops.
    pub emit: &'a mut Emitter<'p>,
    /// Builds collectives.
    pub collectives: &'a mut Collectives,
    /// The order of the devices.
    pub order: u32,
    /// The digits that number the shards of the dim.
    pub digits: &'a [Digit],
    /// The dim.
    pub dim: usize,
    /// How pieces are sorted.
    pub rounds: Rounds,
}

/// A number for each shard.
#[derive(Clone, Copy, Debug)]
pub enum PerShard {
    /// One offset that is the same on all shards.
    Same(i64),
    /// A value of the per-device program.
    Varies(ValueId),
}

/// A round with the same offsets on all shards that take part: the elements from `from` on are copied to the window from `to` on.
#[derive(Clone, Copy, Debug)]
struct Uniform {
    input: usize,
    from: i64,
    to: i64,
    len: i64,
}

impl Fetch<'_, '_> {
    /// The window of each shard, of `size` elements along the dim, assembled from the pieces of `inputs` in `schedule`. Other
    /// elements of a window are unspecified.
    pub fn window(&mut self, inputs: &[ValueId], schedule: &Schedule, size: i64) -> ValueId {
        let shards: Vec<i64> =
            inputs.iter().map(|&input| self.emit.shape(input)[self.dim]).collect();
        if let Some(parts) = uniform(schedule, &shards) {
            return self.side_by_side(inputs, schedule, &parts, size);
        }
        if let Some(window) = self.window_of_strip(inputs[0], schedule, size) {
            return window;
        }
        let mut window: Option<ValueId> = None;
        for round in &schedule.rounds {
            let (part, landings) = self.exchange(inputs, &shards, round);
            let placed = self.placed(part, &landings, size);
            window = Some(match window {
                Some(below) => self.over(placed, below, round, size),
                None => placed,
            });
        }
        window.unwrap_or_else(|| self.blank(inputs[0], size))
    }
    /// A window without pieces.
    fn blank(&mut self, like: ValueId, size: i64) -> ValueId {
        let mut shape = self.emit.shape(like);
        shape[self.dim] = size;
        let ty = self.emit.type_of(like);
        let ty = self.emit.like(&shape, ty);
        let zero = super::super::emit::zero(self.emit.element(ty));
        self.emit.splat(zero, ty)
    }
    /// Concatenates parts that have the same offsets on all shards.
    fn side_by_side(
        &mut self,
        inputs: &[ValueId],
        schedule: &Schedule,
        parts: &[Uniform],
        size: i64,
    ) -> ValueId {
        let mut values = Vec::new();
        let mut end = 0;
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_unstable_by_key(|&at| parts[at].to);
        for at in order {
            let Uniform { input, from, to, len } = parts[at];
            if to > end {
                values.push(self.blank(inputs[input], to - end));
            }
            let part = self.cut(inputs[input], PerShard::Same(from), len);
            values.push(self.sent(part, &schedule.rounds[at]));
            end = to + len;
        }
        if values.is_empty() || end < size {
            values.push(self.blank(inputs[0], size - end));
        }
        let [only] = values[..] else { return self.emit.concatenate(&values, self.dim) };
        only
    }
    /// The elements that shards receive in `round`, and for each shard their offset in its window.
    fn exchange(
        &mut self,
        inputs: &[ValueId],
        shards: &[i64],
        round: &Round,
    ) -> (ValueId, Vec<Option<i64>>) {
        let count = total_size(self.digits) as usize;
        let len = round.len();
        let first = |piece: &Piece| {
            round.from.unwrap_or_else(|| piece.from.min((shards[piece.input] - len).max(0)))
        };
        let mut used: Vec<usize> = round.pieces.iter().map(|piece| piece.input).collect();
        used.sort_unstable();
        used.dedup();
        let mut chosen: Option<ValueId> = None;
        for &input in &used {
            let mut starts = vec![None; count];
            let mut is_here = vec![Some(0); count];
            for piece in round.pieces.iter().filter(|piece| piece.input == input) {
                starts[piece.source as usize] = Some(first(piece));
                is_here[piece.source as usize] = Some(1);
            }
            let start = self.per_shard(&starts);
            // A shard may be shorter than the pieces that others send in this round.
            let room = self.with_room(inputs[input], len);
            let part = self.cut(room, start, len);
            chosen = Some(match chosen {
                Some(others) => {
                    let is_here = self.per_shard(&is_here);
                    let is_here = self.value(is_here);
                    let one = self.emit.index(1);
                    let is_here = self.emit.compare("EQ", is_here, one);
                    self.emit.select(is_here, part, others)
                }
                None => part,
            });
        }
        let mut landings = vec![None; count];
        for piece in &round.pieces {
            landings[piece.target as usize] = Some(piece.to - (piece.from - first(piece)));
        }
        let part = chosen.unwrap_or(inputs[0]);
        (self.sent(part, round), landings)
    }
    /// `input`, padded to at least `len` elements.
    fn with_room(&mut self, input: ValueId, len: i64) -> ValueId {
        let shape = self.emit.shape(input);
        let high = self.along((len - shape[self.dim]).max(0), shape.len());
        self.emit.pad(input, None, &vec![0; shape.len()], &high)
    }
    /// The number of shards of the dim.
    pub(super) fn count(&self) -> usize {
        total_size(self.digits) as usize
    }
    /// `count` for the dim, 0 for the other dims of a tensor of this rank.
    pub fn along(&self, count: i64, rank: usize) -> Vec<i64> {
        let mut list = vec![0; rank];
        list[self.dim] = count;
        list
    }
    /// `part` after the permute of `round`, or `part` if the round is local.
    pub(super) fn sent(&mut self, part: ValueId, round: &Round) -> ValueId {
        if round.is_local {
            return part;
        }
        let pairs = self.pairs(round);
        self.collectives.permute(self.emit, part, &pairs)
    }
    /// The (source, target) pairs of device ids.
    fn pairs(&self, round: &Round) -> Vec<(i64, i64)> {
        let Some(mesh) = self.emit.devices.mesh(self.order) else { return Vec::new() };
        let mut sources = vec![None; total_size(self.digits) as usize];
        for piece in &round.pieces {
            sources[piece.target as usize] = Some(piece.source);
        }
        let offset = |number: i64| {
            let mut rest = number;
            let values = self.digits.iter().rev().map(|digit| {
                let value = rest % digit.size;
                rest /= digit.size;
                value * digit.stride
            });
            values.sum::<i64>()
        };
        let pair = |position: i64| {
            let target = number_at(self.digits, position);
            let source = position - offset(target) + offset(sources[target as usize]?);
            Some((mesh.device_at_position(source), mesh.device_at_position(position)))
        };
        (0..mesh.device_count()).filter_map(pair).collect()
    }
    /// `part` in a window of `size` elements, at the offset `landings` of each shard.
    fn placed(&mut self, part: ValueId, landings: &[Option<i64>], size: i64) -> ValueId {
        let len = self.emit.shape(part)[self.dim];
        let known = || landings.iter().flatten().copied();
        let (first, last) = (known().min().unwrap_or(0), known().max().unwrap_or(0));
        // Padded, so that the window is in bounds on all shards.
        let low = last.max(0);
        let high = (size - len - first).max(0);
        let rank = self.emit.shape(part).len();
        let (low_edge, high_edge) = (self.along(low, rank), self.along(high, rank));
        let padded = self.emit.pad(part, None, &low_edge, &high_edge);
        let starts: Vec<Option<i64>> =
            landings.iter().map(|landing| landing.map(|landing| low - landing)).collect();
        let start = self.per_shard(&starts);
        self.cut(padded, start, size)
    }
    /// `placed` where `round` has a piece, `below` elsewhere.
    fn over(&mut self, placed: ValueId, below: ValueId, round: &Round, size: i64) -> ValueId {
        let count = total_size(self.digits) as usize;
        let (mut low, mut high) = (vec![None; count], vec![Some(0); count]);
        for piece in &round.pieces {
            low[piece.target as usize] = Some(piece.to);
            high[piece.target as usize] = Some(piece.to + piece.len);
        }
        match self.inside(&low, &high, size) {
            Some(mask) => {
                let shape = self.emit.shape(placed);
                let mask = self.emit.along(mask, self.dim, &shape);
                self.emit.select(mask, placed, below)
            }
            None => placed,
        }
    }
    /// A mask of `size` elements, true at indices from `low` to before `high`; `None` if it is true everywhere on all shards.
    pub fn inside(
        &mut self,
        low: &[Option<i64>],
        high: &[Option<i64>],
        size: i64,
    ) -> Option<ValueId> {
        let is_open_below = low.iter().flatten().all(|&low| low <= 0);
        let is_open_above = high.iter().flatten().all(|&high| high >= size);
        if is_open_below && is_open_above {
            return None;
        }
        let indices = self.emit.indices(&[size], 0, None);
        let mut masks = Vec::new();
        for (is_open, direction, bounds) in
            [(is_open_below, "GE", low), (is_open_above, "LT", high)]
        {
            if !is_open {
                let bound = self.per_shard(bounds);
                let bound = self.value(bound);
                let ty = self.emit.type_of(indices);
                let bound = self.emit.broadcast(bound, &[], ty);
                masks.push(self.emit.compare(direction, indices, bound));
            }
        }
        Some(match masks[..] {
            [only] => only,
            _ => self.emit.elementwise("stablehlo.and", &masks),
        })
    }
    /// `len` elements of `input` from `start` on.
    pub fn cut(&mut self, input: ValueId, start: PerShard, len: i64) -> ValueId {
        let mut shape = self.emit.shape(input);
        match start {
            PerShard::Same(start) => {
                let mut starts = vec![0; shape.len()];
                starts[self.dim] = start;
                shape[self.dim] = start + len;
                self.emit.slice(input, &starts, &shape)
            }
            PerShard::Varies(start) => {
                let mut starts = vec![None; shape.len()];
                starts[self.dim] = Some(start);
                shape[self.dim] = len;
                self.emit.dynamic_slice(input, &starts, &shape)
            }
        }
    }
    /// The strided slice of `input` from `phase` on.
    pub fn thin(&mut self, input: ValueId, phase: i64, stride: i64) -> ValueId {
        let mut limits = self.emit.shape(input);
        let (mut starts, mut strides) = (vec![0; limits.len()], vec![1; limits.len()]);
        (starts[self.dim], strides[self.dim]) = (phase, stride);
        // Every shard has equally many.
        limits[self.dim] = limits[self.dim] - stride + phase + 1;
        self.emit.strided_slice(input, &starts, &limits, &strides)
    }
    pub(super) fn value(&mut self, number: PerShard) -> ValueId {
        match number {
            PerShard::Same(number) => self.emit.index(number),
            PerShard::Varies(value) => value,
        }
    }
    /// The number in `numbers` for the device's shard; unspecified if it has none.
    pub fn per_shard(&mut self, numbers: &[Option<i64>]) -> PerShard {
        match linear(numbers) {
            Some((base, 0)) => PerShard::Same(base),
            Some((base, step)) => {
                let number = self.emit.number(self.order, self.digits);
                let scaled = self.emit.times(number, step);
                PerShard::Varies(self.emit.add_constant(scaled, base))
            }
            None => {
                let any = numbers.iter().flatten().next().copied().unwrap_or(0);
                let list: Vec<i64> = numbers.iter().map(|number| number.unwrap_or(any)).collect();
                let number = self.emit.number(self.order, self.digits);
                PerShard::Varies(self.emit.lookup(&list, number))
            }
        }
    }
}

/// The parts of a window, if each round has the same offsets on all shards and no two overlap.
fn uniform(schedule: &Schedule, shards: &[i64]) -> Option<Vec<Uniform>> {
    let mut parts = Vec::with_capacity(schedule.rounds.len());
    for round in &schedule.rounds {
        let first = round.pieces.first()?;
        let is_alike = |piece: &Piece| piece.shift() == first.shift() && piece.input == first.input;
        if !round.pieces.iter().all(is_alike) {
            return None;
        }
        let to = round.pieces.iter().map(|piece| piece.to).min()?;
        let end = round.pieces.iter().map(|piece| piece.to + piece.len).max()?;
        let part = Uniform { input: first.input, from: to - first.shift(), to, len: end - to };
        let fits = part.from >= 0 && part.from + part.len <= shards[part.input];
        if !fits || !round.is_local && part.len > round.len() {
            return None;
        }
        parts.push(part);
    }
    let meet = |a: &Uniform, b: &Uniform| a.to < b.to + b.len && b.to < a.to + a.len;
    let is_apart = |at: usize| !parts[..at].iter().any(|other| meet(other, &parts[at]));
    (0..parts.len()).all(is_apart).then_some(parts)
}

/// `(base, step)` where number `k`, if there is one, is `base + k * step`.
fn linear(numbers: &[Option<i64>]) -> Option<(i64, i64)> {
    let mut known = (0i64..).zip(numbers).filter_map(|(at, number)| Some((at, (*number)?)));
    let (first, number) = known.next().unwrap_or((0, 0));
    let Some((second, other)) = known.next() else { return Some((number, 0)) };
    let (rise, run) = (other - number, second - first);
    if rise % run != 0 {
        return None;
    }
    let step = rise / run;
    let base = number - first * step;
    known.all(|(at, number)| number == base + at * step).then_some((base, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_numbers_are_computed() {
        assert_eq!(linear(&[None, Some(3), None, Some(7)]), Some((1, 2)));
        assert_eq!(linear(&[Some(3), Some(3), None]), Some((3, 0)));
        assert_eq!(linear(&[Some(0), None, Some(1)]), None);
        assert_eq!(linear(&[None, None]), Some((0, 0)));
    }
}
