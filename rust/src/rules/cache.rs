//! A cache of rules across programs.
//!
//! A look-up takes a fraction of the time to compute a rule, which matters for programs that are
//! propagated repeatedly.
//!
//! See [`crate::memoization`] for how runs share the cache, also across threads and forks.

use crate::ir::SignatureCache;
use crate::memoization::{CacheSlot, Taken};
use crate::op_sharding_rule::SharedRule;
use crate::shardy::Version;

/// The two rules of a signature: the first if the op does not meet its family's condition on
/// surrounding ops, the second if it does.
pub type RulePair = [Option<SharedRule>; 2];

/// The options that rules depend on; each combination has its own cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Whether propagation is conservative.
    pub conservative: bool,
    /// Whether CHLO ops have rules.
    pub legalizes_chlo: bool,
    /// The version of Shardy.
    pub shardy: Version,
}

impl Table {
    fn index(self) -> usize {
        let options = 2 * usize::from(self.legalizes_chlo) + usize::from(self.conservative);
        4 * self.shardy as usize + options
    }
}

/// Number of [`Table`]s.
pub const NUM_TABLES: usize = 4 * Version::COUNT;

static KEPT: [CacheSlot<RuleCache>; NUM_TABLES] = [const { CacheSlot::new() }; NUM_TABLES];

/// Takes the cache of `table` for a run.
pub fn take(table: Table) -> Taken<RuleCache> {
    KEPT[table.index()].take(RuleCache::default)
}

/// Puts back the cache, which [`take`] took for `table`.
pub fn leave(table: Table, mut cache: Taken<RuleCache>) {
    cache.rewind();
    KEPT[table.index()].leave(cache, SignatureCache::len);
}

/// Empties the caches. Runs in progress keep theirs until they end.
pub fn clear() {
    KEPT.iter().for_each(CacheSlot::clear);
}

/// Number of signatures in the caches, except those that runs have taken.
pub fn len() -> usize {
    KEPT.iter().map(|kept| kept.size(SignatureCache::len)).sum()
}

/// Rules by signature.
pub type RuleCache = SignatureCache<RulePair>;
