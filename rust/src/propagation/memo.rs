//! What visits did before: the table from what a visit depends on to what it changes.
//!
//! A model repeats its layers, so that nearly all visits have been made before with the same rule
//! and the same shardings. An entry holds the outcome for each kind of greedy run; once one of them
//! is 'nothing', all are worked out, so that the caller knows in which runs it need not look again.

use super::direction::OpClass;
use super::queue::RunMask;
use super::structure::Structures;
use super::visit::{directions, visit, Subset, Tables, Update, VisitKind};
use super::Strategy;
use crate::index::{Id, ShardingId};
use crate::ir::Direction;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::ops::Range;

/// The most kinds of greedy runs: five op-priority steps in two strategies.
pub(super) const MAX_RUNS: usize = 10;

/// A kind of greedy run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    /// The op-priority step.
    pub step: usize,
    /// Basic or aggressive.
    pub strategy: Strategy,
}

/// What a visit does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Nothing, in all of these runs.
    Nothing(RunMask),
    /// These updates, see [`Memo::update`].
    Updates(Range<u32>),
}

const UNKNOWN: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

struct Entry {
    hash: u64,
    key: Range<u32>,
    /// For each run where its updates start; their number stands before them.
    outcomes: [u32; MAX_RUNS],
    /// The runs in which the outcome is known to be nothing.
    nothing: RunMask,
    is_complete: bool,
}

/// The table.
pub(super) struct Memo {
    runs: Vec<Run>,
    /// Open addressing: entry number plus one, 0 if free.
    slots: Vec<u32>,
    entries: Vec<Entry>,
    keys: Vec<u32>,
    updates: Vec<Update>,
    structures: Structures,
    /// Number of look-ups that found their entry.
    pub hits: usize,
}

impl Memo {
    pub fn new(runs: Vec<Run>) -> Self {
        debug_assert!(runs.len() <= MAX_RUNS);
        Self {
            runs,
            slots: vec![0; 256],
            entries: Vec::new(),
            keys: Vec::new(),
            updates: Vec::new(),
            structures: Structures::default(),
            hits: 0,
        }
    }
    /// The kinds of runs, in order.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }
    /// Number of different visits made.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// The update at `index` of a range that [`Memo::outcome`] gave.
    #[inline]
    pub fn update(&self, index: u32) -> Update {
        self.updates[index as usize]
    }
    /// What a visit of an op of this kind does in `run`, if its tensors (those in `subset`) have
    /// these shardings. Indices in updates count within `subset`.
    #[inline]
    pub fn outcome(
        &mut self,
        tables: &mut Tables<'_>,
        kind: VisitKind,
        subset: Subset<'_>,
        shardings: &[ShardingId],
        run: usize,
    ) -> Outcome {
        let rule = self.structures.first(tables.rules, kind.rule);
        let kind = VisitKind { rule, ..kind };
        let header = header(kind);
        let hash = hash(header, subset, shardings);
        let index = match self.find(hash, header, subset, shardings) {
            Some(index) => {
                self.hits += 1;
                index
            }
            None => self.insert(hash, header, subset, shardings),
        };
        let entry = &self.entries[index];
        if entry.outcomes[run] == UNKNOWN || (entry.outcomes[run] == NOTHING && !entry.is_complete)
        {
            self.work_out(index, tables, kind, subset, shardings, run);
        }
        let entry = &self.entries[index];
        match entry.outcomes[run] {
            NOTHING => Outcome::Nothing(entry.nothing),
            start => Outcome::Updates(start + 1..start + 1 + self.updates[start as usize].0),
        }
    }

