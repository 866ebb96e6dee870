//! What visits did before: the table from what a visit depends on to what it changes.
//!
//! A model repeats its layers, so that nearly all visits have been made before with the same rule
//! and the same shardings. An entry holds the outcome for each kind of greedy run; once one of them
//! is 'nothing', all are worked out, so that the caller knows in which runs it need not look again.

use super::queue::RunMask;
use super::structure::Structures;
use super::visit::{directions, is_settled, visit, Subset, Tables, Update, VisitKind};
use super::Strategy;
use crate::index::{Id, ShardingId};
use crate::ir::Direction;
use crate::rule::RuleTable;
use rustc_hash::FxHashMap;
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
    /// These updates, see [`Memo::updates`].
    Updates(ChangeId),
}

const UNKNOWN: u32 = u32::MAX;
const NOTHING: u32 = u32::MAX - 1;

/// What visits that are alike share: everything that a visit depends on but the shardings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ClassId(u32);

impl ClassId {
    /// Not known yet.
    pub const UNKNOWN: Self = Self(u32::MAX);
}

/// A visit: a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EntryId(u32);

impl EntryId {
    /// None.
    pub const NONE: Self = Self(u32::MAX);
}

struct Entry {
    hash: u32,
    class: ClassId,
    /// Where the shardings of the tensors stand, followed by what distinguishes the subset.
    key: Range<u32>,
    /// For each run what it changes.
    outcomes: [u32; MAX_RUNS],
    /// The runs in which the outcome is known to be nothing.
    nothing: RunMask,
    is_complete: bool,
}

/// What a visit changes, some updates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChangeId(u32);

struct Change {
    updates: Range<u32>,
    /// The visit that an op comes to by it.
    next: EntryId,
}

/// The table.
pub(super) struct Memo {
    runs: Vec<Run>,
    classes: Vec<VisitKind>,
    class_ids: FxHashMap<VisitKind, ClassId>,
    /// Open addressing: entry number plus one, 0 if free.
    slots: Vec<u32>,
    entries: Vec<Entry>,
    keys: Vec<ShardingId>,
    changes: Vec<Change>,
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
            classes: Vec::new(),
            class_ids: FxHashMap::default(),
            slots: vec![0; 256],
            entries: Vec::new(),
            keys: Vec::new(),
            changes: Vec::new(),
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
    /// The updates of a change, by their numbers.
    #[inline]
    pub fn updates(&self, change: ChangeId) -> Range<u32> {
        self.changes[change.0 as usize].updates.clone()
    }
    /// The update of that number.
    #[inline]
    pub fn update(&self, index: u32) -> Update {
        self.updates[index as usize]
    }
    /// The class of visits of this kind.
    #[cold]
    pub fn class(&mut self, rules: &RuleTable, kind: VisitKind) -> ClassId {
        let kind = VisitKind { rule: self.structures.first(rules, kind.rule), ..kind };
        let next = ClassId(self.classes.len() as u32);
        let id = *self.class_ids.entry(kind).or_insert(next);
        if id == next {
            self.classes.push(kind);
        }
        id
    }
    /// The visit of an op of `class` whose tensors (those in `subset`) have these shardings.
    #[inline]
    pub fn entry(
        &mut self,
        class: ClassId,
        subset: Subset<'_>,
        shardings: &[ShardingId],
    ) -> EntryId {
        self.hits += 1;
        let hash = hash(class, subset, shardings);
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        while let Some(index) = self.slots[slot].checked_sub(1) {
            let entry = &self.entries[index as usize];
            if entry.hash == hash && self.matches(entry, class, subset, shardings) {
                return EntryId(index);
            }
            slot = (slot + 1) & mask;
        }
        self.hits -= 1;
        self.insert(hash, class, subset, shardings)
    }
    /// What a visit changes in `run`, see [`Memo::entry`]. Indices in updates count within `subset`.
    #[inline]
    pub fn outcome(
        &mut self,
        tables: &mut Tables<'_>,
        id: EntryId,
        subset: Subset<'_>,
        shardings: &[ShardingId],
        run: usize,
    ) -> Outcome {
        let index = id.0 as usize;
        let entry = &self.entries[index];
        let outcome = entry.outcomes[run];
        if outcome == UNKNOWN || (outcome == NOTHING && !entry.is_complete) {
            self.work_out(index, tables, subset, shardings, run);
        }
        let entry = &self.entries[index];
        match entry.outcomes[run] {
            NOTHING => Outcome::Nothing(entry.nothing),
            change => Outcome::Updates(ChangeId(change)),
        }
    }
    /// The visit that an op comes to by `change` if nothing else changes its tensors;
    /// [`EntryId::NONE`] if that is not known yet.
    #[inline]
    pub fn next(&self, change: ChangeId) -> EntryId {
        self.changes[change.0 as usize].next
    }
    /// Says what [`Memo::next`] is.
    #[inline]
    pub fn set_next(&mut self, change: ChangeId, next: EntryId) {
        self.changes[change.0 as usize].next = next;
    }
    /// The runs in which visit `id` is known to do nothing if `run` is one of them; else none.
    #[inline]
    pub fn nothing(&self, id: EntryId, run: usize) -> RunMask {
        match self.entries.get(id.0 as usize) {
            Some(entry) if entry.is_complete && entry.outcomes[run] == NOTHING => entry.nothing,
            _ => 0,
        }
    }

