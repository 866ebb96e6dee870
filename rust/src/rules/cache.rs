//! A cache of rules across programs.
//!
//! Signature ids differ between programs, so the key is the text of the signature. A look-up takes a
//! fraction of the time of making the rule, which matters for programs that are propagated repeatedly. A full
//! cache takes no more rules: evicting some for a program in which no two ops are alike would not pay off.
//!
//! See [`crate::kept`] for how runs share the cache, also across threads and forks.

use crate::index::{Id, StrId};
use crate::ir::Interner;
use crate::kept::{Kept, Taken};
use crate::rule::SharedRule;

/// The most signatures in the cache: many times those of a large model.
pub const MAX_ENTRIES: usize = 1 << 15;

/// The most bytes of the keys in the cache: attributes may be megabytes long.
pub const MAX_BYTES: usize = 16 << 20;

/// The rules of a signature: if the op does not meet the condition of its family on the ops around it, and if it
/// does.
pub type RulePair = [Option<SharedRule>; 2];

/// The options that rules depend on; each combination has a cache of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Whether propagation is conservative.
    pub conservative: bool,
    /// Whether CHLO ops have rules.
    pub legalizes_chlo: bool,
}

impl Table {
    fn index(self) -> usize {
        2 * usize::from(self.legalizes_chlo) + usize::from(self.conservative)
    }
}

/// Number of [`Table`]s.
pub const NUM_TABLES: usize = 4;

static KEPT: [Kept<RuleCache>; NUM_TABLES] = [const { Kept::new() }; NUM_TABLES];

/// Takes the cache of `table` for a run.
pub fn take(table: Table) -> Taken<RuleCache> {
    KEPT[table.index()].take(RuleCache::default)
}

/// Returns the cache, which [`take`] took for `table`, for the next run.
pub fn leave(table: Table, mut cache: Taken<RuleCache>) {
    cache.next = 0;
    KEPT[table.index()].leave(cache, |cache| cache.pairs.len());
}

/// Empties the caches. Runs in progress keep theirs until they end.
pub fn clear() {
    KEPT.iter().for_each(Kept::clear);
}

/// Number of signatures in the caches, but for those that a run has taken.
pub fn len() -> usize {
    KEPT.iter().map(|kept| kept.size(|cache| cache.pairs.len())).sum()
}

/// Rules by signature.
#[derive(Debug, Default)]
pub struct RuleCache {
    keys: Interner,
    /// Number of bytes of all keys.
    bytes: usize,
    pairs: Vec<RulePair>,
    /// Index of the entry after the last one that was found: a program that is propagated again looks up keys
    /// in the same order.
    next: usize,
}

impl RuleCache {
    /// The rules of `key`.
    pub fn get(&mut self, key: &str) -> Option<&RulePair> {
        let expected = StrId::from_index(self.next);
        let is_expected = self.next < self.pairs.len() && self.keys.get(expected) == key;
        let id = if is_expected { expected } else { self.keys.find(key)? };
        self.next = id.index() + 1;
        self.pairs.get(id.index())
    }
    /// Adds `pair` under `key`, which is not in the cache, unless the cache is full.
    pub fn insert(&mut self, key: &str, pair: RulePair) {
        if self.pairs.len() < MAX_ENTRIES && self.bytes + key.len() <= MAX_BYTES {
            self.bytes += key.len();
            self.keys.intern(key);
            self.pairs.push(pair);
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

    #[test]
    fn aliases_are_seen() {
        assert!(!is_portable("x = #map"));
        assert!(!is_portable("[#a, #stablehlo<b c>]"));
        assert!(!is_portable("!t"));
        assert!(is_portable("[#stablehlo<b c>, #stablehlo.d, #stablehlo.e<>] !quant.any"));
    }

    #[test]
    fn bytes_are_bounded() {
        let mut cache = RuleCache::default();
        for key in ["a", "b"].map(|key| key.repeat(MAX_BYTES / 2 + 1)) {
            cache.insert(&key, [None, None]);
        }
        assert_eq!((cache.pairs.len(), cache.bytes), (1, MAX_BYTES / 2 + 1));
        cache.insert("c", [None, None]);
        assert!(cache.get("c").is_some());
    }

    #[test]
    fn rules_are_found_in_any_order() {
        let mut cache = RuleCache::default();
        for key in ["a", "b", "c"] {
            assert!(cache.get(key).is_none());
            cache.insert(key, [None, None]);
        }
        for key in ["c", "a", "b", "c", "b", "a"] {
            assert!(cache.get(key).is_some());
        }
        assert!(cache.get("d").is_none());
    }
}
