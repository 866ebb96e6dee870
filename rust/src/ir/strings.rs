//! Interned strings.

use super::id_slots::IdSlots;
use crate::index::{Id, StrId};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;

/// Gives equal strings equal ids. The strings are stored one after the other in one text, without
/// an allocation for each string.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    text: String,
    /// The end of each string in the text.
    ends: Vec<usize>,
    ids: IdSlots<StrId>,
}

impl Interner {
    /// The id of `text`, new if it was never seen.
    pub fn intern(&mut self, text: &str) -> StrId {
        let hash = FxBuildHasher.hash_one(text);
        if let Some(id) = self.find_hashed(hash, text) {
            return id;
        }
        let id = StrId::from_index(self.ends.len());
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.ids.insert(hash, id);
        id
    }
    /// Reserves memory for this many strings, with this many bytes in total.
    pub fn reserve(&mut self, count: usize, bytes: usize) {
        self.text.reserve(bytes);
        self.ends.reserve(count);
        self.ids.reserve(count);
    }
    /// The id of `text` if it was seen before.
    pub fn find(&self, text: &str) -> Option<StrId> {
        self.find_hashed(FxBuildHasher.hash_one(text), text)
    }
    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// The bytes of all strings together.
    pub fn num_bytes(&self) -> usize {
        self.text.len()
    }
    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// The string of `id`.
    #[inline]
    pub fn get(&self, id: StrId) -> &str {
        let start = id.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[id.index()]]
    }
    fn find_hashed(&self, hash: u64, text: &str) -> Option<StrId> {
        self.ids.find(hash, |id| self.get(id) == text)
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
