//! Hash tables of ids whose keys are stored elsewhere.

use crate::index::Id;
use std::marker::PhantomData;

/// A hash table of ids, whose keys are stored in the order of the ids elsewhere. It has open addressing: each id is at
/// the slot of its hash or the next free one. At most half of the slots are taken, and their number is a power of two.
/// Hashes are stored too, so that keys are read neither to grow the table nor where hashes differ.
#[derive(Clone, Debug)]
pub struct IdSlots<I> {
    slots: Vec<Slot>,
    len: usize,
    ids: PhantomData<fn(I) -> I>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    /// The position of the id; [`FREE`] if there is none.
    id: u32,
}

const FREE: u32 = u32::MAX;
/// The fewest slots of a table with ids.
const FEWEST_SLOTS: usize = 64;

impl<I> Default for IdSlots<I> {
    fn default() -> Self {
        Self { slots: Vec::new(), len: 0, ids: PhantomData }
    }
}

impl<I: Id> IdSlots<I> {
    /// The id whose key has this hash and satisfies `is_key`.
    #[inline]
    pub fn find(&self, hash: u64, is_key: impl Fn(I) -> bool) -> Option<I> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let Slot { hash: other, id } = self.slots[at];
            if id == FREE {
                return None;
            }
            let id = I::from_index(id as usize);
            if other == hash as u32 && is_key(id) {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
    }
    /// Adds `id`, whose key has this hash and is not in the table.
    #[inline]
    pub fn insert(&mut self, hash: u64, id: I) {
        if 2 * self.len >= self.slots.len() {
            self.grow();
        }
        self.len += 1;
        self.put(Slot { hash: hash as u32, id: id.index() as u32 });
    }
    fn put(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = slot.hash as usize & mask;
        while self.slots[at].id != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
    /// Makes space for this many ids.
    pub fn reserve(&mut self, count: usize) {
        let len = (2 * count).next_power_of_two().max(FEWEST_SLOTS);
        if len > self.slots.len() {
            self.grow_to(len);
        }
    }
    #[cold]
    fn grow(&mut self) {
        self.grow_to((2 * self.slots.len()).max(FEWEST_SLOTS));
    }
    fn grow_to(&mut self, len: usize) {
        let old = std::mem::replace(&mut self.slots, vec![Slot { hash: 0, id: FREE }; len]);
        for slot in old.into_iter().filter(|slot| slot.id != FREE) {
            self.put(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::StrId;

    #[test]
    fn ids_are_found_by_their_keys_however_hashes_collide() {
        let mut slots = IdSlots::<StrId>::default();
        let keys: Vec<u64> = (0..1000).collect();
        slots.reserve(100);
        let hash = |key: u64| key % 7;
        let find =
            |slots: &IdSlots<StrId>, key| slots.find(hash(key), |id| keys[id.index()] == key);
        for &key in &keys {
            assert_eq!(find(&slots, key), None);
            slots.insert(hash(key), StrId::from_index(key as usize));
        }
        for &key in &keys {
            assert_eq!(find(&slots, key), Some(StrId::from_index(key as usize)));
        }
    }
}
