//! A cache of facts about signatures, which programs of one process share.
//!
//! Signature ids differ between programs, so an entry is found by the key of its signature. A full
//! cache takes no more entries: eviction would not help a program whose ops all have different
//! signatures.

use super::signature::SignatureTable;
use super::strings::Interner;
use crate::index::{Id, StrId};
use std::sync::Arc;

/// The most signatures in a cache: many times those of a large model.
pub const MAX_ENTRIES: usize = 1 << 15;

/// The most bytes of the keys in a cache: attributes may be megabytes long.
pub const MAX_BYTES: usize = 16 << 20;

/// Entries by the keys of signatures.
#[derive(Debug)]
pub struct SignatureCache<T> {
    /// The keys; shared with the program that they were adopted from until one of the two adds
    /// keys.
    keys: Arc<Interner>,
    entries: Vec<T>,
    /// Index of the entry after the last one found: if a program is seen again, it looks up keys in
    /// the same order.
    next: usize,
}

impl<T> Default for SignatureCache<T> {
    fn default() -> Self {
        Self { keys: Arc::default(), entries: Vec::new(), next: 0 }
    }
}

impl<T> SignatureCache<T> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Begins the look-ups of another program at the first entry.
    pub fn rewind(&mut self) {
        self.next = 0;
    }
    fn find(&mut self, key: &str) -> Option<usize> {
        let expected = StrId::from_index(self.next);
        let is_expected = self.next < self.entries.len() && self.keys.get(expected) == key;
        let id = if is_expected { expected } else { self.keys.find(key)? };
        self.next = id.index() + 1;
        Some(id.index())
    }
    /// The entry of `key`.
    pub fn get(&mut self, key: &str) -> Option<&T> {
        let index = self.find(key)?;
        self.entries.get(index)
    }
    /// The entry of `key`, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut T> {
        let index = self.find(key)?;
        self.entries.get_mut(index)
    }
    /// Fills an empty cache with entries for all signatures of a program, in their order, unless
    /// there are too many. This is faster than adding them one by one. Returns whether it was done.
    pub fn adopt(&mut self, signatures: &SignatureTable, entries: Vec<T>) -> bool {
        let keys = signatures.keys();
        let fits = keys.len() <= MAX_ENTRIES && keys.num_bytes() <= MAX_BYTES;
        let adopts = fits && self.is_empty() && entries.len() == keys.len();
        if adopts {
            self.keys = Arc::clone(keys);
            self.entries = entries;
        }
        adopts
    }
    /// Adds `entry` under `key`, which is not in the cache, unless the cache is full.
    pub fn insert(&mut self, key: &str, entry: T) {
        if self.entries.len() < MAX_ENTRIES && self.keys.num_bytes() + key.len() <= MAX_BYTES {
            Arc::make_mut(&mut self.keys).intern(key);
            self.entries.push(entry);
        }
    }
}

/// Whether `key`, the text of a signature, means the same in every program: no attribute or type in it
/// is an alias, `#word` or `!word` without the dot or body that a dialect's own has.
pub fn is_portable(key: &str) -> bool {
    memchr::memchr2_iter(b'#', b'!', key.as_bytes()).all(|at| {
        let rest = &key.as_bytes()[at + 1..];
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$.-".contains(byte);
        let end = rest.iter().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        rest.get(end) == Some(&b'<') || rest[..end].contains(&b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::OpId;
    use crate::ir::{Signature, Span};

    #[test]
    fn aliases_are_seen() {
        assert!(!is_portable("x = #map"));
        assert!(!is_portable("[#a, #stablehlo<b c>]"));
        assert!(!is_portable("!t"));
        assert!(is_portable("[#stablehlo<b c>, #stablehlo.d, #stablehlo.e<>] !quant.any"));
    }

    #[test]
    fn bytes_are_bounded() {
        let mut cache = SignatureCache::default();
        for key in ["a", "b"].map(|key| key.repeat(MAX_BYTES / 2 + 1)) {
            cache.insert(&key, 1);
        }
        assert_eq!((cache.len(), cache.keys.num_bytes()), (1, MAX_BYTES / 2 + 1));
        cache.insert("c", 2);
        assert_eq!(cache.get("c"), Some(&2));
    }

    #[test]
    fn the_signatures_of_a_program_come_with_their_keys() {
        let mut signatures = SignatureTable::default();
        for key in ["a", "b"] {
            signatures.intern(key, || Signature {
                name: StrId::NONE,
                example: OpId::NONE,
                syntax: Span::EMPTY,
                stem_len: 1,
                operand_types: [].into(),
                result_types: [].into(),
            });
        }
        let mut cache = SignatureCache::default();
        assert!(!cache.adopt(&signatures, vec![1]));
        assert!(cache.adopt(&signatures, vec![1, 2]));
        cache.insert("c", 3);
        // The keys are shared until one of the two adds some.
        assert_eq!((signatures.len(), signatures.keys().len()), (2, 2));
        // Only a cache without entries adopts any.
        assert!(!cache.adopt(&signatures, vec![4, 5]));
        assert_eq!(["b", "c", "a"].map(|key| cache.get(key).copied()), [Some(2), Some(3), Some(1)]);
    }

    #[test]
    fn entries_are_found_in_any_order() {
        let mut cache = SignatureCache::default();
        for key in ["a", "b", "c"] {
            assert!(cache.get(key).is_none());
            cache.insert(key, key.to_owned());
        }
        for key in ["c", "a", "b", "c", "b", "a"] {
            assert_eq!(cache.get(key).map(String::as_str), Some(key));
        }
        assert!(cache.get("d").is_none());
    }
}
