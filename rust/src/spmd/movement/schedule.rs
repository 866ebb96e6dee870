//! Schedules of halo exchanges: which pieces are sent in which round, each round one collective permute.
//!
//! A round is one collective permute, in which a shard sends at most one piece and receives at most one; it has as many elements as
//! its longest piece. Two schedules are compared: a round for each distance between shards, which is best if all shards send alike,
//! and a round for each colour of an edge colouring of the bipartite graph of sources and targets, which needs as many colours as
//! the most pieces that a shard sends or receives (Kőnig). XLA's partitioner has its own schedules ([`super::halos`]).

use super::pieces::Piece;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Pieces of which each shard sends at most one and receives at most one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round {
    /// The pieces.
    pub pieces: Vec<Piece>,
    /// Whether the pieces are local: source and target are the same shard.
    pub is_local: bool,
    /// A lower bound of the number of elements that are sent.
    pub least: i64,
    /// The offset of the sent part in every shard, if it is fixed.
    pub from: Option<i64>,
}

impl Round {
    /// The number of elements along the dim of the longest piece, or more.
    pub fn len(&self) -> i64 {
        self.pieces.iter().map(|piece| piece.len).max().unwrap_or(0).max(self.least)
    }
    /// The round in which every shard sends the part of its `shard` elements from `from` on, if that contains all pieces.
    #[must_use]
    pub fn beginning_at(self, from: i64, shard: i64) -> Self {
        let end = from + self.len();
        let holds = |piece: &Piece| from <= piece.from && piece.from + piece.len <= end;
        let is_known = from >= 0 && end <= shard && self.pieces.iter().all(holds);
        Self { from: is_known.then_some(from), ..self }
    }
    /// Whether there is no piece.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// How pieces are sorted into rounds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rounds {
    /// By the schedule with the fewest elements.
    #[default]
    Fewest,
    /// As XLA's partitioner exchanges halos, see [`super::halos`].
    AsXla,
}

/// How windows are assembled from pieces; [`super::strips`] does all but the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Joined {
    /// Each piece is written over the others by a mask.
    #[default]
    ByMasks,
    /// The parts of all rounds are concatenated, and the window is sliced out.
    SideBySide,
    /// As before, but each part is selected among several rounds.
    ByChoice,
}

/// Rounds in order: local ones first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// The rounds.
    pub rounds: Vec<Round>,
    /// How windows are put together.
    pub joined: Joined,
}

impl Schedule {
    /// The rounds of `pieces` in which the fewest elements are sent.
    pub fn of(pieces: &[Piece]) -> Self {
        let (mut rounds, sent) = local(pieces);
        let by_distance = by_distance(&sent);
        let by_colour = colours(sent);
        let total = |rounds: &[Round]| rounds.iter().map(Round::len).sum::<i64>();
        let is_better =
            (total(&by_colour), by_colour.len()) < (total(&by_distance), by_distance.len());
        rounds.extend(if is_better { by_colour } else { by_distance });
        Self { rounds, joined: Joined::ByMasks }
    }
    /// The number of elements along the dim that a device sends.
    pub fn sent(&self) -> i64 {
        let sent = self.rounds.iter().filter(|round| !round.is_local);
        sent.map(Round::len).sum()
    }
}

/// The round of local pieces, if there are any, and the other pieces.
pub(super) fn local(pieces: &[Piece]) -> (Vec<Round>, Vec<Piece>) {
    let (local, sent): (Vec<Piece>, Vec<Piece>) =
        pieces.iter().partition(|piece| piece.source == piece.target);
    (by_key(&local, |piece| (piece.input, 0), true), sent)
}

/// A round for each distance, those of sources with lower numbers first.
pub(super) fn by_distance(sent: &[Piece]) -> Vec<Round> {
    by_key(sent, |piece| (piece.input, piece.source - piece.target), false)
}

