//! Schedules of halo exchanges as XLA's partitioner makes them.
//!
//! There is a round for each distance between shards. In it all shards send the same part of theirs, at one end of the shard, so a
//! shard may send more than the receiver needs. If the longest halo is more than twice as long as a window, each round has the next
//! piece of each source instead, and all shards send the smallest part that contains all pieces of the round.
//!
//! Source: `spmd_partitioner_util.cc`, `ExchangeHalo`, `ExchangeHaloCompact`.

use super::pieces::Piece;
use super::schedule::{by_distance, local, Joined, Round, Schedule};
use rustc_hash::FxHashSet;

/// The windows that halos are exchanged for.
#[derive(Clone, Copy, Debug)]
pub struct Halos<'a> {
    /// The first element of the window of each shard.
    pub firsts: &'a [i64],
    /// The number of elements of a window.
    pub count: i64,
    /// The number of elements of a shard.
    pub shard: i64,
}

impl Halos<'_> {
    /// The schedule of `pieces`, which are those of these windows.
    pub fn schedule(&self, pieces: &[Piece]) -> Schedule {
        let (own, sent) = local(pieces);
        let longest = self.longest(i64::max, 0, self.firsts.len());
        let is_long = longest > self.count.saturating_mul(2);
        // What shards keep of their own elements begins and ends where that of some shard does.
        let left = self.longest(|left, _| left, 0, self.firsts.len());
        let right = self.longest(|_, right| right, 0, self.firsts.len());
        let (begin, end) = ((-left).max(0), (self.shard + right).min(self.shard));
        let own = own.into_iter();
        let kept = |round| Round { least: end - begin, ..round }.beginning_at(begin, self.shard);
        let mut rounds: Vec<Round> = own.map(kept).collect();
        if is_long {
            rounds.extend(self.compact(sent));
        } else {
            rounds.extend(by_distance(&sent).into_iter().map(|round| self.sent_from_end(round)));
        }
        Schedule { rounds, joined: if is_long { Joined::ByChoice } else { Joined::SideBySide } }
    }
    /// The longest halo among the shards in `start..end`; `of` computes a length from the left and the right end.
    fn longest(&self, of: impl Fn(i64, i64) -> i64, start: usize, end: usize) -> i64 {
        let shards = (0..).zip(self.firsts).take(end).skip(start);
        let halos = shards.map(|(number, &first): (i64, _)| {
            let begin = number * self.shard;
            of(begin - first, first + self.count - (begin + self.shard))
        });
        halos.max().unwrap_or(0)
    }
    /// `round`, whose pieces all go the same distance, with the part of a shard that XLA sends.
    fn sent_from_end(&self, round: Round) -> Round {
        let Some(piece) = round.pieces.first() else { return round };
        let (number, shard) = (self.firsts.len(), self.shard);
        let distance = piece.source - piece.target;
        let nearer = (distance.abs() - 1) * shard;
        let part = |longest: i64| (longest - nearer).min(shard);
        let (with_skipped, skipped) = if distance < 0 {
            let longest = self.longest(|left, _| left, 1, number);
            let last = shard + self.longest(|_, right| right, 0, number);
            (part(longest), (-nearer - last).max(0))
        } else {
            let longest = self.longest(|_, right| right, 0, number.saturating_sub(1));
            let first = -self.longest(|left, _| left, 0, number);
            (part(longest), (first - nearer - shard).max(0))
        };
        let least = (with_skipped - skipped).clamp(0, shard);
        let from = if distance < 0 { shard - with_skipped } else { skipped };
        Round { least, ..round }.beginning_at(from, shard)
    }
    /// Rounds of one piece of each source and for each target, with the part of a shard that contains all pieces.
    fn compact(&self, mut sent: Vec<Piece>) -> Vec<Round> {
        let mut rounds = Vec::new();
        sent.sort_by_key(|piece| (piece.source, piece.to, piece.target));
        while !sent.is_empty() {
            let (mut pieces, mut left): (Vec<Piece>, Vec<Piece>) = (Vec::new(), Vec::new());
            let (mut start, mut limit) = (self.shard, 0);
            let (mut source, mut targets) = (-1, FxHashSet::default());
            for piece in sent {
                let end = piece.from + piece.len;
                let is_next = std::mem::replace(&mut source, piece.source) != piece.source;
                let is_apart = (start > end && limit == self.shard && piece.from == 0)
                    || (limit < piece.from && start == 0 && end == self.shard);
                let is_free = !targets.contains(&piece.target) && !is_apart;
                if is_next && (pieces.is_empty() || is_free) {
                    targets.insert(piece.target);
                    (start, limit) = (start.min(piece.from), limit.max(end));
                    pieces.push(piece);
                } else {
                    left.push(piece);
                }
            }
            let round = Round { pieces, is_local: false, least: limit - start, from: None };
            rounds.push(round.beginning_at(start, self.shard));
            sent = left;
        }
        rounds
    }
}

#[cfg(test)]
mod tests {
    use super::super::pieces::{pieces_of, Extent};
    use super::*;

    fn lens(firsts: &[i64], count: i64, shard: i64) -> Vec<i64> {
        let extent = Extent { low: 0, high: shard * firsts.len() as i64, shard };
        let schedule =
            Halos { firsts, count, shard }.schedule(&pieces_of(0, extent, firsts, count));
        schedule.rounds.iter().filter(|round| !round.is_local).map(Round::len).collect()
    }

    #[test]
    fn two_shards_exchange_halos_in_two_rounds() {
        assert_eq!(lens(&[-1, 3], 6, 4), [1, 1]);
    }
    #[test]
    fn halos_begin_at_an_end_of_the_shard() {
        // The first 20 of 32 elements: from one shard away at most 5 are needed, 8 are sent.
        assert_eq!(lens(&[0, 5, 10, 15], 5, 8), [1, 8]);
    }
    #[test]
    fn long_halos_are_sent_together() {
        // Elements 8 to 23 of 32, and the first 16.
        assert_eq!(lens(&[8, 10, 12, 14, 16, 18, 20, 22], 2, 4), [4, 2]);
        assert_eq!(lens(&[0, 4, 8, 12], 4, 8), [8, 4]);
    }
}
