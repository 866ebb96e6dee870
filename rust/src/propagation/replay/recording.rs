//! A recorded run, and the result of a replay of it.

use super::slots;
use super::times::Times;
use super::trace::Trace;
use crate::index::{FuncId, Id, ShardingId};
use crate::propagation::observe::Slot;
use crate::sharding::{ShardingTable, TensorSharding};

/// A recorded run, from which replays start.
pub struct Recording {
    pub(super) main: FuncId,
    pub(super) num_values: usize,
    pub(super) times: Times,
    pub(super) trace: Trace,
    /// The initial shardings of all slots, and the final ones.
    pub(super) start: Vec<ShardingId>,
    pub(super) end: Vec<ShardingId>,
    /// The number of visits.
    pub(super) num_visits: usize,
    /// The size of the program's table of shardings at the end.
    pub(super) num_shardings: usize,
}

/// The result of a replay: the differences of its final shardings from those of the recorded run.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// The slots that differ, in order, with their shardings.
    pub(super) changes: Vec<(u32, ShardingId)>,
    /// The shardings that the table of the recorded run lacks; their ids follow those of that
    /// table.
    pub(super) added: Vec<TensorSharding>,
}

impl Recording {
    /// An estimate of the visits in turns with `num_taken` taken ops, by the ratio in the recorded
    /// run.
    pub(super) fn num_visits_in(&self, num_taken: usize) -> usize {
        let all = self.trace.turns().num_taken().max(1);
        (self.num_visits as u64 * num_taken as u64 / all as u64) as usize
    }
    /// The id of the sharding of `slot` at the start.
    pub fn sharding_at_start(&self, slot: Slot) -> ShardingId {
        self.start[slots::number(slot, self.num_values) as usize]
    }
    /// The id of the sharding of `slot` at the end of the replay `replayed`.
    pub fn sharding(&self, replayed: &Replayed, slot: Slot) -> ShardingId {
        let slot = slots::number(slot, self.num_values);
        let found = replayed.changes.binary_search_by_key(&slot, |&(slot, _)| slot);
        found.map_or(self.end[slot as usize], |at| replayed.changes[at].1)
    }
    /// The sharding of `slot` at the end of the replay `replayed`; `table` is that of the recorded
    /// run.
    pub fn sharding_in<'a>(
        &self,
        replayed: &'a Replayed,
        table: &'a ShardingTable,
        slot: Slot,
    ) -> Option<&'a TensorSharding> {
        self.by_id(replayed, table, self.sharding(replayed, slot))
    }
    /// The sharding with this id in `replayed`; `table` is that of the recorded run.
    pub fn by_id<'a>(
        &self,
        replayed: &'a Replayed,
        table: &'a ShardingTable,
        id: ShardingId,
    ) -> Option<&'a TensorSharding> {
        let id = id.get()?;
        let added = id.index().checked_sub(self.num_shardings);
        added.map_or_else(|| table.get(id), |at| replayed.added.get(at))
    }
    /// The slots whose final sharding differs from the recorded run, each with the ids of its
    /// sharding there and in `replayed`.
    pub fn changes<'a>(
        &'a self,
        replayed: &'a Replayed,
    ) -> impl Iterator<Item = (Slot, [ShardingId; 2])> + 'a {
        replayed.changes.iter().map(|&(slot, sharding)| {
            let recorded = self.end[slot as usize];
            (slots::slot(slot, self.num_values, self.main), [recorded, sharding])
        })
    }
    /// The ids of the final shardings of the replay `replayed`: those of all values, and those of
    /// the results of the main function. They are ids of the table of the recorded run after
    /// [`Replayed::added`] is appended to it.
    pub fn shardings(&self, replayed: &Replayed) -> (Vec<ShardingId>, Vec<ShardingId>) {
        let mut values = self.end.clone();
        for &(slot, sharding) in &replayed.changes {
            values[slot as usize] = sharding;
        }
        let results = values.split_off(self.num_values);
        (values, results)
    }
}

impl Replayed {
    /// The shardings that the table of the recorded run lacks, in order of their ids.
    pub fn added(&self) -> &[TensorSharding] {
        &self.added
    }
}