/// A round for each key. If a shard needs several pieces with one key of one input, as when a concatenation repeats an element,
/// each has its own round.
fn by_key(pieces: &[Piece], key: impl Fn(&Piece) -> (usize, i64), is_local: bool) -> Vec<Round> {
    let mut rounds: BTreeMap<((usize, i64), usize), Vec<Piece>> = BTreeMap::new();
    let mut counts: FxHashMap<((usize, i64), i64), usize> = FxHashMap::default();
    for piece in pieces {
        let key = key(piece);
        let count = counts.entry((key, piece.target)).or_default();
        rounds.entry((key, *count)).or_default().push(*piece);
        *count += 1;
    }
    let round = |pieces| Round { pieces, is_local, least: 0, from: None };
    rounds.into_values().map(round).collect()
}

/// A round for each colour of an edge colouring; the longest pieces first.
fn colours(mut pieces: Vec<Piece>) -> Vec<Round> {
    pieces.sort_by_key(|piece| (std::cmp::Reverse(piece.len), piece.target, piece.source));
    let mut colouring = Colouring::new(&pieces);
    for edge in 0..pieces.len() {
        colouring.add(&pieces, edge);
    }
    let mut rounds: Vec<Vec<Piece>> = vec![Vec::new(); colouring.num_colours];
    for (piece, &colour) in pieces.iter().zip(&colouring.colour) {
        rounds[colour].push(*piece);
    }
    rounds.retain(|pieces| !pieces.is_empty());
    let round = |pieces| Round { pieces, is_local: false, least: 0, from: None };
    rounds.into_iter().map(round).collect()
}

/// Colours of the edges of a bipartite graph: sources on one side, targets on the other.
struct Colouring {
    num_colours: usize,
    num_shards: usize,
    /// By edge.
    colour: Vec<usize>,
    /// By vertex and colour the edge: sources first, then targets.
    edges: Vec<Option<usize>>,
}