    #[inline]
    fn find(
        &self,
        hash: u64,
        header: [u32; 2],
        subset: Subset<'_>,
        shardings: &[ShardingId],
    ) -> Option<usize> {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let index = (self.slots[slot] as usize).checked_sub(1)?;
            let entry = &self.entries[index];
            if entry.hash == hash {
                let key = &self.keys[entry.key.start as usize..entry.key.end as usize];
                if matches(key, header, subset, shardings) {
                    return Some(index);
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    fn insert(
        &mut self,
        hash: u64,
        header: [u32; 2],
        subset: Subset<'_>,
        shardings: &[ShardingId],
    ) -> usize {
        let start = self.keys.len() as u32;
        self.keys.extend(header);
        self.keys.extend(shardings.iter().copied().map(raw));
        self.keys.extend(subset.key());
        let key = start..self.keys.len() as u32;
        let outcomes = [UNKNOWN; MAX_RUNS];
        self.entries.push(Entry { hash, key, outcomes, nothing: 0, is_complete: false });
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        } else {
            self.link(self.entries.len() - 1);
        }
        self.entries.len() - 1
    }

    fn link(&mut self, index: usize) {
        let mask = self.slots.len() - 1;
        let mut slot = self.entries[index].hash as usize & mask;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = index as u32 + 1;
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 4];
        for index in 0..self.entries.len() {
            self.link(index);
        }
    }

    /// Works out the outcome in `run`; if it is nothing, in all other runs too.
    #[cold]
    fn work_out(
        &mut self,
        index: usize,
        tables: &mut Tables<'_>,
        kind: VisitKind,
        subset: Subset<'_>,
        shardings: &[ShardingId],
        run: usize,
    ) {
        let mut seen: Vec<(Vec<Direction>, Strategy, u32)> = Vec::new();
        let mut work_out = |memo: &mut Self, run: usize| {
            let Run { step, strategy } = memo.runs[run];
            let directions = directions(kind, &tables.rules[kind.rule], step);
            let same = seen.iter().find(|(d, s, _)| *d == directions && *s == strategy);
            let outcome = match (memo.entries[index].outcomes[run], same) {
                (UNKNOWN, Some(&(_, _, outcome))) => outcome,
                (UNKNOWN, None) => {
                    let updates = visit(tables, kind, subset, shardings, &directions, strategy);
                    memo.store(&updates)
                }
                (known, _) => known,
            };
            seen.push((directions, strategy, outcome));
            memo.entries[index].outcomes[run] = outcome;
            if outcome == NOTHING {
                memo.entries[index].nothing |= 1 << run;
            }
        };
        work_out(self, run);
        if self.entries[index].outcomes[run] == NOTHING {
            for other in 0..self.runs.len() {
                work_out(self, other);
            }
            self.entries[index].is_complete = true;
        }
    }

    fn store(&mut self, updates: &[Update]) -> u32 {
        if updates.is_empty() {
            return NOTHING;
        }
        let start = self.updates.len() as u32;
        self.updates.push((updates.len() as u32, ShardingId::NONE));
        self.updates.extend_from_slice(updates);
        start
    }
}

#[inline]
fn raw(sharding: ShardingId) -> u32 {
    if sharding.is_none() {
        u32::MAX
    } else {
        sharding.index() as u32
    }
}

/// Everything in `kind` as two words.
#[inline]
fn header(kind: VisitKind) -> [u32; 2] {
    let class = match kind.class {
        OpClass::PassThrough => 0,
        OpClass::DynamicSlice => 1,
        OpClass::Broadcast => 2,
        OpClass::Other => 3,
        OpClass::Fixed(Direction::None) => 4,
        OpClass::Fixed(Direction::Forward) => 5,
        OpClass::Fixed(Direction::Backward) => 6,
        OpClass::Fixed(Direction::Both) => 7,
    };
    let flags = u32::from(kind.has_single_uses) << 3
        | u32::from(kind.is_elementwise) << 4
        | u32::from(kind.is_conservative) << 5;
    [kind.rule.index() as u32, class | flags]
}

#[inline]
fn hash(header: [u32; 2], subset: Subset<'_>, shardings: &[ShardingId]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write_u64(u64::from(header[0]) << 32 | u64::from(header[1]));
    for pair in shardings.chunks(2) {
        let second = pair.get(1).map_or(0, |&id| raw(id));
        hasher.write_u64(u64::from(raw(pair[0])) << 32 | u64::from(second));
    }
    for word in subset.key() {
        hasher.write_u32(word);
    }
    hasher.finish()
}

#[inline]
fn matches(key: &[u32], header: [u32; 2], subset: Subset<'_>, shardings: &[ShardingId]) -> bool {
    let ids = key.len().min(2 + shardings.len());
    key.len() == 2 + shardings.len() + subset.key().len()
        && key[..2] == header
        && key[2..ids].iter().zip(shardings).all(|(&word, &id)| word == raw(id))
        && key[ids..].iter().copied().eq(subset.key())
}
