//! Dense sets of ids.
//!
//! One bit per id in `u64` words. Every mutator returns whether it changed the set, which fixpoint
//! iterations need. `next_from` skips empty words, so that a sweep over a sparse set is fast.

use crate::index::Id;
use std::marker::PhantomData;

/// A set of ids below a fixed bound.
#[derive(Clone, PartialEq, Eq)]
pub struct BitSet<I> {
    words: Vec<u64>,
    ids: PhantomData<fn(I) -> I>,
}

impl<I: Id> BitSet<I> {
    /// The empty set over ids below `bound`.
    pub fn new(bound: usize) -> Self {
        Self { words: vec![0; bound.div_ceil(64)], ids: PhantomData }
    }
    /// The set of all ids below `bound`.
    pub fn full(bound: usize) -> Self {
        let mut set = Self { words: vec![u64::MAX; bound.div_ceil(64)], ids: PhantomData };
        if bound % 64 != 0 {
            if let Some(last) = set.words.last_mut() {
                *last = (1 << (bound % 64)) - 1;
            }
        }
        set
    }
    /// Adds `id`; true if it was not a member.
    #[inline]
    pub fn insert(&mut self, id: I) -> bool {
        let (word, bit) = (id.index() / 64, 1u64 << (id.index() % 64));
        let old = self.words[word];
        self.words[word] = old | bit;
        old & bit == 0
    }
    /// Removes `id`; true if it was a member.
    #[inline]
    pub fn remove(&mut self, id: I) -> bool {
        let (word, bit) = (id.index() / 64, 1u64 << (id.index() % 64));
        let old = self.words[word];
        self.words[word] = old & !bit;
        old & bit != 0
    }
    /// Whether `id` is a member.
    #[inline]
    pub fn contains(&self, id: I) -> bool {
        self.words[id.index() / 64] >> (id.index() % 64) & 1 == 1
    }
    /// Adds all members of `other`; true if that added any. Both have the same bound.
    pub fn union_with(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            changed |= theirs & !*mine != 0;
            *mine |= theirs;
        }
        changed
    }
    /// The first member at position `from` or later.
    #[inline]
    pub fn next_from(&self, from: usize) -> Option<I> {
        let mut word = from / 64;
        let mut bits = self.words.get(word)? & (u64::MAX << (from % 64));
        loop {
            if bits != 0 {
                return Some(I::from_index(word * 64 + bits.trailing_zeros() as usize));
            }
            word += 1;
            bits = *self.words.get(word)?;
        }
    }
    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = I> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let id = self.next_from(from)?;
            from = id.index() + 1;
            Some(id)
        })
    }
    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }
    /// How many members there are.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
    /// Removes all members.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::OpId;

    #[test]
    fn mutators_report_change_and_iteration_is_ordered() {
        let mut set = BitSet::<OpId>::new(200);
        assert!(set.insert(OpId::new(130)));
        assert!(!set.insert(OpId::new(130)));
        assert!(set.insert(OpId::new(3)));
        assert_eq!(set.iter().collect::<Vec<_>>(), [OpId::new(3), OpId::new(130)]);
        assert_eq!(set.next_from(4), Some(OpId::new(130)));
        assert_eq!(set.next_from(131), None);
        assert!(set.remove(OpId::new(3)));
        assert!(!set.remove(OpId::new(3)));
        assert_eq!(BitSet::<OpId>::full(130).count(), 130);
    }
}
