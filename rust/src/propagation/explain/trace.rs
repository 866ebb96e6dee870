//! The trace of a run: every change of a sharding, from which the shardings of any time follow.

use crate::index::ShardingId;
use crate::propagation::observe::{Change, Clock, Observer, Slot};
use crate::propagation::visit::Run;
use rustc_hash::FxHashMap;

/// The start of a greedy run.
#[derive(Clone, Copy, Debug)]
pub struct RunStart {
    /// The time of its start.
    at: Clock,
    /// The user priority up to which dims take part.
    pub priority: i64,
    /// The kind of the run.
    pub run: Run,
}

/// All changes of a run, in order.
#[derive(Default)]
pub struct Trace {
    changes: Vec<Change>,
    runs: Vec<RunStart>,
    /// For each slot the indices of its changes.
    of_slot: FxHashMap<Slot, Vec<u32>>,
}

impl Observer for Trace {
    fn run_starts(&mut self, at: Clock, priority: i64, run: Run) {
        self.runs.push(RunStart { at, priority, run });
    }
    fn changed(&mut self, change: Change) {
        self.of_slot.entry(change.slot).or_default().push(self.changes.len() as u32);
        self.changes.push(change);
    }
}

impl Trace {
    /// The change with this index.
    pub fn change(&self, index: usize) -> &Change {
        &self.changes[index]
    }
    /// All changes, in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
    /// The greedy runs, each with the index of the first change at or after its start.
    pub fn runs(&self) -> impl Iterator<Item = (&RunStart, usize)> {
        self.runs.iter().map(|run| (run, run.at.num_changes()))
    }
    /// The number of changes.
    pub fn num_changes(&self) -> usize {
        self.changes.len()
    }
    /// The indices of the changes of `slot` before `time`, in order.
    pub fn before(&self, slot: Slot, time: usize) -> &[u32] {
        let all = self.of_slot.get(&slot).map_or(&[][..], Vec::as_slice);
        &all[..all.partition_point(|&index| (index as usize) < time)]
    }
    /// The sharding of `slot` at `time`, if it changes at `time` or later; otherwise it has the
    /// final sharding.
    pub fn sharding_at(&self, slot: Slot, time: usize) -> Option<ShardingId> {
        let all = self.of_slot.get(&slot)?;
        let next = all.partition_point(|&index| (index as usize) < time);
        all.get(next).map(|&index| self.changes[index as usize].old)
    }
    /// The range of the changes made by the visit that made the change with this index.
    pub fn visit(&self, index: usize) -> std::ops::Range<usize> {
        let visit = self.changes[index].visit;
        let is_other = |change: &Change| change.visit != visit;
        let start = self.changes[..index].iter().rposition(is_other).map_or(0, |last| last + 1);
        let len = self.changes[index..].iter().position(is_other);
        start..len.map_or(self.changes.len(), |len| index + len)
    }
    /// The greedy run of the change with this index.
    pub fn run(&self, index: usize) -> Option<&RunStart> {
        let next = self.runs.partition_point(|run| run.at.num_changes() <= index);
        self.runs.get(next.checked_sub(1)?)
    }
}
