//! The slots whose shardings differ from those of the recorded run at the same time, and the number
//! of such slots for each reader.

use crate::index::ShardingId;

/// The slots that differ.
#[derive(Clone, Default)]
pub struct Differences {
    /// By slot: whether it differs.
    differs: Vec<bool>,
    /// By slot that differs: its sharding in the recorded run.
    recorded: Vec<ShardingId>,
    /// All slots that differ, and some that did earlier.
    slots: Vec<u32>,
    /// For each reader the number of differing slots that it reads.
    num_read: Vec<u32>,
}

impl Differences {
    /// No differences in `num_slots` slots with `num_readers` readers.
    pub fn new(num_slots: usize, num_readers: usize) -> Self {
        Self {
            differs: vec![false; num_slots],
            recorded: vec![ShardingId::NONE; num_slots],
            slots: Vec::new(),
            num_read: vec![0; num_readers],
        }
    }
    /// Removes all differences.
    pub fn clear(&mut self) {
        for slot in self.slots.drain(..) {
            self.differs[slot as usize] = false;
        }
        self.num_read.fill(0);
    }
    /// The sharding of `slot` in the recorded run, if it differs.
    #[inline]
    pub fn recorded(&self, slot: u32) -> Option<ShardingId> {
        self.differs[slot as usize].then(|| self.recorded[slot as usize])
    }
    /// Whether `slot` differs.
    #[inline]
    pub fn contains(&self, slot: u32) -> bool {
        self.differs[slot as usize]
    }
    /// Whether `reader` reads a slot that differs.
    #[inline]
    pub fn is_read_by(&self, reader: u32) -> bool {
        self.num_read[reader as usize] != 0
    }
    /// Adds `slot`, whose sharding in the recorded run is `recorded`, and which `readers` read. If
    /// it differs already, only the recorded sharding is replaced.
    #[inline]
    pub fn insert(&mut self, slot: u32, recorded: ShardingId, readers: &[u32]) {
        self.recorded[slot as usize] = recorded;
        if std::mem::replace(&mut self.differs[slot as usize], true) {
            return;
        }
        self.slots.push(slot);
        for &reader in readers {
            self.num_read[reader as usize] += 1;
        }
    }
    /// Removes `slot`, which `readers` read.
    #[inline]
    pub fn remove(&mut self, slot: u32, readers: &[u32]) {
        if !std::mem::replace(&mut self.differs[slot as usize], false) {
            return;
        }
        for &reader in readers {
            self.num_read[reader as usize] -= 1;
        }
    }
    /// The slots that differ, each once.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut slots = self.slots.clone();
        slots.sort_unstable();
        slots.dedup();
        slots.into_iter().filter(|&slot| self.differs[slot as usize])
    }
}