    #[inline]
    fn matches(
        &self,
        entry: &Entry,
        class: ClassId,
        subset: Subset<'_>,
        shardings: &[ShardingId],
    ) -> bool {
        if entry.class != class {
            return false;
        }
        let key = self.keys.get(entry.key.start as usize..entry.key.end as usize);
        let key = key.unwrap_or_default();
        match subset.0 {
            None => key == shardings,
            Some(_) => {
                key.len() == shardings.len() + subset.key().len()
                    && key.starts_with(shardings)
                    && key[shardings.len()..].iter().copied().eq(subset.key().map(ShardingId::new))
            }
        }
    }

    #[cold]
    fn insert(
        &mut self,
        hash: u32,
        class: ClassId,
        subset: Subset<'_>,
        shardings: &[ShardingId],
    ) -> EntryId {
        let start = self.keys.len() as u32;
        self.keys.extend_from_slice(shardings);
        self.keys.extend(subset.key().map(ShardingId::new));
        let key = start..self.keys.len() as u32;
        let outcomes = [UNKNOWN; MAX_RUNS];
        self.entries.push(Entry { hash, class, key, outcomes, nothing: 0, is_complete: false });
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        } else {
            self.link(self.entries.len() - 1);
        }
        EntryId(self.entries.len() as u32 - 1)
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
        subset: Subset<'_>,
        shardings: &[ShardingId],
        run: usize,
    ) {
        let kind = self.classes[self.entries[index].class.0 as usize];
        if is_settled(tables, kind.rule, subset, shardings) {
            let entry = &mut self.entries[index];
            entry.outcomes = [NOTHING; MAX_RUNS];
            entry.nothing = ((1u32 << self.runs.len()) - 1) as RunMask;
            entry.is_complete = true;
            return;
        }
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
        self.updates.extend_from_slice(updates);
        let updates = start..self.updates.len() as u32;
        self.changes.push(Change { updates, next: EntryId::NONE });
        self.changes.len() as u32 - 1
    }
}

#[inline]
fn hash(class: ClassId, subset: Subset<'_>, shardings: &[ShardingId]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let add = |hash: u64, word: u32| (hash.rotate_left(23) ^ u64::from(word)).wrapping_mul(FACTOR);
    let mut hash = u64::from(class.0).wrapping_mul(FACTOR);
    for &sharding in shardings {
        hash = add(hash, sharding.index() as u32);
    }
    for word in subset.key() {
        hash = add(hash, word);
    }
    (hash >> 32) as u32
}
