//! Interned strings.

use crate::index::{Id, StrId};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// Gives equal strings equal ids. The strings are stored one after the other in one text, and their ids in a
/// hash table with open addressing, without an allocation for each string.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    text: String,
    /// The end of each string in the text.
    ends: Vec<usize>,
    /// The hash table: each id is at the slot of its hash or the next free one; at most half of the slots are
    /// taken, and their number is a power of two.
    slots: Vec<StrId>,
}

impl Interner {
    /// The id of `text`, new if it was never seen.
    pub fn intern(&mut self, text: &str) -> StrId {
        if 2 * self.ends.len() >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(text);
        if let Some(id) = self.slots[slot].get() {
            return id;
        }
        let id = StrId::from_index(self.ends.len());
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.slots[slot] = id;
        id
    }
    /// The id of `text` if it was seen before.
    pub fn find(&self, text: &str) -> Option<StrId> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots[self.slot(text)].get()
    }
    /// The string of `id`.
    #[inline]
    pub fn get(&self, id: StrId) -> &str {
        let start = id.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[id.index()]]
    }
    /// The slot that has `text`, or the free one where it would be.
    fn slot(&self, text: &str) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = FxBuildHasher.hash_one(text) as usize & mask;
        while self.slots[slot].is_some() && self.get(self.slots[slot]) != text {
            slot = (slot + 1) & mask;
        }
        slot
    }
    fn grow(&mut self) {
        self.slots = vec![StrId::NONE; (2 * self.slots.len()).max(64)];
        for index in 0..self.ends.len() {
            let id = StrId::from_index(index);
            let slot = self.slot(self.get(id));
            self.slots[slot] = id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_equal_ids_however_many_there_are() {
        let mut strings = Interner::default();
        assert_eq!(strings.find(""), None);
        let names: Vec<String> = (0..1000).map(|i| "x".repeat(i % 7) + &i.to_string()).collect();
        let ids: Vec<StrId> = names.iter().map(|name| strings.intern(name)).collect();
        let empty = strings.intern("");
        for (name, &id) in names.iter().zip(&ids) {
            assert_eq!((strings.get(id), strings.find(name)), (&**name, Some(id)));
            assert_eq!(strings.intern(name), id);
        }
        assert_eq!(
            (strings.get(empty), strings.find(""), strings.find("y")),
            ("", Some(empty), None)
        );
    }
}