impl Colouring {
    fn new(pieces: &[Piece]) -> Self {
        let last = pieces.iter().map(|piece| piece.source.max(piece.target)).max();
        let num_shards = last.map_or(0, |last| last as usize + 1);
        let mut degrees = vec![0; 2 * num_shards];
        for piece in pieces {
            degrees[piece.source as usize] += 1;
            degrees[num_shards + piece.target as usize] += 1;
        }
        let num_colours = degrees.into_iter().max().unwrap_or(0);
        let edges = vec![None; 2 * num_shards * num_colours];
        Self { num_colours, num_shards, colour: vec![0; pieces.len()], edges }
    }
    fn ends(&self, piece: &Piece) -> [usize; 2] {
        [piece.source as usize, self.num_shards + piece.target as usize]
    }
    fn edge(&mut self, vertex: usize, colour: usize) -> &mut Option<usize> {
        &mut self.edges[vertex * self.num_colours + colour]
    }
    /// Gives `edge` a colour that no other edge has at its ends. If none is free at both, one that is free at the
    /// source is made free at the target, by swapping colours along the alternating path that starts there.
    fn add(&mut self, pieces: &[Piece], edge: usize) {
        let [source, target] = self.ends(&pieces[edge]);
        let all = 0..self.num_colours;
        let is_free = |this: &mut Self, vertex, colour| this.edge(vertex, colour).is_none();
        let common = all.clone().find(|&c| is_free(self, source, c) && is_free(self, target, c));
        let colour = common.unwrap_or_else(|| {
            let at_source = all.clone().find(|&c| is_free(self, source, c)).unwrap_or(0);
            let at_target = all.clone().find(|&c| is_free(self, target, c)).unwrap_or(0);
            self.exchange(pieces, target, [at_source, at_target]);
            at_source
        });
        self.colour[edge] = colour;
        *self.edge(source, colour) = Some(edge);
        *self.edge(target, colour) = Some(edge);
    }
    /// Swaps two colours along the alternating path that starts at `vertex` with an edge of the first.
    fn exchange(&mut self, pieces: &[Piece], mut vertex: usize, mut colours: [usize; 2]) {
        let mut path = Vec::new();
        while let Some(edge) = *self.edge(vertex, colours[0]) {
            path.push((edge, colours));
            let [source, target] = self.ends(&pieces[edge]);
            vertex = if vertex == source { target } else { source };
            colours.reverse();
        }
        for &(edge, [old, _]) in &path {
            for vertex in self.ends(&pieces[edge]) {
                *self.edge(vertex, old) = None;
            }
        }
        for &(edge, [_, new]) in &path {
            self.colour[edge] = new;
            for vertex in self.ends(&pieces[edge]) {
                *self.edge(vertex, new) = Some(edge);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pieces::{pieces_of, Extent};
    use super::*;

    #[test]
    fn a_halo_is_a_round_a_side() {
        let extent = Extent { low: 0, high: 12, shard: 3 };
        let schedule = Schedule::of(&pieces_of(0, extent, &[-1, 2, 5, 8], 5));
        let lens: Vec<(i64, bool)> =
            schedule.rounds.iter().map(|round| (round.len(), round.is_local)).collect();
        assert_eq!(lens, [(3, true), (1, false), (1, false)]);
        assert_eq!(schedule.sent(), 2);
    }

    #[test]
    fn a_reversal_is_one_round() {
        let extent = Extent { low: 0, high: 12, shard: 3 };
        let schedule = Schedule::of(&pieces_of(0, extent, &[9, 6, 3, 0], 3));
        assert_eq!(schedule.sent(), 3);
    }

    #[test]
    fn an_element_that_a_shard_has_twice_is_in_two_rounds() {
        // The last of 8 elements over 4 shards, behind all but the first.
        let extent = Extent { low: 0, high: 8, shard: 2 };
        let piece = |source, target, from, to| Piece { input: 0, source, target, from, to, len: 1 };
        let mut pieces = pieces_of(0, extent, &[1, 3, 5, 7], 2);
        pieces.push(piece(3, 3, 1, 1));
        pieces.push(piece(2, 0, 0, 0));
        pieces.push(piece(2, 0, 1, 1));
        for round in Schedule::of(&pieces).rounds {
            let targets: Vec<i64> = round.pieces.iter().map(|piece| piece.target).collect();
            assert!((1..targets.len()).all(|at| !targets[..at].contains(&targets[at])));
        }
    }

    #[test]
    fn a_concatenation_sends_as_much_as_its_busiest_shard() {
        // Two tensors of 64 over 4 shards become one of 128.
        let extent = Extent { low: 0, high: 64, shard: 16 };
        let mut pieces = pieces_of(0, extent, &[0, 32, 64, 96], 32);
        pieces.extend(pieces_of(1, extent, &[-64, -32, 0, 32], 32));
        assert_eq!(Schedule::of(&pieces).sent(), 32);
    }

    #[test]
    fn no_two_pieces_of_a_round_meet() {
        let mut random = 1u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((random >> 33) % below) as i64
        };
        for _ in 0..200 {
            let pieces: Vec<Piece> = (0..20)
                .map(|_| Piece {
                    input: next(2) as usize,
                    source: next(6),
                    target: next(6),
                    from: 0,
                    to: 0,
                    len: 1 + next(5),
                })
                .collect();
            let sent = pieces.iter().filter(|piece| piece.source != piece.target).count();
            let rounds = colours(pieces.iter().filter(|p| p.source != p.target).copied().collect());
            let mut degrees = [[0usize; 6]; 2];
            for round in &rounds {
                let mut seen = [[false; 6]; 2];
                for piece in &round.pieces {
                    for (side, end) in [piece.source, piece.target].into_iter().enumerate() {
                        assert!(!std::mem::replace(&mut seen[side][end as usize], true));
                        degrees[side][end as usize] += 1;
                    }
                }
            }
            assert_eq!(rounds.iter().map(|round| round.pieces.len()).sum::<usize>(), sent);
            assert_eq!(Some(rounds.len()), degrees.into_iter().flatten().max());
        }
    }
}
