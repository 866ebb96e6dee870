//! A slot in which the process keeps a table between runs: the caches of rules and visits.
//!
//! A run takes the table out of the slot and puts it back at its end, so that no run waits for another. A run
//! that starts in between begins with an empty table, and the larger of the two is kept. No run blocks on the
//! lock: if another thread holds it, or held it when the process was forked, a run proceeds as if the slot were
//! empty.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A table that is kept between runs.
pub struct Kept<T> {
    table: Mutex<Option<Taken<T>>>,
    /// How many times it was cleared: tables taken before the last time are not kept.
    generation: AtomicU64,
}

/// A table that a run has taken out of a [`Kept`].
pub struct Taken<T> {
    table: Box<T>,
    /// How many times the slot had been cleared when the table was begun.
    generation: u64,
}

impl<T> Taken<T> {
    /// A table that no run of the process has taken, and that is not kept.
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

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Kept<T> {
    /// An empty slot.
    pub const fn new() -> Self {
        Self { table: Mutex::new(None), generation: AtomicU64::new(0) }
    }
    fn lock(&self) -> Option<MutexGuard<'_, Option<Taken<T>>>> {
        match self.table.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(PoisonError::into_inner(error)),
            Err(TryLockError::WouldBlock) => None,
        }
    }
    /// Takes the table out of the slot, or `new` if there is none.
    pub fn take(&self, new: impl FnOnce() -> T) -> Taken<T> {
        let generation = self.generation.load(Ordering::Acquire);
        let kept = self.lock().and_then(|mut kept| kept.take());
        let kept = kept.filter(|kept| kept.generation == generation);
        kept.unwrap_or_else(|| Taken { table: Box::new(new()), generation })
    }
    /// Puts `table` into the slot, unless that has a table of at least this size or was cleared since `table` was
    /// taken.
    pub fn leave(&self, table: Taken<T>, size: impl Fn(&T) -> usize) {
        let Some(mut kept) = self.lock() else { return };
        if table.generation != self.generation.load(Ordering::Acquire) {
            return;
        }
        let is_smaller = |kept: &Taken<T>| size(kept) < size(&table);
        if kept.as_ref().is_none_or(is_smaller) {
            *kept = Some(table);
        }
    }
    /// Drops the table; one that a run has taken will not be kept either.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        if let Some(mut kept) = self.lock() {
            *kept = None;
        }
    }
    /// The `size` of the table that is kept; 0 if there is none, or while a run uses it.
    pub fn size(&self, size: impl Fn(&T) -> usize) -> usize {
        let generation = self.generation.load(Ordering::Acquire);
        let Some(kept) = self.lock() else { return 0 };
        kept.as_ref().filter(|kept| kept.generation == generation).map_or(0, |kept| size(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_table_is_kept() {
        let kept = Kept::<Vec<u8>>::new();
        let (mut first, mut second) = (kept.take(Vec::new), kept.take(Vec::new));
        first.push(1);
        second.extend([2, 3]);
        kept.leave(second, Vec::len);
        kept.leave(first, Vec::len);
        assert_eq!(*kept.take(Vec::new), [2, 3]);
        assert_eq!(kept.size(Vec::len), 0);
    }

    #[test]
    fn a_table_of_before_is_not_taken_back() {
        let kept = Kept::<Vec<u8>>::new();
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
        let kept = Kept::<Vec<u8>>::new();
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
