//! Looks up memo entries by the input of a visit.
//!
//! Most ops have at most three tensors. The class and their shardings take 16 bytes, which are the
//! key in the table itself, without an allocation.

use super::ids::{MemoId, SpecClassId};
use crate::index::{Id, ShardingId};
use crate::memoization::Memo;
use crate::propagation::visit::Subset;

/// The entries of visits.
#[derive(Clone)]
pub struct Lookup {
    /// Entries of visits of ops with at most three tensors, all of which are in the subset; open
    /// addressing.
    narrow: Vec<(u128, MemoId)>,
    num_narrow: usize,
    /// Entries of all other visits.
    others: Memo<MemoId>,
}

/// A slot without an entry.
const FREE: (u128, MemoId) = (0, MemoId::NONE);

impl Default for Lookup {
    fn default() -> Self {
        Self { narrow: vec![FREE; 256], num_narrow: 0, others: Memo::default() }
    }
}

impl Lookup {
    /// The entry of an op of `class` whose tensors in `subset` have these shardings. If there is
    /// none, adds `next` as the entry.
    #[inline]
    pub fn find(
        &mut self,
        class: SpecClassId,
        subset: Subset<'_>,
        shardings: &[ShardingId],
        next: MemoId,
    ) -> MemoId {
        let Some(key) = narrow_key(class, subset, shardings) else {
            return self.find_other(class, subset, shardings, next);
        };
        let mut slot = self.first_slot(key);
        loop {
            let (other, id) = self.narrow[slot];
            if id == MemoId::NONE {
                return self.add_narrow(slot, key, next);
            }
            if other == key {
                return id;
            }
            slot = (slot + 1) & (self.narrow.len() - 1);
        }
    }

    #[inline]
    fn first_slot(&self, key: u128) -> usize {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let halves = (key as u64).rotate_left(29) ^ ((key >> 64) as u64).wrapping_mul(FACTOR);
        (halves.wrapping_mul(FACTOR) >> 32) as usize & (self.narrow.len() - 1)
    }

    #[cold]
    fn add_narrow(&mut self, slot: usize, key: u128, next: MemoId) -> MemoId {
        self.narrow[slot] = (key, next);
        self.num_narrow += 1;
        if self.num_narrow * 2 > self.narrow.len() {
            let larger = vec![FREE; self.narrow.len() * 4];
            for row in std::mem::replace(&mut self.narrow, larger) {
                if row != FREE {
                    let mut slot = self.first_slot(row.0);
                    while self.narrow[slot] != FREE {
                        slot = (slot + 1) & (self.narrow.len() - 1);
                    }
                    self.narrow[slot] = row;
                }
            }
        }
        next
    }

    #[inline(never)]
    fn find_other(
        &mut self,
        class: SpecClassId,
        subset: Subset<'_>,
        shardings: &[ShardingId],
        next: MemoId,
    ) -> MemoId {
        let mut key = self.others.key();
        key.extend([class.index() as u32, shardings.len() as u32]);
        key.extend(shardings.iter().map(|sharding| sharding.index() as u32));
        // The tensors of a subset are as many as the shardings; without a list, all tensors are
        // meant.
        key.extend(subset.key());
        self.others.find(key).unwrap_or_else(|key| self.others.add(key, next))
    }
}

/// Class and shardings in one number; `None` if there are more than three shardings. All ops of a
/// class have the same number of tensors.
#[inline]
fn narrow_key(class: SpecClassId, subset: Subset<'_>, shardings: &[ShardingId]) -> Option<u128> {
    let pack = |[a, b, c]: [u32; 3]| {
        let low = u64::from(b) << 32 | u64::from(c);
        let high = (class.index() as u64) << 32 | u64::from(a);
        u128::from(high) << 64 | u128::from(low)
    };
    if subset.0.is_some() {
        return None;
    }
    let index = |sharding: ShardingId| sharding.index() as u32;
    match *shardings {
        [] => Some(pack([0; 3])),
        [a] => Some(pack([index(a), 0, 0])),
        [a, b] => Some(pack([index(a), index(b), 0])),
        [a, b, c] => Some(pack([index(a), index(b), index(c)])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tensors_are_not_taken_for_shardings() {
        let mut lookup = Lookup::default();
        let class = SpecClassId::from_index(0);
        let [a, b] = [5, 6].map(ShardingId::new);
        let entries: [MemoId; 3] = [0, 1, 2].map(MemoId::from_index);
        let some = Subset(Some(&[0, 2]));
        assert_eq!(lookup.find(class, some, &[a, b], entries[0]), entries[0]);
        let four = [a, b, ShardingId::new(0), ShardingId::new(2)];
        assert_eq!(lookup.find(class, Subset::ALL, &four, entries[1]), entries[1]);
        assert_eq!(lookup.find(class, some, &[a, b], entries[2]), entries[0]);
    }

    #[test]
    fn entries_are_found_again_in_a_larger_table() {
        let mut lookup = Lookup::default();
        let key = |number: usize| {
            let shardings = [ShardingId::from_index(number), ShardingId::NONE];
            (SpecClassId::from_index(number % 7), shardings)
        };
        for round in 0..2 {
            for number in 0..1000 {
                let (class, shardings) = key(number);
                let next = MemoId::from_index(number + round * 5000);
                let found = lookup.find(class, Subset::ALL, &shardings, next);
                assert_eq!(found, MemoId::from_index(number));
            }
        }
    }
}
