//! Slots that keep a cache of the process between runs of passes: of rules, visits, verified ops
//! and reshards.
//!
//! A run takes a table out of the slot and puts it back at its end, so that no run waits for
//! another. A run that starts in between takes another table, or begins with an empty one. The slot
//! keeps as many tables as there were simultaneous runs, up to [`MAX_TABLES`], so that each thread
//! finds earlier results. No run blocks on the lock: if another thread holds it, or held it when
//! the process was forked, a run proceeds as if the slot were empty.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The most tables that a slot keeps.
pub const MAX_TABLES: usize = 16;

/// Tables that are kept between runs.
pub struct CacheSlot<T> {
    /// In the order in which they were put back.
    tables: Mutex<Vec<Taken<T>>>,
    /// The number of calls of [`CacheSlot::clear`]: tables taken before the last one are not kept.
    generation: AtomicU64,
}

/// A table that a run has taken out of a [`CacheSlot`].
#[derive(Clone, Debug)]
pub struct Taken<T> {
    table: Box<T>,
    /// The generation of the slot when the table was made.
    generation: u64,
}

impl<T> Taken<T> {
    /// A table of no slot, for a run that keeps nothing.
    pub fn apart(table: T) -> Self {
        Self { table: Box::new(table), generation: u64::MAX }
    }
}

impl<T> Deref for Taken<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.table
    }
}

impl<T> DerefMut for Taken<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.table
    }
}

impl<T> Default for CacheSlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> CacheSlot<T> {
    /// An empty slot.
    pub const fn new() -> Self {
        Self { tables: Mutex::new(Vec::new()), generation: AtomicU64::new(0) }
    }
    fn lock(&self) -> Option<MutexGuard<'_, Vec<Taken<T>>>> {
        match self.tables.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(PoisonError::into_inner(error)),
            Err(TryLockError::WouldBlock) => None,
        }
    }
    /// Takes a table out of the slot, the one that was put back last, or `new` if there is none.
    pub fn take(&self, new: impl FnOnce() -> T) -> Taken<T> {
        let generation = self.generation.load(Ordering::Acquire);
        let kept = self.lock().and_then(|mut kept| kept.pop());
        let kept = kept.filter(|kept| kept.generation == generation);
        kept.unwrap_or_else(|| Taken { table: Box::new(new()), generation })
    }
    /// Puts `table` into the slot, unless the slot was cleared since `table` was made. If the slot
    /// is full, the smallest table is dropped.
    pub fn leave(&self, table: Taken<T>, size: impl Fn(&T) -> usize) {
        let Some(mut kept) = self.lock() else { return };
        if table.generation != self.generation.load(Ordering::Acquire) {
            return;
        }
        if kept.len() >= MAX_TABLES {
            let smallest = (0..kept.len()).min_by_key(|&at| size(&kept[at]));
            match smallest.filter(|&at| size(&kept[at]) < size(&table)) {
                Some(at) => drop(kept.remove(at)),
                None => return,
            }
        }
        kept.push(table);
    }
    /// Drops the tables; those that runs have taken will not be kept either.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        if let Some(mut kept) = self.lock() {
            kept.clear();
        }
    }
    /// The `size` of the largest table that is kept; 0 if there is none, or while runs use all of them.
    pub fn size(&self, size: impl Fn(&T) -> usize) -> usize {
        let generation = self.generation.load(Ordering::Acquire);
        let Some(kept) = self.lock() else { return 0 };
        let kept = kept.iter().filter(|kept| kept.generation == generation);
        kept.map(|kept| size(kept)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_at_the_same_time_have_tables_of_their_own() {
        let kept = CacheSlot::<Vec<u8>>::new();
        let (mut first, mut second) = (kept.take(Vec::new), kept.take(Vec::new));
        first.push(1);
        second.extend([2, 3]);
        kept.leave(second, Vec::len);
        kept.leave(first, Vec::len);
        assert_eq!(kept.size(Vec::len), 2);
        assert_eq!(*kept.take(Vec::new), [1]);
        assert_eq!(*kept.take(Vec::new), [2, 3]);
        assert_eq!(kept.size(Vec::len), 0);
    }

    #[test]
    fn the_smallest_table_gives_way() {
        let kept = CacheSlot::<Vec<u8>>::new();
        let mut taken: Vec<Taken<Vec<u8>>> = Vec::new();
        for size in 0..=MAX_TABLES {
            let mut table = kept.take(Vec::new);
            table.resize(size, 0);
            taken.push(table);
        }
        for table in taken {
            kept.leave(table, Vec::len);
        }
        let sizes = (0..=MAX_TABLES).map(|_| kept.take(Vec::new).len());
        let expected = (1..=MAX_TABLES).rev().chain([0]);
        assert!(sizes.eq(expected));
    }

    #[test]
    fn a_table_of_before_is_not_taken_back() {
        let kept = CacheSlot::<Vec<u8>>::new();
        let mut taken = kept.take(Vec::new);
        taken.push(1);
        kept.clear();
        kept.leave(taken, Vec::len);
        assert_eq!(kept.size(Vec::len), 0);
        let mut next = kept.take(Vec::new);
        next.push(2);
        kept.leave(next, Vec::len);
        assert_eq!(kept.size(Vec::len), 1);
        kept.clear();
        assert!(kept.take(Vec::new).is_empty());
    }

    #[test]
    fn a_lock_that_somebody_holds_is_not_waited_for() {
        let kept = CacheSlot::<Vec<u8>>::new();
        let mut table = kept.take(Vec::new);
        table.push(1);
        let guard = kept.lock();
        assert!(kept.take(Vec::new).is_empty());
        kept.leave(table, Vec::len);
        assert_eq!(kept.size(Vec::len), 0);
        drop(guard);
        assert!(kept.take(Vec::new).is_empty());
    }
}
