//! Rules that are remembered across programs.
//!
//! A program's signatures have ids of its own, so the key is their text. Looking a rule up costs a
//! fraction of making it, which shows where a program is propagated again and again. The cache takes no
//! more rules once it is full: a program in which no two ops are alike gains nothing and would only
//! fill memory.
//!
//! How the cache passes from run to run, also across threads and forks, is said in [`crate::kept`].

use crate::index::{Id, StrId};
use crate::ir::Interner;
use crate::kept::{Kept, Taken};
use crate::rule::SharedRule;

/// The most signatures that are remembered: many times those of a large model.
pub const MAX_ENTRIES: usize = 1 << 15;

/// The most bytes of signatures that are remembered: attributes may be megabytes long.
pub const MAX_BYTES: usize = 16 << 20;

/// The rules of a signature: without and with what its family asks about the surroundings of the op.
pub type RulePair = [Option<SharedRule>; 2];

/// Under which circumstances rules are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// In conservative propagation.
    pub conservative: bool,
    /// With rules for ops of CHLO.
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

/// Takes the cache of `table` along.
pub fn take(table: Table) -> Taken<RuleCache> {
    KEPT[table.index()].take(RuleCache::default)
}

/// Leaves the cache, which was taken of `table`, to the next run.
pub fn leave(table: Table, mut cache: Taken<RuleCache>) {
    cache.next = 0;
    KEPT[table.index()].leave(cache, |cache| cache.pairs.len());
}

/// Forgets all rules. Runs at work finish with what they have.
pub fn clear() {
    KEPT.iter().for_each(Kept::clear);
}

/// Number of signatures whose rules are remembered, but for those in the hands of a run.
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
    /// Index of the entry after the last one that was looked up: a program that is propagated again asks
    /// in the same order.
    next: usize,
}

impl RuleCache {
    /// The rules remembered under `key`.
    pub fn get(&mut self, key: &str) -> Option<&RulePair> {
        let expected = StrId::from_index(self.next);
        let is_expected = self.next < self.pairs.len() && self.keys.get(expected) == key;
        let id = if is_expected { expected } else { self.keys.find(key)? };
        self.next = id.index() + 1;
        self.pairs.get(id.index())
    }
    /// Remembers `pair` under `key`, which is not known yet, while there is room.
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
