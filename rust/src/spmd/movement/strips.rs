//! Windows as XLA's partitioner assembles them: parts at the same offsets on all shards are concatenated to a strip, and each shard
//! slices its window out of the strip.
//!
//! A halo has one part for each distance between shards. For long halos the strip has the first piece of each window, then the
//! second one, and so on; if shards receive these in different rounds, each selects its own.
//!
//! Source: `spmd_partitioner_util.cc`, `ExchangeHaloAndGetValidData`, `ExchangeHaloCompact`.

use super::fetch::{Fetch, PerShard};
use super::pieces::Piece;
use super::schedule::{Joined, Round, Schedule};
use crate::index::ValueId;

/// A strip, and for each shard where its window begins in it.
struct Strip {
    parts: Vec<ValueId>,
    starts: Vec<Option<i64>>,
}

impl Fetch<'_, '_> {
    /// The window of each shard, of `size` elements of `input`, sliced out of a strip; `None` if `schedule` does not ask for a
    /// strip, or windows do not consist of such parts.
    pub(super) fn window_of_strip(
        &mut self,
        input: ValueId,
        schedule: &Schedule,
        size: i64,
    ) -> Option<ValueId> {
        let is_known = schedule.rounds.iter().all(|round| round.from.is_some());
        if schedule.rounds.is_empty() || !is_known {
            return None;
        }
        let strip = match schedule.joined {
            Joined::ByMasks => return None,
            Joined::SideBySide => self.halos(input, schedule)?,
            Joined::ByChoice => self.chosen(input, schedule)?,
        };
        Some(self.window_in(&strip, size))
    }
    /// One part for each round.
    fn halos(&mut self, input: ValueId, schedule: &Schedule) -> Option<Strip> {
        let shard = self.emit.shape(input)[self.dim];
        // Where each part begins and ends, seen from the beginning of the own shard.
        let mut spans: Vec<(i64, i64)> = Vec::with_capacity(schedule.rounds.len());
        for round in &schedule.rounds {
            let piece = round.pieces.first()?;
            let begin = (piece.source - piece.target) * shard + round.from?;
            spans.push((begin, begin + round.len()));
        }
        let mut order: Vec<usize> = (0..spans.len()).collect();
        order.sort_unstable_by_key(|&at| spans[at]);
        if !order.windows(2).all(|pair| spans[pair[0]].1 == spans[pair[1]].0) {
            return None;
        }
        let mut starts = vec![None; self.count()];
        for piece in schedule.rounds.iter().flat_map(|round| &round.pieces) {
            let begin = (piece.source - piece.target) * shard + piece.from - piece.to;
            starts[piece.target as usize] = Some(begin - spans[order[0]].0);
        }
        let parts = order.iter().map(|&at| self.part(input, &schedule.rounds[at]));
        Some(Strip { parts: parts.collect(), starts })
    }
    /// One part for the first piece of each window, one for the second, and so on.
    fn chosen(&mut self, input: ValueId, schedule: &Schedule) -> Option<Strip> {
        let shard = self.emit.shape(input)[self.dim];
        // The pieces of each shard, with their rounds.
        let mut pieces: Vec<Vec<(Piece, usize)>> = vec![Vec::new(); self.count()];
        for (at, round) in schedule.rounds.iter().enumerate() {
            for &piece in &round.pieces {
                pieces[piece.target as usize].push((piece, at));
            }
        }
        for own in &mut pieces {
            own.sort_unstable_by_key(|(piece, _)| piece.to);
            if own.first().is_some_and(|(piece, _)| piece.to > 0) {
                return None;
            }
        }
        let count = pieces.iter().map(Vec::len).max().unwrap_or(0);
        let values: Vec<Option<ValueId>> = schedule
            .rounds
            .iter()
            .map(|round| (!round.is_local).then(|| self.part(input, round)))
            .collect();
        let (mut parts, mut starts) = (Vec::with_capacity(count), vec![None; self.count()]);
        for number in 0..count {
            let at_number: Vec<Option<(Piece, usize)>> =
                pieces.iter().map(|own| own.get(number).copied()).collect();
            let used = || at_number.iter().flatten();
            // Of its own elements a shard has as many there as of those of others.
            let own = used().filter(|(piece, _)| piece.source == piece.target);
            let begin = own.clone().map(|(piece, _)| piece.from).min().unwrap_or(shard);
            let end = own.map(|(piece, _)| piece.from + piece.len).max().unwrap_or(0);
            let sent = used().filter(|(piece, _)| piece.source != piece.target);
            let longest = sent.map(|&(_, round)| schedule.rounds[round].len()).max();
            let size = longest.unwrap_or(0).max(end - begin);
            let begin = begin.min(end - size).max(0);
            let mut choices: Vec<(usize, ValueId)> = Vec::new();
            let mut choice = vec![None; self.count()];
            for (target, found) in at_number.iter().enumerate() {
                let Some((piece, round)) = *found else { continue };
                let is_local = schedule.rounds[round].is_local;
                let (from, len) = if is_local {
                    (begin, size)
                } else {
                    (schedule.rounds[round].from?, schedule.rounds[round].len())
                };
                if number == 0 {
                    starts[target] = Some(piece.from - from + size - len);
                }
                let known = choices.iter().position(|&(known, _)| known == round);
                choice[target] = Some(known.unwrap_or(choices.len()) as i64);
                if known.is_none() {
                    let own = || self.cut(input, PerShard::Same(begin), size);
                    let value = values[round].unwrap_or_else(own);
                    choices.push((round, self.filled_up(value, size, number == 0)));
                }
            }
            parts.push(self.choose(&choices, &choice)?);
        }
        Some(Strip { parts, starts })
    }
    /// The element of `choices` that each shard takes, selected by the number of the shard.
    fn choose(&mut self, choices: &[(usize, ValueId)], choice: &[Option<i64>]) -> Option<ValueId> {
        let (&(_, first), others) = choices.split_first()?;
        let mut chosen = first;
        if !others.is_empty() {
            let number = self.per_shard(choice);
            let number = self.value(number);
            for (at, &(_, value)) in (1..).zip(others) {
                let at = self.emit.index(at);
                let is_here = self.emit.compare("EQ", number, at);
                chosen = self.emit.select(is_here, value, chosen);
            }
        }
        Some(chosen)
    }
    /// `value` padded at its start or end to `size` elements.
    fn filled_up(&mut self, value: ValueId, size: i64, is_before: bool) -> ValueId {
        let shape = self.emit.shape(value);
        let none = vec![0; shape.len()];
        let some = self.along(size - shape[self.dim], shape.len());
        let (low, high) = if is_before { (&some, &none) } else { (&none, &some) };
        self.emit.pad(value, None, low, high)
    }
    /// The elements that shards receive in `round`.
    fn part(&mut self, input: ValueId, round: &Round) -> ValueId {
        let from = round.from.unwrap_or(0);
        let part = self.cut(input, PerShard::Same(from), round.len());
        self.sent(part, round)
    }
    /// The window of each shard, of `size` elements, in `strip`.
    fn window_in(&mut self, strip: &Strip, size: i64) -> ValueId {
        let whole = match strip.parts[..] {
            [only] => only,
            _ => self.emit.concatenate(&strip.parts, self.dim),
        };
        let shape = self.emit.shape(whole);
        let known = || strip.starts.iter().flatten().copied();
        let low = known().map(|start| -start).max().unwrap_or(0).max(0);
        let end = known().max().unwrap_or(0) + size;
        let high = (end - shape[self.dim]).max(0);
        let (before, behind) = (self.along(low, shape.len()), self.along(high, shape.len()));
        let padded = self.emit.pad(whole, None, &before, &behind);
        let starts: Vec<Option<i64>> =
            strip.starts.iter().map(|start| start.map(|start| start + low)).collect();
        let start = self.per_shard(&starts);
        self.cut(padded, start, size)
    }
}
